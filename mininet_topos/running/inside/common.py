"""What the programs in the hosts share: sockets as told, saying ready, ending on SIGTERM."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from tuning import congestion

End = Callable[[dict[str, Any]], Mapping[str, Any]]
"""One end of a flow: is told what to do, and reports."""


class Ended(Exception):
    """SIGTERM came: tell what there is and end."""


def end_on_sigterm() -> None:
    """Let SIGTERM raise Ended in the main thread."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise Ended

    signal.signal(signal.SIGTERM, handle)


def run_end(receive: End, send: End) -> int:
    """Run the end that the first argument names with what the second tells, as JSON."""
    end_on_sigterm()
    told = json.loads(sys.argv[2])
    report(receive(told) if sys.argv[1] == "receive" else send(told))
    return 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def report(values: Mapping[str, Any]) -> None:
    """Print the JSON object that is the program's result."""
    say(json.dumps(values))


def tuned_socket(told: Mapping[str, Any]) -> socket.socket:
    """Make a TCP socket with the algorithm, parameters and buffers told, to connect or listen.

    Raises OSError and tuning.congestion.CongestionError.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for name, option in (
            ("send_buffer_bytes", socket.SO_SNDBUF),
            ("receive_buffer_bytes", socket.SO_RCVBUF),
        ):
            if told.get(name):
                made.setsockopt(socket.SOL_SOCKET, option, told[name])
        parameters = dict(told.get("parameters") or ())
        if told.get("initial_window_segments"):
            parameters["initial_window_segments"] = told["initial_window_segments"]
        if told.get("rate_bps"):
            parameters["rate_bps"] = told["rate_bps"]
        if told.get("congestion"):
            congestion.choose(made, told["congestion"], congestion.Parameters(**parameters))
        elif parameters:
            raise congestion.CongestionError("parameters need the name of an algorithm")
    except BaseException:
        made.close()
        raise
    return made
