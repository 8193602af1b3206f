"""A directory of results: one JSON file per experiment, versioned, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ExperimentError
from ..experiments.outcome import Outcome

FORMAT_VERSION = 1
"""Raised with every change that an older report could not read."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ResultsError(ExperimentError):
    """A result cannot be written or read: a problem of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """One experiment's runs and what is needed to judge them."""

    experiment: str
    title: str
    source: str
    quick: bool
    """Fewer points and smaller files than the figure has."""

    repeats: int
    finished: str
    """When, ISO 8601."""

    machine: Mapping[str, Any]
    """Kernel, programs, revision … (`machine.describe`)."""

    outcomes: tuple[Outcome, ...]
    deviations: tuple[str, ...] = ()
    complete: bool = True
    """Whether every point was run: not so after Ctrl-C."""

    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Give plain values with the format's version."""
        return {
            "format": FORMAT_VERSION,
            "experiment": self.experiment,
            "title": self.title,
            "source": self.source,
            "quick": self.quick,
            "repeats": self.repeats,
            "complete": self.complete,
            "finished": self.finished,
            "machine": dict(self.machine),
            "deviations": list(self.deviations),
            "extra": dict(self.extra),
            "outcomes": [outcome.as_json() for outcome in self.outcomes],
        }

    @classmethod
    def from_json(cls, stored: Any) -> Results:
        """Read what `as_json` gave. Raises ResultsError."""
        if not isinstance(stored, dict) or stored.get("format") != FORMAT_VERSION:
            version = stored.get("format") if isinstance(stored, dict) else None
            raise ResultsError(
                f"results of format {version!r} cannot be read, only {FORMAT_VERSION}: run again"
            )
        try:
            return cls(
                experiment=stored["experiment"],
                title=stored["title"],
                source=stored["source"],
                quick=stored["quick"],
                repeats=stored["repeats"],
                complete=stored["complete"],
                finished=stored["finished"],
                machine=stored["machine"],
                deviations=tuple(stored["deviations"]),
                extra=stored["extra"],
                outcomes=tuple(Outcome.from_json(each) for each in stored["outcomes"]),
            )
        except (KeyError, TypeError) as error:
            raise ResultsError(f"the results lack {error}") from error


def prepare(directory: Path) -> None:
    """Make a results directory and see that it can be written. Raises ResultsError."""
    probe = directory / f".probe-{os.getpid()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"\0" * 4096)
    except OSError as error:
        raise _explained(directory, error) from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def write(directory: Path, results: Results) -> Path:
    """Write an experiment's results beside what is there of others. Raises ResultsError."""
    return write_whole(
        directory / f"{results.experiment}.json",
        json.dumps(results.as_json(), indent=1, allow_nan=False).encode(),
    )


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file: there is the old one or the new one, never a part. Raises ResultsError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _explained(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return path


def read(path: Path) -> Results:
    """Read one experiment's results. Raises ResultsError."""
    try:
        return Results.from_json(json.loads(path.read_bytes()))
    except OSError as error:
        raise _explained(path, error) from error
    except (ValueError, ExperimentError) as error:
        raise ResultsError(f"{path}: {error}") from error


def read_all(directory: Path) -> list[Results]:
    """Read every result of a directory. Raises ResultsError, also if there is none."""
    paths = sorted(path for path in directory.glob("*.json") if not path.name.startswith("."))
    if not paths:
        raise ResultsError(f"there are no results in {directory}: `xftp-lab run` makes some")
    return [read(path) for path in paths]


def _explained(path: Path, error: OSError) -> ResultsError:
    if error.errno in _NO_ROOM:
        return ResultsError(f"{path} cannot be written: the disk is full; nothing was overwritten")
    return ResultsError(f"{path}: {error.strerror or error}")
