"""Which files a mirror takes: --include and --exclude.

A pattern has the signs of the shell: `*` and `?` stand for anything but "/", `**` for "/" too, and
`[...]` for one of a set. One without "/" is compared with the last part of a path, one with "/"
with the whole path from the root of the tree; one that ends in "/" names directories only. An
excluded directory is left out with all that is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    """Turn a pattern into a regular expression for a whole path or name."""
    out, at = [], 0
    while at < len(pattern):
        sign = pattern[at]
        at += 1
        if sign == "*":
            is_double = pattern.startswith("*", at)
            at += is_double
            if is_double and pattern.startswith("/", at):  # "**/x" is also x at the root
                at += 1
                out.append("(?:.*/)?")
            else:
                out.append(".*" if is_double else "[^/]*")
        elif sign == "?":
            out.append("[^/]")
        elif sign == "[" and (end := pattern.find("]", at + 1)) > 0:
            members = pattern[at:end].replace("\\", r"\\").replace("[", r"\[")
            if members[0] in "!^":
                members = "^" + members[1:]
            out.append(f"(?!/)[{members}]")
            at = end + 1
        else:
            out.append(re.escape(sign))
    return re.compile("".join(out), re.DOTALL)


def matches(pattern: str, path: str, *, is_directory: bool) -> bool:
    """Tell whether a pattern fits a path."""
    if pattern.endswith("/"):
        if not is_directory:
            return False
        pattern = pattern.rstrip("/")
    if "/" not in pattern:
        path = path.rpartition("/")[2]
    return _expression(pattern.removeprefix("/")).fullmatch(path) is not None


class Selection:
    """What is taken: all but what is excluded; an include takes back in what an exclude leaves out.

    With includes alone only files that fit one are taken, in whatever directory.
    """

    def __init__(self, includes: Sequence[str] = (), excludes: Sequence[str] = ()) -> None:
        """Take the patterns. Raises re.error for a set that is none, as in `[z-a]`."""
        self._includes, self._excludes = tuple(includes), tuple(excludes)
        for pattern in (*self._includes, *self._excludes):
            _expression(pattern)

    def takes(self, path: str, *, is_directory: bool) -> bool:
        """Tell whether a file is taken, or a directory is looked into."""
        if any(matches(each, path, is_directory=is_directory) for each in self._includes):
            return True
        if any(matches(each, path, is_directory=is_directory) for each in self._excludes):
            return False
        return is_directory or not self._includes or bool(self._excludes)
