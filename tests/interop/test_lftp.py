"""lftp against xftpd."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

import pytest

from .programs import NAMES, PASSWORD, USER, Ended, Site, both_families, content, find

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000
LONG = 20 * MEGABYTE
SETTINGS = (
    "set cmd:fail-exit yes",
    "set net:max-retries 1",
    "set net:timeout 30",
    "set cmd:interactive no",
)
SLOWLY = "set net:limit-rate 2M"


def lftp(site: Site, *script: str, check: bool = True) -> Ended:
    return site.run(*command(site, *script), check=check)


def command(site: Site, *script: str) -> tuple[str, ...]:
    """Give the command line of a script that runs in the test's folder on the server."""
    return (find("lftp"), "--norc", "-d", "-c", "; ".join([*SETTINGS, f"open {site.url}", *script]))


def quoted(name: bytes | str) -> str:
    """Quote a name for lftp's command line."""
    text = name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# -- listings ------------------------------------------------------------------------------------


def test_listings(site: Site) -> None:
    site.give("some name.bin", 1234)
    (site.there / "folder").mkdir()

    long_lines = lftp(site, "ls").lines
    assert [line[0] for line in long_lines] == ["d", "-"]
    assert long_lines[1].split()[4] == "1234"
    assert lftp(site, "cls").lines == ["folder/", "some name.bin"]
    assert lftp(site, "nlist").lines == ["folder", "some name.bin"]
    assert lftp(site, "find").lines == ["./", "./folder/", "./some name.bin"]
    assert lftp(site, "ls -la folder").lines == []


@pytest.mark.parametrize("use_mlsd", ["yes", "no"])
def test_size_and_time_from_listings(site: Site, use_mlsd: str) -> None:
    site.give("a", 1234)
    clock = ("set ftp:use-mlsd " + use_mlsd, "set cmd:time-style %Y-%m-%dT%H:%M")
    (site.there / "a").touch()

    line = lftp(site, *clock, "cls -l --sort=name").lines

    assert len(line) == 1 and " 1234 " in line[0]
    assert ("MLSD" in site.commands()) == (use_mlsd == "yes")


# -- there and back ------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("passive", [True, False], ids=["passive", "active"])
def test_there_and_back(site: Site, passive: bool) -> None:
    data = site.make("up.bin", 3 * MEGABYTE + 17)
    mode = f"set ftp:passive-mode {'yes' if passive else 'no'}"

    lftp(site, mode, "put up.bin", "get up.bin -o down.bin")

    assert (site.there / "up.bin").read_bytes() == data
    assert (site.here / "down.bin").read_bytes() == data
    verbs = {
        (True, False): "PASV",
        (True, True): "EPSV",
        (False, False): "PORT",
        (False, True): "EPRT",
    }
    assert site.commands().count(verbs[passive, site.is_ipv6]) == 2
    assert max(site.replies()) < 400


def test_epsv_by_wish(site: Site) -> None:
    data = site.give("a", 1000)

    assert lftp(site, "set ftp:prefer-epsv yes", "cat a").output == data
    assert "EPSV" in site.commands()


def test_user_with_password(site: Site) -> None:
    data = site.give("a", 1000)
    folder = quoted(site.there.name)
    login = f"user {USER} {quoted(PASSWORD)}"

    assert lftp(site, "open " + site.daemon.url, login, f"cd {folder}", "cat a").output == data
    wrong = lftp(site, "open " + site.daemon.url, f"user {USER} wrong", "ls", check=False)
    assert wrong.code != 0
    assert "Login incorrect" in wrong.errors


@pytest.mark.parametrize("size", [0, 1, 8192])
def test_odd_sizes(site: Site, size: int) -> None:
    data = site.make("a", size)

    lftp(site, "put a", "get a -o b")

    assert (site.there / "a").read_bytes() == data
    assert (site.here / "b").read_bytes() == data


def test_text(site: Site) -> None:
    (site.there / "a.txt").write_bytes(b"one\ntwo\n")
    (site.here / "b.txt").write_bytes(b"three\nfour\n")

    lftp(site, "get -a a.txt", "put -a b.txt")

    assert (site.here / "a.txt").read_bytes() == b"one\ntwo\n"
    assert (site.there / "b.txt").read_bytes() == b"three\nfour\n"
    assert "(8 bytes)" not in site.log()


def test_times_are_kept(site: Site) -> None:
    site.make("up", 1000)
    source = site.here / "up"
    source.touch()

    lftp(site, "put up", "get up -o down")

    wanted = int(source.stat().st_mtime)
    assert int((site.there / "up").stat().st_mtime) == wanted
    assert int((site.here / "down").stat().st_mtime) == wanted


# -- parts of files ------------------------------------------------------------------------------


def test_resume_of_a_cut_download(site: Site) -> None:
    data = site.give("a", LONG)
    partial = site.here / "a"
    site.kill_when(
        lambda: partial.exists() and partial.stat().st_size > 200_000,
        "lftp has a part of the file",
        *command(site, SLOWLY, "get a"),
    )
    part = partial.read_bytes()
    assert data.startswith(part)
    assert len(part) < len(data)

    lftp(site, "get -c a")

    assert partial.read_bytes() == data
    assert "REST" in site.commands()


def test_resume_of_a_cut_upload(site: Site) -> None:
    data = site.make("a", LONG)
    site.kill_when(
        lambda: site.part_size("a") > 200_000,
        "the server has a part of the file",
        *command(site, SLOWLY, "put a"),
    )
    kept = site.part_size("a")
    assert not (site.there / "a").exists()
    assert 0 < kept < len(data)

    lftp(site, "put -c a")

    assert (site.there / "a").read_bytes() == data
    assert site.part_size("a") == 0
    assert f"REST {kept}" in site.log()


def test_resume_into_a_complete_file(site: Site) -> None:
    data = site.make("a", 100_000)
    (site.there / "a").write_bytes(data[:40_000])

    lftp(site, "put -c a")

    assert (site.there / "a").read_bytes() == data
    assert "REST 40000" in site.log()


def test_resume_with_nothing_left(site: Site) -> None:
    data = site.make("a", 1000)
    (site.there / "a").write_bytes(data)

    lftp(site, "put -c a", "get -c a")

    assert (site.there / "a").read_bytes() == data
    assert (site.here / "a").read_bytes() == data


def test_pget(site: Site) -> None:
    data = site.give("a", LONG)

    # Slow enough for the other three to log in before the first has it all.
    lftp(site, "set net:limit-rate 4M", "pget -n 4 a")

    assert (site.here / "a").read_bytes() == data
    assert site.session_count() == 4
    assert site.commands().count("REST") == 3


def test_pget_goes_on_after_a_cut(site: Site) -> None:
    data = site.give("a", LONG)
    status = site.here / "a.lftp-pget-status"
    often = "set pget:save-status 0.05s"
    # At this rate the last of four parts starts at once: the file has its full length early.
    site.kill_when(
        lambda: status.exists() and (site.here / "a").stat().st_blocks * 512 > 200_000,
        "lftp has parts of the file",
        *command(site, SLOWLY, often, "pget -n 4 a"),
    )

    lftp(site, "pget -c -n 4 a")

    assert (site.here / "a").read_bytes() == data


# -- trees ---------------------------------------------------------------------------------------


def _plant(root: Path) -> dict[str, bytes]:
    """Make a small tree; give the content of its files."""
    files = {
        "top.bin": content(10_000, 1),
        "empty": b"",
        "one/two words.bin": content(100_000, 2),
        "one/two/größe.bin": content(1, 3),
        "one/two/three/-l": content(8192, 4),
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "nothing in it").mkdir()
    return files


def _files(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@both_families
def test_mirror_down(site: Site) -> None:
    wanted = _plant(site.there / "tree")

    lftp(site, "mirror tree copy")

    assert _files(site.here / "copy") == wanted
    assert (site.here / "copy" / "nothing in it").is_dir()


@pytest.mark.parametrize("at_once", [1, 4])
def test_mirror_up(site: Site, at_once: int) -> None:
    wanted = _plant(site.here / "tree")

    lftp(site, f"mirror --reverse --parallel={at_once} tree copy")
    assert _files(site.there / "copy") == wanted
    assert (site.there / "copy" / "nothing in it").is_dir()

    # Times and sizes are those of the source: nothing is left to do.
    assert site.commands().count("STOR") == len(wanted)
    lftp(site, "mirror --reverse tree copy")
    assert site.commands().count("STOR") == len(wanted)

    (site.here / "tree" / "one" / "two words.bin").unlink()
    lftp(site, "mirror --reverse --delete tree copy")
    assert _files(site.there / "copy").keys() == wanted.keys() - {"one/two words.bin"}


def test_mirror_with_large_files_in_parts(site: Site) -> None:
    (site.there / "tree").mkdir()
    data = site.give("tree/large", LONG)

    lftp(site, "mirror --use-pget-n=3 tree copy")

    assert (site.here / "copy" / "large").read_bytes() == data


def test_mirror_up_goes_on_after_a_cut(site: Site) -> None:
    (site.here / "tree").mkdir()
    data = site.make("tree/large", LONG)
    site.kill_when(
        lambda: site.part_size("tree/large") > 200_000,
        "the server has a part of the file",
        *command(site, SLOWLY, "mirror --reverse tree"),
    )

    lftp(site, "mirror --reverse --continue tree")

    assert (site.there / "tree" / "large").read_bytes() == data


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names(site: Site, name: bytes) -> None:
    data = site.make("up", 1000)

    lftp(site, f"put up -o {quoted(name)}")

    with open(bytes(site.there) + b"/" + name, "rb") as file:
        assert file.read() == data
    lftp(site, f"get {quoted(b'./' + name)} -o down")
    assert (site.here / "down").read_bytes() == data
    assert lftp(site, "nlist").output == name + b"\n"
    lftp(site, f"mv {quoted(name)} other", f"mv other {quoted(name)}", f"rm -- {quoted(name)}")
    assert list(site.there.iterdir()) == []


def test_patterns(site: Site) -> None:
    wanted = {f"{number}.bin": site.give(f"{number}.bin", 1000, number) for number in range(3)}
    site.give("other", 1)

    lftp(site, "mget *.bin")

    assert {path.name: path.read_bytes() for path in site.here.glob("*.bin")} == wanted


# -- files and their properties ------------------------------------------------------------------


def test_rename_and_delete(site: Site) -> None:
    data = site.give("old name", 1000)

    lftp(site, 'mv "old name" "new name"')
    assert (site.there / "new name").read_bytes() == data
    assert not (site.there / "old name").exists()

    lftp(site, 'rm "new name"')
    assert not (site.there / "new name").exists()


def test_directories(site: Site) -> None:
    lftp(site, "mkdir -p one/two", "cd one/two", "put /dev/null -o a", "pwd")
    assert (site.there / "one" / "two" / "a").is_file()

    assert lftp(site, "rmdir one", check=False).code != 0
    lftp(site, "rm -r one")
    assert not (site.there / "one").exists()


def test_mode(site: Site) -> None:
    site.give("a", 1)

    lftp(site, "chmod 640 a")

    assert (site.there / "a").stat().st_mode & 0o777 == 0o640


def test_missing_file(site: Site) -> None:
    ended = lftp(site, "get missing", check=False)

    assert ended.code == 1
    assert "550" in ended.errors


# -- hashes --------------------------------------------------------------------------------------


def test_hashes_by_quote(site: Site) -> None:
    data = site.give("some name.bin", 123_456)
    path = "some name.bin"
    said = lftp(
        site,
        "quote OPTS HASH CRC32",
        "quote RANG 0 99",
        f"quote HASH {path}",
        f"quote XSHA256 {path}",
    ).text
    assert f"213 CRC32 0-99 {zlib.crc32(data[:100]):08x} {path}" in said
    assert f"250 {hashlib.sha256(data).hexdigest().upper()}" in said
