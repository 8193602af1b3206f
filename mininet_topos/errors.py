"""One tree of errors of the lab; every message is one sentence for a person."""

from __future__ import annotations


class LabError(Exception):
    """The base of every error the lab raises on purpose."""


class LinkError(LabError):
    """A link was specified that cannot exist, such as one with a rate of 0."""


class EmulatorError(LabError):
    """A link emulator does not start, does not answer, or has ended."""


class TopologyError(LabError):
    """A topology cannot be built, or is not in the state that was asked for."""


class ExperimentError(LabError):
    """An experiment is unknown, was asked for wrongly, or could not be completed."""


class MissingToolError(LabError):
    """This machine lacks a program, a privilege or a kernel feature that the lab needs."""


class LeftOutError(MissingToolError):
    """A program that a single run needs is not installed: that run is left out."""
