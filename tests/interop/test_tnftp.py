"""tnftp, the client of BSD, against xftpd."""

from __future__ import annotations

import pytest

from .programs import PASSWORD, USER, Ended, Site, both_families, find

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000
LONG = 20 * MEGABYTE


def tnftp(site: Site, *script: str, options: tuple[str, ...] = ()) -> Ended:
    """Run a script in the test's folder on the server; it goes on after an error."""
    lines = ["user anonymous me@here", f"cd {site.there.name}", *script, "quit"]
    command = (find("tnftp"), "-n", "-i", "-v", *options, *site.address)
    return site.run(*command, stdin="".join(f"{line}\n" for line in lines).encode(), check=False)


# -- there and back ------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize(
    ("options", "verb"), [(("-p",), "EPSV"), (("-A",), "EPRT")], ids=["passive", "active"]
)
def test_there_and_back(site: Site, options: tuple[str, ...], verb: str) -> None:
    data = site.make("up.bin", 3 * MEGABYTE + 17)

    tnftp(site, "put up.bin", "get up.bin down.bin", options=options)

    assert (site.there / "up.bin").read_bytes() == data
    assert (site.here / "down.bin").read_bytes() == data
    assert site.commands().count(verb) == 2


@pytest.mark.parametrize(("options", "verb"), [(("-p",), "PASV"), (("-A",), "PORT")])
def test_old_commands_for_data_connections(site: Site, options: tuple[str, ...], verb: str) -> None:
    data = site.give("a", 100_000)

    tnftp(site, "epsv4 off", "get a", options=options)

    assert (site.here / "a").read_bytes() == data
    assert verb in site.commands()


@both_families
def test_urls(site: Site) -> None:
    data = site.make("up.bin", 100_000)

    site.run(find("tnftp"), "-u", f"{site.url}/up.bin", "up.bin")
    site.run(find("tnftp"), "-o", "down.bin", f"{site.url}/up.bin")

    assert (site.there / "up.bin").read_bytes() == data
    assert (site.here / "down.bin").read_bytes() == data


def test_user_with_password(site: Site) -> None:
    data = site.give("a", 1000)
    command = (find("tnftp"), "-n", "-i", "-v", *site.address)
    login = f'user {USER} "{PASSWORD}"\ncd {site.there.name}\nget a\nquit\n'

    site.run(*command, stdin=login.encode(), check=False)

    assert (site.here / "a").read_bytes() == data


def test_many_files(site: Site) -> None:
    wanted = {f"{number}.bin": site.make(f"{number}.bin", 1000, number) for number in range(4)}

    tnftp(site, "mput *.bin")
    assert {path.name: path.read_bytes() for path in site.there.iterdir()} == wanted

    for name in wanted:
        (site.here / name).unlink()
    tnftp(site, "mget *.bin")
    assert {path.name: path.read_bytes() for path in site.here.glob("*.bin")} == wanted


def test_text(site: Site) -> None:
    (site.there / "a.txt").write_bytes(b"one\ntwo\n")
    (site.here / "b.txt").write_bytes(b"three\nfour\n")

    tnftp(site, "ascii", "get a.txt", "put b.txt")

    assert (site.here / "a.txt").read_bytes() == b"one\ntwo\n"
    assert (site.there / "b.txt").read_bytes() == b"three\nfour\n"
    assert "10 bytes in" in site.log()


# -- listings ------------------------------------------------------------------------------------


def test_listings(site: Site) -> None:
    site.give("some name.bin", 1234)
    (site.there / "folder").mkdir()

    lines = tnftp(site, "ls", "nlist", "mlsd", "mlst folder", "ls -la folder", "pwd").lines

    assert any(line.startswith("-rw") and line.endswith(" some name.bin") for line in lines)
    assert any(line.startswith("drw") and line.endswith(" folder") for line in lines)
    assert "some name.bin" in lines
    assert any(line.startswith("type=file;size=1234;") for line in lines)
    assert any(
        "type=dir;" in line and line.endswith(f"/{site.there.name}/folder") for line in lines
    )
    assert f"Remote directory: /{site.there.name}" in lines
    assert not any(code >= 500 for code in site.replies())


# -- parts of files ------------------------------------------------------------------------------


def test_resume_of_a_cut_download(site: Site) -> None:
    data = site.give("a", LONG)
    partial = site.here / "a"
    site.kill_when(
        lambda: partial.exists() and partial.stat().st_size > 200_000,
        "tnftp has a part of the file",
        find("tnftp"),
        "-T",
        "get,1048576",
        "-o",
        "a",
        f"{site.url}/a",
    )
    assert len(partial.read_bytes()) < len(data)

    tnftp(site, "reget a")

    assert partial.read_bytes() == data
    assert "REST" in site.commands()


def test_restart_of_a_cut_upload(site: Site) -> None:
    data = site.make("a", LONG)
    site.kill_when(
        lambda: site.part_size("a") > 200_000,
        "the server has a part of the file",
        find("tnftp"),
        "-T",
        "put,1048576",
        "-u",
        f"{site.url}/a",
        "a",
    )
    kept = site.part_size("a")
    assert 0 < kept < len(data)

    lines = tnftp(site, "binary", "size a", f"restart {kept}", "put a").lines

    assert any(line.split()[-1:] == [str(kept)] for line in lines)
    assert (site.there / "a").read_bytes() == data
    assert "REST" in site.commands()


def test_append(site: Site) -> None:
    old = site.give("a", 1000)
    new = site.make("more", 500)

    tnftp(site, "append more a")

    assert (site.there / "a").read_bytes() == old + new


# -- names, files and their properties -----------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["two words", "größe ☃ 日本.bin", "#[1] ~'.bin", "x" * 100], ids=range(4)
)
def test_names(site: Site, name: str) -> None:
    data = site.make("up", 1000)

    tnftp(site, f'put up "{name}"', f'get "{name}" down', "nlist . names")

    assert (site.there / name).read_bytes() == data
    assert (site.here / "down").read_bytes() == data
    assert (site.here / "names").read_text().splitlines() == [name]


def test_files_and_directories(site: Site) -> None:
    data = site.give("old name", 4321)

    lines = tnftp(
        site,
        'rename "old name" new',
        "binary",
        "size new",
        "modtime new",
        "chmod 640 new",
        "mkdir folder",
        "mkdir other",
        "rmdir other",
        "cd folder",
        "cdup",
        "system",
        "rhelp",
        "rstatus",
        "features",
        "quote NOOP",
    ).lines

    assert (site.there / "new").read_bytes() == data
    assert (site.there / "new").stat().st_mode & 0o777 == 0o640
    assert any(line.split() == ["new", "4321"] for line in lines)
    assert {path.name for path in site.there.iterdir()} == {"new", "folder"}
    assert not any(code >= 400 for code in site.replies())

    tnftp(site, "delete new")
    assert not (site.there / "new").exists()


def test_session_goes_on_after_errors(site: Site) -> None:
    data = site.give("a", 1000)

    tnftp(site, "get missing", "cd missing", "put missing", "rmdir missing", "get a")

    assert (site.here / "a").read_bytes() == data
    assert site.session_count() == 1
