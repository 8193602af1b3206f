"""TCP tuned per socket: what to set, setting it, reading it back, and what to expect of it.

    tuning = plan(parse_rate("50mbit"), parse_time("600ms")).tuning()
    refused = tuning.apply(sock)                       before connect or listen
    tuning.differences(sock)                           later, as often as wanted

Useful alone: it knows nothing of FTP and needs only the standard library. Congestion algorithms
are in `tuning.congestion`, struct tcp_info in `tuning.tcp_info`, the equations in `tuning.model`
and `tuning.reno`.

Names are imported when they are first used: to set a socket needs little of all this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import TuningError
    from .model import Link, Response, TransferTime
    from .planning import Plan, plan
    from .profiles import AUTO, PROFILES, Direction, Profile
    from .sockopts import Difference, Granted, Keepalive, SocketTuning, Tuner, granted
    from .tcp_info import TcpInfo, TcpState
    from .units import (
        format_loss,
        format_rate,
        format_size,
        format_time,
        parse_loss,
        parse_rate,
        parse_size,
        parse_time,
    )

__all__ = [
    "AUTO",
    "PROFILES",
    "Difference",
    "Direction",
    "Granted",
    "Keepalive",
    "Link",
    "Plan",
    "Profile",
    "Response",
    "SocketTuning",
    "TcpInfo",
    "TcpState",
    "TransferTime",
    "Tuner",
    "TuningError",
    "format_loss",
    "format_rate",
    "format_size",
    "format_time",
    "granted",
    "parse_loss",
    "parse_rate",
    "parse_size",
    "parse_time",
    "plan",
]

_HOMES = {
    "AUTO": "profiles",
    "Difference": "sockopts",
    "Direction": "profiles",
    "Granted": "sockopts",
    "Keepalive": "sockopts",
    "Link": "model",
    "PROFILES": "profiles",
    "Plan": "planning",
    "Profile": "profiles",
    "Response": "model",
    "SocketTuning": "sockopts",
    "TcpInfo": "tcp_info",
    "TcpState": "tcp_info",
    "TransferTime": "model",
    "Tuner": "sockopts",
    "TuningError": "errors",
    "format_loss": "units",
    "format_rate": "units",
    "format_size": "units",
    "format_time": "units",
    "granted": "sockopts",
    "parse_loss": "units",
    "parse_rate": "units",
    "parse_size": "units",
    "parse_time": "units",
    "plan": "planning",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
