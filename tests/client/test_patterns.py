"""--include and --exclude."""

from __future__ import annotations

import re

import pytest

from xftp.client.patterns import Selection, matches


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.tmp", "a/b.tmp", True),
        ("*.tmp", "a.tmp/b", False),
        ("a/*.c", "a/x.c", True),
        ("a/*.c", "a/b/x.c", False),
        ("a/**/x.c", "a/b/c/x.c", True),
        ("a/**/x.c", "a/x.c", True),
        ("**/x.c", "x.c", True),
        ("/x", "x", True),
        ("/x", "a/x", False),
        ("?", "ä", True),
        ("a?b/", "a/b", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[", "[", True),
        ("a.b", "axb", False),
        ("*", "\udcff", True),
        ("*", "a\nb", True),
    ],
)
def test_patterns(pattern: str, path: str, fits: bool) -> None:
    assert matches(pattern, path, is_directory=False) is fits


def test_a_slash_at_the_end_means_directories() -> None:
    assert matches("cache/", "a/cache", is_directory=True)
    assert not matches("cache/", "a/cache", is_directory=False)


@pytest.mark.parametrize(
    ("includes", "excludes", "taken"),
    [
        ([], [], ["a.c", "b.o", "d/", "d/e.c"]),
        ([], ["*.o"], ["a.c", "d/", "d/e.c"]),
        (["*.c"], [], ["a.c", "d/", "d/e.c"]),
        (["b.o"], ["*.o"], ["a.c", "b.o", "d/", "d/e.c"]),
        (["a.c"], ["*"], ["a.c"]),
        ([], ["d/"], ["a.c", "b.o", "d/e.c"]),  # not looked into, as d/ is not taken
    ],
)
def test_what_is_taken(includes: list[str], excludes: list[str], taken: list[str]) -> None:
    selection = Selection(includes, excludes)
    found = [
        path
        for path in ("a.c", "b.o", "d/", "d/e.c")
        if selection.takes(path.rstrip("/"), is_directory=path.endswith("/"))
    ]
    assert found == taken


def test_a_set_that_is_none_is_refused() -> None:
    with pytest.raises(re.error):
        Selection(["[z-a]"])
