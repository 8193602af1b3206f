"""What one session learns of a server and of the path to it, kept for the next one.

A small JSON file. It holds at most MOST_PLACES servers, and nothing older than LONGEST_S; what
cannot be read is ignored and written anew. Several processes may use it: each reads it again before
it writes, and replaces it in one step, so that the last word counts and no half file is ever there.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

FORMAT_VERSION = 1

MOST_PLACES = 200
"""Servers remembered; those used longest ago are forgotten first."""

LONGEST_S = 30 * 86_400.0
"""What was last confirmed longer ago is forgotten."""

PATH_LIFETIME_S = 7 * 86_400.0
"""Rates and round-trip times older than this say nothing any more."""

RENEW_S = 86_400.0
"""What is confirmed again within this time is not written again."""

NEAR = 1.25
"""Round-trip times that differ by no more than this factor are not worth writing."""

MOST_BYTES = 1 << 20
"""A larger file is none of ours."""

_MOST_FEATURES = 64
_MOST_TEXT = 200
_LEAST_RATE_BPS, _MOST_RATE_BPS = 1e3, 1e12
_LEAST_RTT_S, _MOST_RTT_S = 1e-6, 60.0
_MOST_CONNECTIONS = 1000

Way = Literal["download", "upload"]
WAYS: tuple[Way, ...] = ("download", "upload")


class KnownServer(NamedTuple):
    """What FEAT and MULT of a server said, and how it takes its commands."""

    is_our_kind: bool
    """Whether it takes flights of commands, and takes them before its greeting."""

    pipelines: bool = True
    """Whether it was not found unable to take several commands at once."""

    features: Mapping[str, str] | None = None
    """What FEAT listed; None where it does not matter."""

    connection_limit: int | None = None
    """What MULT told."""

    rtt_s: float | None = None
    """Round-trip time of a control connection, where that counts."""

    def tells_the_same(self, other: KnownServer) -> bool:
        """Tell whether two are as good as equal: no two round trips take the same time."""
        mine, theirs = self.rtt_s, other.rtt_s
        is_near = mine == theirs or (mine and theirs and 1 / NEAR < mine / theirs < NEAR)
        return bool(is_near) and self._replace(rtt_s=theirs) == other


class KnownPath(NamedTuple):
    """What a transfer learnt of the path, one way."""

    rate_bps: float
    """Delivery rate in bits per second, of all connections together."""

    rtt_s: float
    """Least round-trip time in seconds."""

    was_full: bool = False
    """Whether it ran at the rate that was asked for, so that the path may carry more."""

    takes_windows: bool = True
    """Whether the sender can make use of the rate: it has an algorithm or a window for it."""


class Memory(Protocol):
    """Where sessions keep what they learn. The methods block, and never raise."""

    def server(self, host: str, port: int) -> KnownServer | None:
        """Recall a server."""

    def note_server(self, host: str, port: int, known: KnownServer) -> None:
        """Remember a server."""

    def path(self, host: str, port: int, way: Way) -> KnownPath | None:
        """Recall the path to a server."""

    def note_path(self, host: str, port: int, way: Way, known: KnownPath) -> None:
        """Remember the path to a server."""


class MemoryFile:
    """A `Memory` in a file. trace: told, in a sentence, why it cannot be used."""

    def __init__(
        self,
        file: Path,
        trace: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._trace = trace
        self._clock = clock

    def server(self, host: str, port: int) -> KnownServer | None:
        """Recall a server; that one cannot take flights is doubted after PATH_LIFETIME_S."""
        value = self._recent().get(_place(host, port), {}).get("server")
        known = _server(value)
        if (
            known is not None
            and not known.pipelines
            and not self._is_within(value, PATH_LIFETIME_S)
        ):
            return None
        return known

    def note_server(self, host: str, port: int, known: KnownServer) -> None:
        """Remember a server; the file is not written if it says so already, and lately."""
        entry = self._recent().get(_place(host, port), {})
        value = entry.get("server")
        before = _server(value)
        if before and before.tells_the_same(known) and self._is_within(entry, RENEW_S):
            return
        since = self._clock()
        is_same = before is not None and before._replace(rtt_s=known.rtt_s) == known
        if is_same and isinstance(value, dict) and self._is_within(value, PATH_LIFETIME_S):
            since = value["at"]
        self._note(host, port, "server", {**known._asdict(), "at": since})

    def path(self, host: str, port: int, way: Way) -> KnownPath | None:
        """Recall the path to a server."""
        value = self._recent().get(_place(host, port), {}).get(way)
        if not isinstance(value, dict) or not self._is_within(value, PATH_LIFETIME_S):
            return None
        return _path(value)

    def note_path(self, host: str, port: int, way: Way, known: KnownPath) -> None:
        """Remember the path to a server."""
        self._note(host, port, way, {**known._asdict(), "at": self._clock()})

    # -- the file ----------------------------------------------------------------------------------

    def _is_within(self, value: object, lifetime_s: float) -> bool:
        at = _number(value.get("at"), 0.0, math.inf) if isinstance(value, dict) else None
        # A clock that was set back makes what is there younger than it is, but never eternal.
        return at is not None and -lifetime_s <= self._clock() - at <= lifetime_s

    def _recent(self) -> dict[str, dict[str, Any]]:
        """Read what is remembered, oldest first, without what is too old or none of ours."""
        places = self._read()
        kept = {
            place: entry
            for place, entry in places.items()
            if isinstance(entry, dict) and self._is_within(entry, LONGEST_S)
        }
        return dict(sorted(kept.items(), key=lambda item: float(item[1]["at"])))

    def _read(self) -> dict[str, Any]:
        try:
            if self._file.stat().st_size > MOST_BYTES:
                raise ValueError("it is too large")
            told = json.loads(self._file.read_bytes())
            if not isinstance(told, dict) or told.get("version") != FORMAT_VERSION:
                raise ValueError("it is of another version")
            places = told.get("places")
            if not isinstance(places, dict):
                raise ValueError("it lists no servers")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self._tell(f"{self._file} is not used: {error}")
            return {}
        return places

    def _note(self, host: str, port: int, name: str, value: Mapping[str, Any]) -> None:
        places = self._recent()
        place = _place(host, port)
        entry = {**places.pop(place, {}), name: dict(value), "at": self._clock()}
        places[place] = entry
        for oldest in list(places)[:-MOST_PLACES]:
            del places[oldest]
        try:
            self._write({"version": FORMAT_VERSION, "places": places})
        except (OSError, ValueError) as error:
            self._tell(f"{self._file} cannot be written: {error}")

    def _write(self, told: Mapping[str, Any]) -> None:
        import tempfile  # only who writes pays for loading it

        # Which servers somebody uses is nobody else's business.
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".paths.", dir=self._file.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as new:
                json.dump(told, new)
            os.replace(name, self._file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _tell(self, sentence: str) -> None:
        if self._trace is not None:
            self._trace(f"* {sentence}")


def corrected(before: KnownPath | None, seen: KnownPath) -> KnownPath:
    """Give what is to be remembered after another transfer.

    The new rate counts at once where it is higher; where it is lower, half of the way: one bad
    evening does not make a path slow for good, and one that has become slow is found out in a few
    transfers, each of which starts at half the excess of the one before.
    """
    if before is None or seen.rate_bps >= before.rate_bps:
        return seen
    return seen._replace(rate_bps=math.sqrt(before.rate_bps * seen.rate_bps))


# -- values, of which nothing is trusted ---------------------------------------------------------


def _place(host: str, port: int) -> str:
    return f"{host.lower()}:{port}"


def _number(value: object, least: float, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if least <= value <= most else None


def _server(value: object) -> KnownServer | None:
    if not isinstance(value, dict):
        return None
    ours, pipelines = value.get("is_our_kind"), value.get("pipelines")
    if not isinstance(ours, bool) or not isinstance(pipelines, bool):
        return None
    limit = _number(value.get("connection_limit"), 0, _MOST_CONNECTIONS)
    return KnownServer(
        is_our_kind=ours,
        pipelines=pipelines,
        features=_features(value.get("features")),
        connection_limit=None if limit is None else int(limit),
        rtt_s=_number(value.get("rtt_s"), _LEAST_RTT_S, _MOST_RTT_S),
    )


def _features(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict) or len(value) > _MOST_FEATURES:
        return None
    texts = [text for item in value.items() for text in item]
    if not all(isinstance(text, str) and len(text) <= _MOST_TEXT for text in texts):
        return None
    return dict(value)


def _path(value: Mapping[str, Any]) -> KnownPath | None:
    rate_bps = _number(value.get("rate_bps"), _LEAST_RATE_BPS, _MOST_RATE_BPS)
    rtt_s = _number(value.get("rtt_s"), _LEAST_RTT_S, _MOST_RTT_S)
    if rate_bps is None or rtt_s is None:
        return None
    return KnownPath(
        rate_bps=rate_bps,
        rtt_s=rtt_s,
        was_full=value.get("was_full") is True,
        takes_windows=value.get("takes_windows") is not False,
    )
