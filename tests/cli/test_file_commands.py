"""`xftp ls`, `rm`, `rmdir`, `mkdir`, `mv`, and wildcards in URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Client, Place


def fill(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode("utf-8", "surrogateescape"))


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_rm_of_a_tree_follows_no_link(xftp: Client, place: Place) -> None:
    fill(place.path, "kept/file", "tree/a", "tree/.hidden", "tree/b/c/deep", "tree/\udcff?")
    (place.path / "tree/b/to kept").symlink_to(place.path / "kept")
    done = xftp("rm", place.url_of("tree"), expect=1)
    assert b"tree is a directory: rm -r removes it" in done.stderr
    xftp("rm", "-r", place.url_of("tree"), place.url_of("kept/missing"), expect=1)
    assert below(place.path) == ["kept", "kept/file"]
    (place.path / "link").symlink_to("kept")
    xftp("rm", "-r", place.url_of("link"))
    assert below(place.path) == ["kept", "kept/file"]


def test_what_cannot_be_removed_is_told_and_the_rest_goes(xftp: Client, place: Place) -> None:
    fill(place.path, "tree/a", "tree/two\nlines", "tree/z/b")
    done = xftp("rm", "-r", place.url_of("tree"), expect=1)
    assert b"RMD" in done.stderr  # the listing does not tell a name with a line end
    assert below(place.path) == ["tree", "tree/two\nlines"]


def test_a_name_that_telnet_would_cut_is_not_that_of_another_file(
    xftp: Client, place: Place
) -> None:
    cut = "bad\udcff\udcfe"
    fill(place.path, "bad", cut)
    xftp("get", place.url_of("bad%ff%fe"))
    assert (xftp.here / cut).read_bytes() == b"bad\xff\xfe"
    (xftp.here / cut).write_bytes(b"new")
    xftp("put", "--overwrite", cut, place.url)
    assert (place.path / cut).read_bytes() == b"new"
    xftp("mv", place.url_of("bad%ff%fe"), f"{place.name}/moved")
    fill(place.path, "\udcff\udcff")
    xftp("rm", place.url_of("%ff%ff"), place.url_of("b?d"))
    assert below(place.path) == ["moved"]
    (place.path / "moved").rename(place.path / cut)
    xftp("rm", "-r", place.url)
    assert not place.path.exists()


def test_directories(xftp: Client, place: Place) -> None:
    xftp("mkdir", place.url_of("a/b"), expect=1)
    xftp("mkdir", "-p", place.url_of("a/b/c"), place.url_of("a"))
    assert below(place.path) == ["a", "a/b", "a/b/c"]
    fill(place.path, "file")
    done = xftp("mkdir", "-p", place.url_of("file/x"), expect=1)
    assert b"MKD" in done.stderr
    xftp("rmdir", place.url_of("a/b"), place.url_of("a/b/c"), expect=1)
    assert below(place.path) == ["a", "a/b", "file"]


def test_mv_into_a_directory(xftp: Client, place: Place) -> None:
    fill(place.path, "one", "two", "three", "d/file")
    xftp("mv", place.url_of("one"), place.url_of("two"), f"{place.name}/d")
    xftp("mv", place.url_of("three"), place.url_of("d"))
    xftp("mv", place.url_of("d/file"), place.url_of("d/renamed"))
    assert below(place.path) == ["d", "d/one", "d/renamed", "d/three", "d/two"]
    xftp("mv", place.url_of("d/one"), place.url_of("d/two"), place.url_of("d/three"), expect=1)


@pytest.fixture
def several(place: Place) -> Place:
    fill(place.path, "run1/a.nc", "run1/b.nc", "run1/b.txt", "run2/c.nc", "run1/.d.nc", "run1/[a]")
    (place.path / "run1/e.nc").mkdir()
    return place


def test_get_with_wildcards(xftp: Client, several: Place) -> None:
    done = xftp("get", several.url_of("run?/*.nc"))
    assert below(xftp.here) == ["a.nc", "b.nc", "c.nc"]
    assert b"run1/e.nc: left out, it is a directory" in done.stderr
    done = xftp("get", several.url_of("run1/*.gz"), several.url_of("run1/b.t[x]t"), expect=1)
    assert b"*.gz: no such file on the server" in done.stderr
    assert (xftp.here / "b.txt").exists()
    done = xftp("get", "-o", "none", several.url_of("run1/[bc]*"), expect=2)
    assert b"several files need a directory" in done.stderr


@pytest.mark.parametrize("form", [("run1/%5Ba%5D",), ("-g", "run1/[a]"), ("run1/%5B[ab]]",)])
def test_signs_that_are_meant_literally(
    xftp: Client, several: Place, form: tuple[str, ...]
) -> None:
    *options, path = form
    xftp("get", *options, several.url_of(path))
    assert (xftp.here / "[a]").read_text() == "run1/[a]"
    assert below(xftp.here) == ["[a]"]


def test_ls_and_rm_with_wildcards(xftp: Client, several: Place) -> None:
    listed = xftp("ls", several.url_of("run*/?.nc")).stdout.decode().splitlines()
    assert [line.rpartition("/run")[2] for line in listed] == [
        "1/a.nc",
        "1/b.nc",
        "1/e.nc/",
        "2/c.nc",
    ]
    xftp("rm", several.url_of("run1/?.nc"), expect=1)  # one is a directory
    assert below(several.path / "run1") == [".d.nc", "[a]", "b.txt", "e.nc"]


def test_get_of_a_directory_says_what_fetches_it(xftp: Client, several: Place) -> None:
    with_slash = xftp("get", several.url_of("run1/"), expect=2).stderr.decode()
    without = xftp("get", several.url_of("run1"), expect=1).stderr.decode()
    for said in (with_slash, without):
        assert "is a directory: xftp mirror fetches it, xftp ls lists it" in said
    assert below(xftp.here) == []
