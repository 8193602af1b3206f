"""What goes wrong in one run, and when; drawn from a seed, and written on one line.

A run moves one file between a real xftp and a real xftpd, through a relay (relay.py) that knows how
many bytes have gone by. At one moment of that one thing goes wrong.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CONNECTIONS = (1, 4, 8)

MAX_BYTES = 4_000_000

_EDGES = (0, 1, 8191, 8192, 8193, 4 * 8192, 65_536 + 5)
"""Sizes around the ends of records."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault, and where it makes sense."""

    name: str

    weight: float = 1.0
    """How often it is drawn, against the others."""

    is_long: bool = False
    """Whether programs wait for a minute or so until they know; not for CI."""

    is_honest: bool = True
    """Whether TCP's promises hold: the bytes have to be right without a comparison of hashes."""

    is_framed: bool = False
    """Whether it needs records: several connections, and no TLS."""

    is_in_data: bool = False
    """Whether it is done to what comes next: at the very end nothing does."""

    needs_root: bool = False
    """Whether it needs a mount."""

    may_be_slow: bool = True
    """Whether it may come after more than 5 s, when the journal was brought up to date."""


FAULTS = (
    Fault("kill-client", 3),
    Fault("kill-daemon", 3),
    Fault("terminate-client"),
    Fault("terminate-daemon"),
    Fault("suspend-client"),
    Fault("suspend-daemon"),
    Fault("reset-one", 2),
    Fault("reset-all", 2),
    Fault("silent-one", 2),
    Fault("silent-all", 0.5, is_long=True, may_be_slow=False),
    Fault("outage-data", 1.5),
    Fault("outage-all", 1.5),
    Fault("outage-30s", 0.5, is_long=True, may_be_slow=False),
    Fault("control-reset", 1.5),
    Fault("control-closed", 1.5),
    Fault("control-silent", 0.4, is_long=True, may_be_slow=False),
    Fault("truncate-one", 1.5, is_in_data=True),
    Fault("truncate-all", 1.5, is_in_data=True),
    Fault("duplicate", 1.5, is_honest=False, is_in_data=True),
    Fault("reorder", 1.5, is_honest=False, is_in_data=True),
    Fault("lose", 1.5, is_honest=False, is_in_data=True),
    Fault("out-of-range", 1.5, is_honest=False, is_framed=True, is_in_data=True),
    Fault("renumber", 1.5, is_honest=False, is_framed=True, is_in_data=True),
    Fault("insert", is_honest=False, is_in_data=True),
    Fault("flip", 3, is_honest=False, is_in_data=True),
    Fault("flip-backwards", is_framed=True),
    Fault("write-ENOSPC", 1.5, is_in_data=True),
    Fault("write-EDQUOT", is_in_data=True),
    Fault("write-EIO", 1.5, is_in_data=True),
    Fault("read-EIO", 1.5, is_in_data=True),
    Fault("journal-ENOSPC"),
    Fault("sync-EIO", 0.5),
    Fault("rename-EIO", 0.5, may_be_slow=False),
    Fault("full-tmpfs", needs_root=True, may_be_slow=False),
    Fault("source-grows", is_honest=False, may_be_slow=False),
    Fault("source-shrinks", is_honest=False, may_be_slow=False),
    Fault("source-vanishes", is_honest=False, may_be_slow=False),
    Fault("source-replaced", 1.5, is_honest=False, may_be_slow=False),
    Fault("source-rewritten", 1.5, is_honest=False, may_be_slow=False),
    Fault("part-removed"),
    Fault("target-appears"),
    Fault("clock-client", may_be_slow=False),
    Fault("clock-daemon", may_be_slow=False),
)

BY_NAME = {fault.name: fault for fault in FAULTS}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run."""

    fault: str
    """The name of one of `FAULTS`."""

    direction: str
    """down: xftp get; up: xftp put."""

    connections: int

    size: int
    """Bytes of the file."""

    moment: float
    """When it happens: the part of the bytes that have gone by, 0 to 1."""

    seed: int
    """Of the file's content, and of what else is left to chance."""

    passive: bool = True
    """Whether the client opens the data connections."""

    tls: bool = False

    slow: bool = False
    """Whether the moment comes after 6 to 8 s."""

    verify: bool = True
    """Whether hashes are compared."""

    retries: int = 0
    """How often the client tries again by itself."""

    @property
    def kind(self) -> Fault:
        """Give what is known of the fault."""
        return BY_NAME[self.fault]

    @property
    def is_framed(self) -> bool:
        """Whether records are seen on the wire."""
        return self.connections > 1 and not self.tls

    def chance(self) -> random.Random:
        """Give the source of what this run leaves to chance."""
        return random.Random(self.seed)

    def __str__(self) -> str:
        """Write it on one line, as `parse` reads it; defaults are left out."""
        words = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                words.append(f"{field.name}={int(value) if isinstance(value, bool) else value}")
        return " ".join(words)


_READ: dict[str, Callable[[str], str | int | float | bool]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda word: bool(int(word)),
}


def parse(text: str) -> Scenario:
    """Read a scenario. Raises ValueError, TypeError or KeyError."""
    values: dict[str, str | int | float | bool] = {}
    kinds = {field.name: str(field.type) for field in dataclasses.fields(Scenario)}
    for word in text.split():
        name, _, value = word.partition("=")
        values[name] = _READ[kinds[name]](value)
    scenario = Scenario(**values)  # type: ignore[arg-type]
    if scenario.fault not in BY_NAME:
        raise ValueError(f"there is no fault {scenario.fault}")
    return scenario


@dataclass(frozen=True, slots=True)
class Range:
    """What may be drawn."""

    with_long: bool = True
    """Faults that programs need a minute for, and moments that come late."""

    with_root: bool = True

    with_tls: bool = True


SLOW_MOMENT = 0.3
"""How much of a file moves slowly at least: less would be slower than a daemon waits for."""


def draw(seed: int, number: int, allowed: Range) -> Scenario:
    """Draw the run `number` of the campaign `seed`."""
    chance = random.Random(f"{seed}/{number}")
    fault = _draw_fault(chance, allowed)
    connections = chance.choice(CONNECTIONS[1:] if fault.is_framed else CONNECTIONS)
    tls = allowed.with_tls and not fault.is_framed and chance.random() < 1 / 3
    slow = allowed.with_long and fault.may_be_slow and chance.random() < 0.15
    size = chance.randrange(1_000_000, MAX_BYTES) if slow else _draw_size(chance)
    earliest = SLOW_MOMENT if slow else 0.0
    return Scenario(
        fault.name,
        "up" if fault.needs_root else chance.choice(("down", "up")),
        connections,
        size,
        round(max(_draw_moment(chance, last=0.9 if fault.is_in_data else 1.0), earliest), 4),
        chance.randrange(1 << 32),
        passive=tls or chance.random() < 2 / 3,
        tls=tls,
        slow=slow,
        verify=not fault.is_honest or chance.random() < 0.5,
        retries=chance.choice((0, 0, 0, 0, 3)) if allowed.with_long else 0,
    )


def campaign(seed: int, count: int, allowed: Range) -> Sequence[Scenario]:
    """Draw `count` runs; each is the same whatever the count is."""
    return [draw(seed, number, allowed) for number in range(count)]


def _draw_fault(chance: random.Random, allowed: Range) -> Fault:
    possible = [
        fault
        for fault in FAULTS
        if (allowed.with_long or not fault.is_long) and (allowed.with_root or not fault.needs_root)
    ]
    return chance.choices(possible, [fault.weight for fault in possible])[0]


def _draw_size(chance: random.Random) -> int:
    if chance.random() < 0.1:
        return chance.choice(_EDGES)
    return int(10 ** chance.uniform(4.0, 6.6))


def _draw_moment(chance: random.Random, last: float) -> float:
    """Draw a moment up to `last`; the ends are where the bugs are."""
    between = [chance.uniform(0.0, last) for _ in range(3)]
    return chance.choice((0.0, last, *between))
