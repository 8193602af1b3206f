import pytest

from xftp.client.listing import parse_list
from xftp.errors import ReplyError

from .scripted import Handler, epsv, scripted, sends, session_with

UNIX = (
    "total 12\r\n"
    "drwxr-xr-x   2 0 0     4096 Jan  5  2020 dir\r\n"
    "-rw-r--r--   1 me us     17 Jan  5  2020 two words\r\n"
    "lrwxrwxrwx   1 0 0        5 Jan  5  2020 link -> there\r\n"
    "-rw-r--r--   1 0 0        1 Jan  5  2020 \udcff\r\n"
    "drwxr-xr-x   2 0 0     4096 Jan  5  2020 ..\r\n"
    "rubbish\r\n"
)
MLSD = (
    "type=cdir; .\r\n"
    "type=pdir; ..\r\n"
    "type=dir;modify=20200105000000; dir\r\n"
    "type=file;size=17;modify=20200105000000; two words\r\n"
    "no name\r\n"
    "type=file;size=1; \udcff\r\n"
)


def wire(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def test_list_lines_are_read() -> None:
    entries = parse_list(UNIX.split("\r\n"))
    assert [(entry.name, entry.kind, entry.size) for entry in entries] == [
        ("dir", "dir", 4096),
        ("two words", "file", 17),
        ("link", "link", 5),
        ("\udcff", "file", 1),
    ]
    assert entries[0].modified == 1578182400


def test_windows_list_lines_are_read() -> None:
    (entry,) = parse_list(["01/05/2020  12:00 AM    1,234 file name"])
    assert (entry.name, entry.kind, entry.size) == ("file name", "file", 1234)


async def test_mlsd_is_used_where_the_server_has_it() -> None:
    script: dict[str, Handler] = {
        "FEAT": "211-\r\n MLST type*;size*;\r\n211 end",
        "EPSV": epsv,
        "MLSD": sends(wire(MLSD)),
    }
    async with scripted(script) as server, session_with(server) as session:
        entries = await session.list("some where")
        assert "MLSD some where" in server.heard
    assert [entry.name for entry in entries] == ["dir", "two words", "\udcff"]
    assert entries[1].size == 17


async def test_list_is_used_where_the_server_has_no_mlsd() -> None:
    script: dict[str, Handler] = {"EPSV": epsv, "LIST": sends(wire(UNIX))}
    async with scripted(script) as server, session_with(server) as session:
        assert len(await session.list("-la")) == 4
        assert (await session.list_text()).startswith("total 12\ndrwx")
        assert "LIST ./-la" in server.heard
        server.script["LIST"] = "450 no files found"
        assert await session.list() == []


async def test_mlsd_of_a_file_is_the_file() -> None:
    script: dict[str, Handler] = {
        "FEAT": "211-\r\n MLST type*;size*;\r\n211 end",
        "EPSV": epsv,
        "MLSD": "501 not a directory",
        "MLST": "250-\r\n type=file;size=3; /a/b\r\n250 end",
    }
    async with scripted(script) as server, session_with(server) as session:
        (entry,) = await session.list("b")
        assert entry.size == 3
        server.script["MLST"] = "550 none"
        with pytest.raises(ReplyError, match="501"):
            await session.list("b")


async def test_a_server_that_promises_mlsd_and_lacks_it() -> None:
    script: dict[str, Handler] = {
        "FEAT": "211-\r\n MLST type*;size*;\r\n211 end",
        "EPSV": epsv,
        "LIST": sends(wire(UNIX)),
    }
    async with scripted(script) as server, session_with(server) as session:
        assert len(await session.list()) == 4
