"""`xftp plan`: what a link needs, and how long a file takes over it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from tuning.errors import TuningError
from tuning.model import Link, Response, TransferTime, transfer_time
from tuning.planning import DEFAULT_MAX_CONNECTIONS, DEFAULT_SIZE_BYTES, Plan, plan
from tuning.profiles import AUTO, Profile, find
from tuning.readback import sysctl
from tuning.units import (
    format_loss,
    format_rate,
    format_size,
    format_time,
    parse_loss,
    parse_rate,
    parse_size,
    parse_time,
)
from xftp.protocol.options import MULT_LIMIT

from .ceilings import fewest_connections
from .text import connections_text, seconds_text
from .tuning import RENTED

SysctlReader = Callable[[str], str | None]


def _profile(name: str) -> Profile:
    if name == AUTO:
        raise TuningError("auto measures the link as it transfers; a plan needs --rate and --rtt")
    return find(name)


PARSERS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "rate_bps": parse_rate,
        "rtt_s": parse_time,
        "loss": parse_loss,
        "size_bytes": parse_size,
        "profile": _profile,
    }
)
"""Read the fields of a `Request` as people write them; they raise TuningError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The link and the file that a person asks about; `advise` checks the values."""

    rate_bps: float
    """Rate of the link in bits per second."""

    rtt_s: float
    """Its round-trip time."""

    loss: float = 0.0
    """Share of segments lost whatever the load."""

    size_bytes: int = DEFAULT_SIZE_BYTES
    """The file."""

    max_connections: int = DEFAULT_MAX_CONNECTIONS
    """No more are planned."""

    profile: Profile | None = None
    """Where rate or RTT come from."""

    @property
    def is_the_profile(self) -> bool:
        """Whether `xftp get --profile` says as much as rate and RTT do."""
        return self.profile is not None and (
            (self.rate_bps, self.rtt_s) == (self.profile.down_bps, self.profile.rtt_s)
        )


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A sysctl that bounds what an unprivileged process is granted."""

    name: str
    needed: int
    here: int | None
    """Its value on this machine; None: it cannot be read."""

    @property
    def command(self) -> str | None:
        """What raises it; None: it is high enough here."""
        enough = self.here is not None and self.here >= self.needed
        return None if enough else f"sysctl -w {self.name}={self.needed}"


@dataclass(frozen=True, slots=True)
class Advice:
    """A plan, and what surrounds it on this machine."""

    request: Request
    plan: Plan
    ceilings: tuple[Ceiling, ...]

    rented: TransferTime | None
    """The same connections with RENTED; None: without loss it is no different."""

    next_command: str | None
    """How to transfer like that; None: the client has no options for it."""

    def as_json(self) -> dict[str, Any]:
        """Give the advice as plain values: those of the plan, and a few more."""
        profile = self.request.profile
        rented = self.rented and asdict(self.rented) | {"total_s": self.rented.total_s}
        return self.plan.as_json() | {
            "profile": None if profile is None else profile.name,
            "direction": "download",
            "with_n_rented": rented,
            "ceilings": [asdict(each) | {"command": each.command} for each in self.ceilings],
            "fitting_connections": self.fitting_connections,
            "next": self.next_command,
        }

    @property
    def fitting_connections(self) -> int | None:
        """Connections that get by with this machine's ceilings, where those of the plan do not.

        None: those of the plan do, or no number does.
        """
        here = [each.here for each in self.ceilings if each.here is not None]
        if not here or all(each.command is None for each in self.ceilings):
            return None
        return fewest_connections(self.plan.link, min(here))


def advise(request: Request, options: frozenset[str], read_sysctl: SysctlReader = sysctl) -> Advice:
    """Make the plan. Raises TuningError.

    options: those of `xftp get`, long form; read_sysctl: reads a sysctl of this machine.
    """
    made = plan(
        request.rate_bps,
        request.rtt_s,
        loss=request.loss,
        size_bytes=request.size_bytes,
        max_connections=request.max_connections,
    )
    ceilings = tuple(
        Ceiling(name, value, _integer(read_sysctl(name))) for name, value in made.sysctls
    )
    return Advice(request, made, ceilings, _rented(made), _next_command(request, made, options))


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _rented(made: Plan) -> TransferTime | None:
    if made.link.loss == 0:
        return None
    return transfer_time(
        made.link,
        made.size_bytes,
        connections=made.connections,
        initial_window_segments=made.initial_window_segments,
        window_limit_bytes=made.receive_buffer_bytes,
        response=Response.RATE,
    )


def _next_command(request: Request, made: Plan, options: frozenset[str]) -> str | None:
    if request.profile is not None and request.is_the_profile:
        option, value = "--profile", request.profile.name
    else:
        option, value = "--rate", format_rate(request.rate_bps).replace(" ", "")
    if option not in options:
        return None
    return f"xftp get -n {made.connections} {option} {value} URL"


# -- for people -------------------------------------------------------------------------------


def advice_lines(advice: Advice) -> Iterator[str]:
    """Write the advice in at most 80 columns."""
    made = advice.plan
    yield from _table("", [*_link_rows(advice.request, made.link)])
    yield ""
    yield from _table("Each connection, on both ends", [*_connection_rows(advice)])
    yield ""
    yield from _table("Needed of both hosts", [*_ceiling_rows(advice)])
    yield ""
    yield from _table(f"Expected for {format_size(made.size_bytes)}", _time_rows(advice))
    if advice.rented is not None:
        yield f"  ({RENTED} sends where it is loaded: xftp doctor --fix, as root)"
    if advice.next_command is not None:
        yield ""
        yield f"Next: {advice.next_command}"


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    if title:
        yield title
    indent = "  " if title else ""
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        yield f"{indent}{label:{width}}  {value}".rstrip()


def _link_rows(request: Request, link: Link) -> Iterator[tuple[str, str]]:
    loss = f"loss {format_loss(link.loss)}" if link.loss else "no loss"
    yield "Link", f"{format_rate(link.rate_bps)}, RTT {format_time(link.rtt_s)}, {loss}"
    yield "Window", f"{format_size(link.window_bytes)} in flight fill it"
    profile = request.profile
    if profile is None:
        return
    yield "Profile", profile.description
    if request.rate_bps == profile.down_bps:
        up = format_rate(profile.up_bps)
        again = f"; for uploads add --rate {up.replace(' ', '')}"
        yield "", f"downloads{again if profile.up_bps != profile.down_bps else ' and uploads'}"


def _connection_rows(advice: Advice) -> Iterator[tuple[str, str]]:
    made = advice.plan
    yield "connections", f"{made.connections}{_connections_note(advice)}"
    yield "buffers", f"{format_size(made.receive_buffer_bytes)} to send, as much to receive"
    segments = made.initial_window_segments
    size = format_size(segments * made.link.mss_bytes)
    yield "initial window", f"{segments} segment{'' if segments == 1 else 's'} ({size})"
    yield "unsent limit", format_size(made.notsent_lowat_bytes)
    yield "pacing", format_rate(made.pacing_rate_bps)


def _connections_note(advice: Advice) -> str:
    made = advice.plan
    if made.connections == advice.request.max_connections < made.connections_for_loss:
        return f", the most allowed; this loss would occupy {made.connections_for_loss}"
    if made.connections > MULT_LIMIT:
        return f"; servers usually allow {MULT_LIMIT}"
    return ""


def _ceiling_rows(advice: Advice) -> Iterator[tuple[str, str]]:
    ceilings = advice.ceilings
    width = max(len(str(each.needed)) for each in ceilings)
    for each in ceilings:
        here = "unknown here" if each.here is None else f"{each.here} here"
        enough = f"{here}, enough" if each.command is None else here
        yield each.name, f"{each.needed:{width}}  ({enough})"
    for each in ceilings:
        if each.command is not None:
            yield "as root:", each.command
    if advice.fitting_connections is not None:
        count = connections_text(advice.fitting_connections)
        yield "or:", f"-n {advice.fitting_connections}, as {count} get by with what is granted here"


def _time_rows(advice: Advice) -> list[tuple[str, str]]:
    made = advice.plan
    tuned = f"{connections_text(made.connections)}, tuned"
    times = [
        ("1 connection as Linux does it", made.untuned),
        ("1 connection, tuned", made.with_one),
    ]
    if made.connections > 1:
        times.append((tuned, made.with_n))
    if advice.rented is not None:
        times.append((f"{tuned}, {RENTED}", advice.rented))
    times.append(("the link full from the first byte", made.at_limit))
    shown = [(label, seconds_text(each.total_s), each.total_s) for label, each in times]
    width = max(len(text) for _, text, _ in shown)
    best_s = made.at_limit.total_s
    return [
        (label, f"{text:>{width}}  {math.floor(best_s / total_s * 100):3}% of what the link can do")
        for label, text, total_s in shown
    ]
