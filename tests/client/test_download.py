"""Where downloads go, what they do with what is there, and what they keep."""

import asyncio
import os
from pathlib import Path

import pytest

from xftp.client.existing import ExistsError
from xftp.errors import ArgumentError, FileError, ReplyError, TransferAborted
from xftp.transport.kept import working_names

from .scripted import (
    Conversation,
    Handler,
    ScriptedServer,
    epsv,
    mpsv,
    names,
    records,
    scripted,
    sends,
    sends_records,
    session_with,
)

DATA = os.urandom(50_000)


async def rest(talk: Conversation, argument: str) -> None:
    talk.values["rest"] = int(argument)
    talk.say("350 go on")


async def retr(talk: Conversation, _: str) -> None:
    await sends(DATA[talk.values.pop("rest", 0) :])(talk, "")  # type: ignore[operator]


GOOD: dict[str, Handler] = {
    "EPSV": epsv,
    "SIZE": f"213 {len(DATA)}",
    "MDTM": "213 20200101000000",
    "REST": rest,
    "RETR": retr,
}


async def get(server: ScriptedServer, *arguments: object, **choices: object) -> object:
    async with session_with(server) as session:
        return await session.get("dir/file", *arguments, **choices)  # type: ignore[arg-type]


async def test_a_directory_takes_the_file_under_its_name(tmp_path: Path) -> None:
    async with scripted(GOOD) as server:
        await get(server, tmp_path)
    assert (tmp_path / "file").read_bytes() == DATA
    assert (tmp_path / "file").stat().st_mtime == 1577836800


async def test_the_working_directory_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with scripted(GOOD) as server:
        await get(server, preserve_times=False)
    assert (tmp_path / "file").read_bytes() == DATA
    assert (tmp_path / "file").stat().st_mtime != 1577836800


@pytest.mark.parametrize("remote", ["dir/", "..", "a/..", ".", "/"])
async def test_a_path_without_a_name_needs_a_local_one(remote: str) -> None:
    async with scripted(GOOD) as server, session_with(server) as session:
        with pytest.raises(ArgumentError):
            await session.get(remote)
        assert "RETR" not in server.verbs()


@pytest.mark.parametrize("remote", ["", "a\r\nDELE b", "a\nb", "a\0"])
async def test_a_path_that_cannot_be_sent_is_refused_first(remote: str, tmp_path: Path) -> None:
    async with scripted(GOOD) as server, session_with(server) as session:
        before = len(server.heard)
        with pytest.raises(ArgumentError):
            await session.get(remote, tmp_path / "a")
        with pytest.raises(ArgumentError):
            await session.rename(remote, "b")
        assert len(server.heard) == before


async def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/real")
    async with scripted(GOOD) as server:
        await get(server, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/real").read_bytes() == DATA


@pytest.mark.parametrize("local", ["missing/file", "missing/"])
async def test_a_directory_that_is_missing_is_a_file_error(tmp_path: Path, local: str) -> None:
    async with scripted(GOOD) as server:
        with pytest.raises(FileError):
            await get(server, f"{tmp_path}/{local}")
        assert "RETR" not in server.verbs()


async def test_a_device_takes_a_stream() -> None:
    async with scripted(GOOD) as server:
        report = await get(server, "/dev/null")
    assert report.bytes == len(DATA)  # type: ignore[attr-defined]


async def test_what_exists_is_left_unless_told_otherwise(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    async with scripted(GOOD) as server:
        with pytest.raises(ExistsError) as caught:
            await get(server, target)
        assert caught.value.exit_code == 4
        assert await get(server, target, existing="skip") is None
        assert target.read_bytes() == b"old"
        assert "RETR" not in server.verbs()
        assert await get(server, target, existing="overwrite") is not None
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("there", [1, 20_000, 49_999])
async def test_a_shorter_target_is_gone_on_from(tmp_path: Path, there: int) -> None:
    target = tmp_path / "a"
    target.write_bytes(DATA[:there])
    async with scripted(GOOD) as server:
        report = await get(server, target, existing="resume")
        assert f"REST {there}" in server.heard
    assert target.read_bytes() == DATA
    assert (report.offset, report.bytes) == (there, len(DATA) - there)  # type: ignore[attr-defined]


async def test_a_complete_target_needs_nothing_and_a_longer_one_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "a"
    async with scripted(GOOD) as server:
        target.write_bytes(DATA)
        assert await get(server, target, existing="resume") is None
        target.write_bytes(DATA + b"x")
        with pytest.raises(FileError, match="more than"):
            await get(server, target, existing="resume")
        assert "RETR" not in server.verbs()


async def test_an_empty_file_is_fetched_too(tmp_path: Path) -> None:
    script: dict[str, Handler] = {**GOOD, "SIZE": "213 0", "RETR": sends(b"")}
    async with scripted(script) as server:
        await get(server, tmp_path / "a", existing="resume")
        assert (tmp_path / "a").read_bytes() == b""
        assert await get(server, tmp_path / "a", existing="resume") is None


async def test_a_partial_file_is_gone_on_from(tmp_path: Path) -> None:
    part = tmp_path / working_names("a")[0]
    part.write_bytes(DATA[:30_000])
    async with scripted(GOOD) as server:
        await get(server, tmp_path / "a", existing="resume")
        assert "REST 30000" in server.heard
    assert (tmp_path / "a").read_bytes() == DATA
    assert not part.exists()


async def test_a_partial_file_goes_before_an_older_target(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / working_names("a")[0]).write_bytes(DATA[:30_000])
    async with scripted(GOOD) as server:
        await get(server, tmp_path / "a", existing="resume")
    assert (tmp_path / "a").read_bytes() == DATA
    assert names(tmp_path) == ["a"]


async def test_a_partial_file_that_is_complete_only_needs_its_name(tmp_path: Path) -> None:
    (tmp_path / working_names("a")[0]).write_bytes(DATA)
    async with scripted(GOOD) as server:
        report = await get(server, tmp_path / "a", existing="resume")
        assert "RETR" not in server.verbs()
    assert (tmp_path / "a").read_bytes() == DATA
    assert report.offset == len(DATA)  # type: ignore[attr-defined]


async def test_a_server_that_does_not_restart_sends_all(tmp_path: Path) -> None:
    (tmp_path / working_names("a")[0]).write_bytes(b"x" * 30_000)
    async with scripted({**GOOD, "REST": "502 no"}) as server:
        await get(server, tmp_path / "a", existing="resume")
    assert (tmp_path / "a").read_bytes() == DATA


async def test_striped_downloads_are_gone_on_from_too(tmp_path: Path) -> None:
    start = 10_000
    (tmp_path / "a").write_bytes(DATA[:start])
    left = DATA[start:]
    script: dict[str, Handler] = {
        **GOOD,
        "MULT": "200 fine",
        "MPSV": mpsv(2),
        "RETR": sends_records(records(left, [0, 2, 4]), records(left, [1, 3])),
    }
    async with scripted(script) as server, session_with(server, connections=2) as session:
        await session.get("x", tmp_path / "a", existing="resume")
    assert (tmp_path / "a").read_bytes() == DATA


async def test_a_missing_file_leaves_nothing_behind(tmp_path: Path) -> None:
    script: dict[str, Handler] = {**GOOD, "RETR": "550 no such file", "SIZE": "550 no"}
    async with scripted(script) as server, session_with(server) as session:
        with pytest.raises(ReplyError, match="550 no such file"):
            await session.get("x", tmp_path / "a")
        assert not session.is_closed
    assert names(tmp_path) == []


async def test_a_file_that_is_too_large_for_records_is_refused(tmp_path: Path) -> None:
    script: dict[str, Handler] = {
        **GOOD,
        "MULT": "200 fine",
        "MPSV": mpsv(2),
        "SIZE": f"213 {2**32 * 8192 + 1}",
    }
    async with scripted(script) as server, session_with(server, connections=2) as session:
        with pytest.raises(FileError, match="records"):
            await session.get("x", tmp_path / "a")
        assert "RETR" not in server.verbs()
    assert names(tmp_path) == []


class Watch:
    """A progress that can be waited for."""

    def __init__(self) -> None:
        self.begins: list[tuple[int | None, int]] = []
        self.size = 0
        self.changed = asyncio.Event()

    def started(self, total_bytes: int | None, offset: int) -> None:
        self.begins.append((total_bytes, offset))

    def moved(self, connection: int, size: int) -> None:
        assert connection >= 0
        self.size += size
        self.changed.set()


async def test_progress_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA[:10_000])
    watch = Watch()
    async with scripted(GOOD) as server:
        await get(server, tmp_path / "a", existing="resume", progress=watch)
    assert watch.begins == [(len(DATA), 10_000)]
    assert watch.size == len(DATA) - 10_000


async def half_then_nothing(talk: Conversation, _: str) -> None:
    """Send half of the file, and then wait until the client is gone."""
    talk.say("150 go")
    ((reader, writer),) = await talk.connections()
    writer.write(DATA[:25_000])
    try:
        await reader.read()
    except ConnectionError:
        talk.values["reset"] = True
    writer.close()
    talk.say("426 that was rude")


@pytest.mark.parametrize("how", ["cancel", "abort"])
async def test_a_stopped_download_is_kept_and_the_session_goes_on(tmp_path: Path, how: str) -> None:
    script: dict[str, Handler] = {**GOOD, "RETR": half_then_nothing, "NOOP": "200 yes"}
    watch = Watch()
    async with scripted(script) as server, session_with(server, retries=3) as session:
        task = asyncio.create_task(session.get("x", tmp_path / "a", progress=watch))
        await watch.changed.wait()
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await session.abort()
            with pytest.raises(TransferAborted, match="stopped"):
                await task
        await session.noop()
        assert server.verbs()[-2:] == ["ABOR", "NOOP"]
    assert not (tmp_path / "a").exists()
    assert (tmp_path / working_names("a")[0]).read_bytes() == DATA[:25_000]


async def test_a_stop_before_the_server_answers(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def silence(talk: Conversation, _: str) -> None:
        asked.set()
        await talk.reader.readline()  # ABOR
        talk.say("426 gone\r\n226 aborted")

    script: dict[str, Handler] = {**GOOD, "RETR": silence, "NOOP": "200 yes"}
    async with scripted(script) as server, session_with(server) as session:
        task = asyncio.create_task(session.get("x", tmp_path / "a"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.noop()
    assert names(tmp_path) == []
