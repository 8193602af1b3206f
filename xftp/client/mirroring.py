"""What a mirror has to do: two trees in, actions out. Nothing here touches a file or a server.

Paths are relative to the roots of both trees, with "/" between their parts, and bytes that are not
UTF-8 as surrogate escapes. Symbolic links are neither followed nor copied: FTP cannot make one,
and one that is followed may lead out of the tree, or round and round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from xftp.protocol.listings import safe_name

MOST_DEPTH = 200
"""Directories one inside the other: below the server's own limit for a path."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a listing tells of a file."""

    size: int | None
    """Bytes; None if it did not tell."""

    modified: float | None
    """Unix time in seconds; None if it did not tell, or not in a way that can be compared."""


@dataclass(slots=True)
class Tree:
    """The files and directories below a root."""

    files: dict[str, FileFacts] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    """Without the root."""
    others: set[str] = field(default_factory=set)
    """Links, devices, pipes."""
    unreadable: dict[str, Exception] = field(default_factory=dict)
    """Directories that could not be listed, and names that cannot be used, with the reason."""
    partial: set[str] = field(default_factory=set)
    """Directories with something in them that was left out, so that they are not empty."""
    exists: bool = True
    """Whether the root is there."""

    def kind(self, path: str) -> str | None:
        """Give "file", "directory" or "other"; None if nothing is there."""
        if path in self.files:
            return "file"
        if path in self.directories:
            return "directory"
        return "other" if path in self.others else None


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as changed, and what may be removed."""

    delete: bool = False
    """Remove from the target what the source does not have."""

    keeps_times: bool = True
    """Whether the target's files have the times of the source's: then any difference is a change;
    otherwise only a source that is younger is."""

    checksum: bool = False
    """Compare contents of files of the same size, whatever their times."""


class Reason(Enum):
    """Why a file is moved."""

    NEW = "new"
    SIZE = "size differs"
    TIME = "time differs"
    CONTENT = "content differs"


@dataclass(frozen=True, slots=True)
class Move:
    """One file to be fetched or sent."""

    path: str
    facts: FileFacts
    """Those of the source."""
    reason: Reason


@dataclass(frozen=True, slots=True)
class Removal:
    """One file or empty directory to be removed from the target."""

    path: str
    is_directory: bool


@dataclass(slots=True)
class Plan:
    """What is to be done, in the order of the fields."""

    replacements: list[Removal] = field(default_factory=list)
    """What is in the way: a directory where a file is to go, or the other way round."""
    directories: list[str] = field(default_factory=list)
    """To be made, parents first."""
    moves: list[Move] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    """What the source does not have, what is in a directory before the directory."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """What cannot be done without `delete`, with what is in the way."""
    unchanged: int = 0
    """Files that are the same."""

    @property
    def total_bytes(self) -> int:
        """Bytes to be moved, as far as sizes are known."""
        return sum(move.facts.size or 0 for move in self.moves)


def join(directory: str, name: str) -> str:
    """Give the path of an entry of a directory; "" is the root."""
    return f"{directory}/{name}" if directory else name


def parents(path: str) -> Iterator[str]:
    """Give the directories that lead to a path, the nearest first, without the root."""
    while (path := path.rpartition("/")[0]) != "":
        yield path


def is_safe(path: str) -> bool:
    """Tell whether a path stays below the root on either side, and fits into a command.

    The byte 255 is a command of Telnet (RFC 854), which many servers take out of what they read:
    another file might be meant then.
    """
    parts = path.split("/")
    fits = len(parts) <= MOST_DEPTH and "\udcff" not in path
    return fits and all(safe_name(part) for part in parts)


def to_compare(source: Tree, target: Tree) -> list[str]:
    """Give the files whose contents have to be compared where contents count."""
    return sorted(
        path
        for path, facts in source.files.items()
        if path in target.files and target.files[path].size == facts.size is not None
    )


def without_times(source: Tree, target: Tree) -> list[str]:
    """Give the files that only a time can tell apart, and of which no time is known yet."""
    return [
        path
        for path in to_compare(source, target)
        if source.files[path].modified is None or target.files[path].modified is None
    ]


def plan(source: Tree, target: Tree, rules: Rules, differing: Iterable[str] | None = None) -> Plan:
    """Decide what makes `target` like `source`.

    differing: with `rules.checksum`, those of `to_compare` whose contents differ or could not be
    compared. Nothing is removed if a part of the source could not be read: what seems to be
    missing there may be there. Every path is moved, removed or made once at most.
    """
    result = Plan()
    made = _Planning(source, target, rules, frozenset(differing or ()), result)
    for path in sorted(source.directories):
        made.directory(path)
    for path in sorted(source.files):
        made.file(path)
    if rules.delete and not source.unreadable and source.exists:
        made.remove_rest()
    return result


class _Planning:
    def __init__(
        self, source: Tree, target: Tree, rules: Rules, differing: frozenset[str], result: Plan
    ) -> None:
        self._source, self._target, self._rules = source, target, rules
        self._differing = differing
        self._plan = result
        self._gone: set[str] = set()
        """What `replacements` remove."""

    def directory(self, path: str) -> None:
        if self._is_blocked(path):
            return
        kind = self._kind(path)
        if kind == "directory":
            return
        if kind is not None and not self._make_way(path, kind):
            return
        self._plan.directories.append(path)

    def file(self, path: str) -> None:
        if self._is_blocked(path):
            return
        kind = self._kind(path)
        if kind in ("directory", "other") and not self._make_way(path, kind):
            return
        facts = self._source.files[path]
        there = self._target.files.get(path) if kind == "file" else None
        reason = Reason.NEW if there is None else self._difference(path, facts, there)
        if reason is None:
            self._plan.unchanged += 1
        else:
            self._plan.moves.append(Move(path, facts, reason))

    def remove_rest(self) -> None:
        target, kept = self._target, self._source
        removals = [Removal(path, False) for path in (*target.files, *target.others)]
        removals += [Removal(path, True) for path in target.directories]
        self._plan.removals = _deepest_first(
            removal
            for removal in removals
            if kept.kind(removal.path) is None
            and removal.path not in self._gone
            and not self._holds_unknown(removal.path)
        )

    def _holds_unknown(self, path: str) -> bool:
        """Tell whether there may be more in a directory than the tree tells."""
        unknown = (*self._target.unreadable, *self._target.partial)
        return any(_is_within(each, path) for each in unknown)

    def _difference(self, path: str, facts: FileFacts, there: FileFacts) -> Reason | None:
        if facts.size is None or facts.size != there.size:
            return Reason.SIZE
        if self._rules.checksum:
            return Reason.CONTENT if path in self._differing else None
        if facts.modified is None or there.modified is None:
            return None
        # FTP tells whole seconds (RFC 3659 section 2.3 allows more, few servers do).
        ours, theirs = int(facts.modified // 1), int(there.modified // 1)
        changed = ours != theirs if self._rules.keeps_times else ours > theirs
        return Reason.TIME if changed else None

    def _kind(self, path: str) -> str | None:
        return None if path in self._gone else self._target.kind(path)

    def _is_blocked(self, path: str) -> bool:
        return any(parent in self._plan.conflicts for parent in parents(path))

    def _make_way(self, path: str, kind: str) -> bool:
        """Have what is in the way removed, if that is allowed."""
        within = [each for each in self._below(path) if each not in self._gone]
        if not self._rules.delete or self._source.unreadable or self._holds_unknown(path):
            what = {"directory": "a directory", "file": "a file"}.get(kind, "no plain file")
            self._plan.conflicts[path] = f"the target has {what} of that name"
            return False
        removals = [Removal(each, each in self._target.directories) for each in (*within, path)]
        self._plan.replacements += _deepest_first(removals)
        self._gone.update(removal.path for removal in removals)
        return True

    def _below(self, path: str) -> list[str]:
        if path not in self._target.directories:
            return []
        target = self._target
        everything = (*target.files, *target.others, *target.directories)
        return [each for each in everything if each.startswith(f"{path}/")]


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _deepest_first(removals: Iterable[Removal]) -> list[Removal]:
    """Order removals so that a directory comes behind what is in it."""
    return sorted(removals, key=lambda each: (-each.path.count("/"), each.is_directory, each.path))
