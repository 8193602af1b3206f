"""curl against xftpd."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .programs import NAMES, PASSWORD, USER, Ended, Site, both_families, find

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000
LONG = 40 * MEGABYTE
"""More than the sockets of both ends hold, so that a limit on the rate is felt at both."""
SLOWLY = ("--limit-rate", "1M")
PASSIVE: list[str] = []
ACTIVE = ["--ftp-port", "-"]


def curl(site: Site, *arguments: str | bytes, check: bool = True) -> Ended:
    return site.run(*command(*arguments), check=check)


def command(*arguments: str | bytes) -> tuple[str | bytes, ...]:
    # A dot segment or a bracket of a URL is to arrive as it is written.
    return (find("curl"), "-q", "-sS", "-v", "-g", "--path-as-is", *arguments)


# -- listings ------------------------------------------------------------------------------------


def test_list(site: Site) -> None:
    site.give("some name.bin", 1234)
    (site.there / "folder").mkdir()

    lines = curl(site, f"{site.url}/").lines

    assert [line.split()[0][0] for line in lines] == ["d", "-"]
    assert lines[0].endswith(" folder")
    assert lines[1].endswith(" some name.bin")
    assert lines[1].split()[4] == "1234"


def test_list_of_names(site: Site) -> None:
    site.give("b", 1)
    site.give("a", 1)

    assert curl(site, "--list-only", f"{site.url}/").lines == ["a", "b"]


def test_list_of_an_empty_folder(site: Site) -> None:
    assert curl(site, f"{site.url}/").output == b""


# -- there and back ------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize(
    ("options", "verb"),
    [(PASSIVE, "EPSV"), (ACTIVE, "EPRT")],
    ids=["passive", "active"],
)
def test_there_and_back(site: Site, options: list[str], verb: str) -> None:
    data = site.make("up.bin", 3 * MEGABYTE + 17)

    curl(site, *options, "-T", "up.bin", f"{site.url}/")
    curl(site, *options, "-o", "down.bin", f"{site.url}/up.bin")

    assert (site.there / "up.bin").read_bytes() == data
    assert (site.here / "down.bin").read_bytes() == data
    assert site.commands().count(verb) == 2


@pytest.mark.parametrize(
    ("options", "verb"),
    [(["--disable-epsv"], "PASV"), ([*ACTIVE, "--disable-eprt"], "PORT")],
    ids=["PASV", "PORT"],
)
def test_old_commands_for_data_connections(site: Site, options: list[str], verb: str) -> None:
    data = site.give("a", 100_000)

    assert curl(site, *options, f"{site.url}/a").output == data
    assert verb in site.commands()


@pytest.mark.parametrize("size", [0, 1, 8192])
def test_odd_sizes(site: Site, size: int) -> None:
    data = site.make("a", size)

    curl(site, "-T", "a", f"{site.url}/")

    assert (site.there / "a").read_bytes() == data
    assert curl(site, f"{site.url}/a").output == data


def test_upload_of_unknown_size(site: Site) -> None:
    site.run(*command("-T", "-", f"{site.url}/a"), stdin=b"from a pipe")

    assert (site.there / "a").read_bytes() == b"from a pipe"


def test_several_urls_on_one_connection(site: Site) -> None:
    wanted = {f"{number}.bin": site.give(f"{number}.bin", 50_000, number) for number in range(5)}

    curl(site, "--remote-name-all", *(f"{site.url}/{name}" for name in wanted))

    assert {path.name: path.read_bytes() for path in site.here.glob("*.bin")} == wanted
    assert site.session_count() == 1


def test_several_urls_at_once(site: Site) -> None:
    wanted = {f"{number}.bin": site.give(f"{number}.bin", 50_000, number) for number in range(8)}

    curl(site, "--parallel", "--remote-name-all", *(f"{site.url}/{name}" for name in wanted))

    assert {path.name: path.read_bytes() for path in site.here.glob("*.bin")} == wanted


def test_user_with_password(site: Site) -> None:
    data = site.give("a", 1000)
    login = ("--user", f"{USER}:{PASSWORD}")

    assert curl(site, *login, f"{site.url}/a").output == data
    wrong = curl(site, "--user", f"{USER}:wrong", f"{site.url}/a", check=False)
    assert wrong.code == 67  # "the user name or password was not accepted"


def test_text(site: Site) -> None:
    (site.there / "a.txt").write_bytes(b"one\ntwo\n")
    (site.here / "b.txt").write_bytes(b"three\nfour\n")

    # curl undoes the line ends of the network in what it receives, and makes none in what it sends.
    assert curl(site, f"{site.url}/a.txt;type=a").output == b"one\ntwo\n"
    assert "(8 bytes)" not in site.log()
    curl(site, "-T", "b.txt", f"{site.url}/b.txt;type=a")
    assert (site.there / "b.txt").read_bytes() == b"three\nfour\n"


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Path]:
    """Give a file of 300 MB, random and removed again."""
    path = tmp_path / "large.bin"
    with open("/dev/urandom", "rb") as source, path.open("wb") as target:
        for _ in range(300):
            target.write(source.read(MEGABYTE))
    yield path
    path.unlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def test_300_megabytes(site: Site, large: Path) -> None:
    wanted = _digest(large)
    stored, fetched = site.there / "large.bin", site.here / "back.bin"
    try:
        curl(site, "-T", str(large), f"{site.url}/")
        assert _digest(stored) == wanted
        curl(site, "-o", "back.bin", f"{site.url}/large.bin")
        assert _digest(fetched) == wanted
    finally:
        stored.unlink(missing_ok=True)
        fetched.unlink(missing_ok=True)


# -- parts of files ------------------------------------------------------------------------------


def test_resume_of_a_cut_download(site: Site) -> None:
    data = site.give("a", LONG)
    partial = site.here / "a"
    site.kill_when(
        lambda: partial.exists() and partial.stat().st_size > 200_000,
        "curl has a part of the file",
        *command(*SLOWLY, "-O", f"{site.url}/a"),
    )
    part = partial.read_bytes()
    assert data.startswith(part)
    assert len(part) < len(data)

    curl(site, "-C", "-", "-O", f"{site.url}/a")

    assert partial.read_bytes() == data
    assert "REST" in site.commands()


def test_resume_of_a_complete_download(site: Site) -> None:
    data = site.give("a", 1000)
    (site.here / "a").write_bytes(data)

    curl(site, "-C", "-", "-O", f"{site.url}/a")

    assert (site.here / "a").read_bytes() == data


def test_resume_of_a_cut_upload(site: Site) -> None:
    data = site.make("a", LONG)
    site.kill_when(
        lambda: site.part_size("a") > 200_000,
        "the server has a part of the file",
        *command(*SLOWLY, "-T", "a", f"{site.url}/"),
    )
    kept = site.part_size("a")
    assert not (site.there / "a").exists()
    assert 0 < kept < len(data)
    assert f"Content-Length: {kept}\r\n" in curl(site, "-I", f"{site.url}/a").text

    curl(site, "-C", "-", "-T", "a", f"{site.url}/")

    assert (site.there / "a").read_bytes() == data
    assert site.part_size("a") == 0
    assert "APPE" in site.commands()


def test_upload_without_resume_after_a_cut_one(site: Site) -> None:
    site.make("a", LONG)
    site.kill_when(
        lambda: site.part_size("a") > 200_000,
        "the server has a part of the file",
        *command(*SLOWLY, "-T", "a", f"{site.url}/"),
    )
    data = site.make("a", 1000, seed=3)

    curl(site, "-T", "a", f"{site.url}/")

    assert (site.there / "a").read_bytes() == data


def test_append(site: Site) -> None:
    old = site.give("a", 1000)
    new = site.make("more", 500)

    curl(site, "--append", "-T", "more", f"{site.url}/a")

    assert (site.there / "a").read_bytes() == old + new


@pytest.mark.parametrize(
    ("range_", "part"),
    [
        ("100-199", slice(100, 200)),
        ("2999000-", slice(2_999_000, None)),
        ("-500", slice(-500, None)),
        ("0-0", slice(0, 1)),
    ],
)
def test_range(site: Site, range_: str, part: slice) -> None:
    data = site.give("a", 3 * MEGABYTE)

    # The second URL shows that the session lives on after a range that was cut short.
    output = curl(site, "-r", range_, f"{site.url}/a", f"{site.url}/a").output

    assert output == data[part] * 2


# -- names and paths -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names(site: Site, name: bytes) -> None:
    data = site.make("up", 1000)
    url = f"{site.url}/" + "".join(f"%{byte:02x}" for byte in name)

    curl(site, "-T", "up", url)

    stored = bytes(site.there) + b"/" + name
    with open(stored, "rb") as file:
        assert file.read() == data
    assert curl(site, url).output == data
    assert curl(site, "--list-only", f"{site.url}/").output == name + b"\n"


@pytest.mark.parametrize("method", ["multicwd", "singlecwd", "nocwd"])
def test_ways_through_folders(site: Site, method: str) -> None:
    data = site.make("up", 1000)
    (site.there / "a" / "b c").mkdir(parents=True)
    url = f"{site.url}/a/b%20c/up"

    curl(site, "--ftp-method", method, "-T", "up", url)

    assert (site.there / "a" / "b c" / "up").read_bytes() == data
    assert curl(site, "--ftp-method", method, url).output == data


def test_new_folders(site: Site) -> None:
    data = site.make("up", 1000)

    curl(site, "--ftp-create-dirs", "-T", "up", f"{site.url}/a/b%20c/up")

    assert (site.there / "a" / "b c" / "up").read_bytes() == data


# -- files and their properties ------------------------------------------------------------------


def test_rename(site: Site) -> None:
    data = site.give("old name", 1000)

    folder = site.there.name
    quotes = ("-Q", f"RNFR {folder}/old name", "-Q", f"RNTO {folder}/new name")
    curl(site, *quotes, f"{site.url}/")

    assert (site.there / "new name").read_bytes() == data
    assert not (site.there / "old name").exists()


def test_delete(site: Site) -> None:
    site.give("a", 1000)

    curl(site, "-Q", f"DELE {site.there.name}/a", f"{site.url}/")

    assert not (site.there / "a").exists()


def test_make_and_remove_a_directory(site: Site) -> None:
    folder = f"{site.there.name}/new"

    curl(site, "-Q", f"MKD {folder}", f"{site.url}/")
    assert (site.there / "new").is_dir()
    curl(site, "-Q", f"RMD {folder}", f"{site.url}/")
    assert not (site.there / "new").exists()


def test_size_and_time(site: Site) -> None:
    site.give("a", 4321)

    headers = curl(site, "-I", f"{site.url}/a").text
    curl(site, "--remote-time", "-O", f"{site.url}/a")

    assert "Content-Length: 4321\r\n" in headers
    assert "Accept-ranges: bytes\r\n" in headers
    assert "Last-Modified: " in headers
    assert int((site.here / "a").stat().st_mtime) == int((site.there / "a").stat().st_mtime)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["{}/missing"], 78),  # "the resource referenced in the URL does not exist"
        (["{}/missing/a"], 9),  # "access denied": the directory cannot be entered
        (["-T", "/dev/null", "{}/missing/a"], 9),
        (["-T", "/dev/null", "{}/folder"], 25),  # "the server denied the STOR command"
        (["-Q", "FOO", "{}/"], 21),  # "a command was answered with an error"
        (["{}/folder"], 78),
    ],
)
def test_errors(site: Site, arguments: list[str], code: int) -> None:
    (site.there / "folder").mkdir()

    assert curl(site, *(word.format(site.url) for word in arguments), check=False).code == code


def test_session_goes_on_after_an_error(site: Site) -> None:
    data = site.give("a", 1000)

    ended = curl(site, f"{site.url}/missing", f"{site.url}/a", check=False)

    assert ended.output == data
    assert site.session_count() == 1


# -- hashes --------------------------------------------------------------------------------------


def test_hashes_by_quote(site: Site) -> None:
    data = site.give("a.bin", 123_456)
    asked = ["-OPTS HASH MD5", "-RANG 10 49", "-HASH a.bin", "-XSHA1 a.bin"]
    quotes = [word for command in asked for word in ("-Q", command)]

    said = curl(site, *quotes, f"{site.url}/a.bin")

    assert said.output == data
    assert f"213 MD5 10-49 {hashlib.md5(data[10:50]).hexdigest()} a.bin" in said.errors
    assert f"250 {hashlib.sha1(data).hexdigest().upper()}" in said.errors
