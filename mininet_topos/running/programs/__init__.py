"""How each kind of flow is started: a `Program` per class of `experiments.flows`."""

from __future__ import annotations

from ...errors import ExperimentError
from ...experiments.flows import (
    AnyFlow,
    BlockingStripes,
    Bulk,
    Crowd,
    Datagrams,
    Tool,
    WebLoad,
    Xftp,
)
from .base import Place, Program
from .plain import BlockingProgram, BulkProgram, CrowdProgram, DatagramsProgram, WebProgram
from .tools import tool_program
from .xftp import XftpProgram

__all__ = ["Place", "Program", "program_for"]


def program_for(flow: AnyFlow, place: Place, slot: int) -> Program:
    """Give the program that runs a flow; `slot` numbers the flows of a scenario from 0.

    Raises ExperimentError.
    """
    match flow:
        case Xftp():
            return XftpProgram(flow, place, slot)
        case Bulk():
            return BulkProgram(flow, place, slot)
        case Crowd():
            return CrowdProgram(flow, place, slot)
        case BlockingStripes():
            return BlockingProgram(flow, place, slot)
        case WebLoad():
            return WebProgram(flow, place, slot)
        case Datagrams():
            return DatagramsProgram(flow, place, slot)
        case Tool():
            return tool_program(flow, place, slot)
    raise ExperimentError(f"nobody knows how to run {flow!r}")
