import os
from pathlib import Path

import pytest

from xftp.client import moving
from xftp.client.options import Options
from xftp.client.retry import is_worth_a_retry, persist
from xftp.client.session import connect
from xftp.errors import (
    ConnectError,
    DataConnectionError,
    FileError,
    LoginError,
    RecordError,
    ReplyError,
    TransferAborted,
    XftpError,
)

from .scripted import HOST, Conversation, Handler, epsv, scripted, sends, session_with
from .test_download import GOOD

DATA = os.urandom(50_000)


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "GRACE_S", 0.2)


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        (ConnectError("x"), True),
        (DataConnectionError("x"), True),
        (TransferAborted("x"), True),
        (ReplyError(450, "x"), True),
        (ReplyError(550, "x"), False),
        (LoginError(530, "x"), False),
        (LoginError(430, "x"), False),
        (moving.TransferStopped("x"), False),
        (RecordError("x"), False),
        (FileError("x"), False),
    ],
)
def test_what_is_worth_a_retry(error: XftpError, worth: bool) -> None:
    assert is_worth_a_retry(error) is worth


async def test_the_last_failure_is_raised() -> None:
    tries: list[bool] = []
    notices: list[str] = []

    async def attempt(is_retry: bool) -> None:
        tries.append(is_retry)
        raise ConnectError(f"failure {len(tries)}")

    with pytest.raises(ConnectError, match="failure 3"):
        await persist(attempt, Options(retries=2, retry_wait_s=0.001, notice=notices.append))
    assert tries == [False, True, True]
    assert notices == [
        "failure 1; trying again in 0.001 s",
        "failure 2; trying again in 0.002 s",
    ]


async def test_a_session_is_tried_again_but_a_password_is_not() -> None:
    options = Options(connections=1, retries=2, retry_wait_s=0)
    async with scripted(greeting="421 busy") as server:

        def relent(_: str) -> None:
            server.greeting = "220 well then"

        options = Options(connections=1, retries=2, retry_wait_s=0, notice=relent)
        async with connect(f"ftp://{HOST}:{server.port}/", options=options):
            pass
        assert server.sessions == 2
        server.script["PASS"] = "530 wrong"
        with pytest.raises(LoginError):
            async with connect(f"ftp://{HOST}:{server.port}/", options=options):
                pass
        assert server.sessions == 3


async def test_a_cut_download_goes_on_on_a_new_connection(tmp_path: Path) -> None:
    cuts = [10_000, 20_000, len(DATA)]

    async def rest(talk: Conversation, argument: str) -> None:
        talk.values["rest"] = int(argument)
        talk.say("350 go on")

    async def retr(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((_reader, writer),) = await talk.connections()
        cut = cuts.pop(0)
        writer.write(DATA[talk.values.pop("rest", 0) : cut])
        writer.close()
        if cut < len(DATA):
            talk.hang_up()
        else:
            talk.say("226 done")

    script: dict[str, Handler] = {
        "EPSV": epsv,
        "SIZE": f"213 {len(DATA)}",
        "CWD": "250 there",
        "REST": rest,
        "RETR": retr,
    }
    (tmp_path / "a").write_bytes(b"old")
    async with (
        scripted(script) as server,
        session_with(server, retries=2, retry_wait_s=0) as session,
    ):
        await session.cwd("sub")
        report = await session.get("x", tmp_path / "a", existing="overwrite")
        assert server.sessions == 3
        assert server.verbs().count("CWD") == 3
    assert report is not None
    assert (tmp_path / "a").read_bytes() == DATA


async def test_a_foreign_partial_file_is_not_gone_on_from(tmp_path: Path) -> None:
    (tmp_path / "a.xftp.part").write_bytes(b"x" * 100)
    script: dict[str, Handler] = {**GOOD, "SIZE": f"213 {len(DATA)}", "EPSV": "421 sorry"}
    async with scripted(script) as server:

        def relent(_: str) -> None:
            server.script.update({"EPSV": epsv, "RETR": sends(DATA)})

        async with session_with(server, retries=1, retry_wait_s=0, notice=relent) as session:
            await session.get("x", tmp_path / "a")
        assert "REST" not in server.verbs()
    assert (tmp_path / "a").read_bytes() == DATA


@pytest.mark.parametrize(
    ("existing", "resumes"), [("fail", True), ("skip", True), ("overwrite", False)]
)
async def test_a_cut_upload_goes_on_only_behind_what_is_its_own(
    tmp_path: Path, existing: str, resumes: bool
) -> None:
    (tmp_path / "a").write_bytes(DATA)
    stored = bytearray()

    async def size(talk: Conversation, _: str) -> None:
        talk.say(f"213 {len(stored)}" if stored else "550 none")

    async def rest(talk: Conversation, argument: str) -> None:
        talk.values["rest"] = int(argument)
        talk.say("350 go on")

    async def stor(talk: Conversation, _: str) -> None:
        del stored[talk.values.pop("rest", 0) :]
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        if talk.server.sessions == 1:
            stored.extend(await reader.readexactly(20_000))
            writer.transport.abort()
            talk.hang_up()
            return
        stored.extend(await reader.read())
        writer.close()
        talk.say("226 done")

    script: dict[str, Handler] = {"EPSV": epsv, "SIZE": size, "REST": rest, "STOR": stor}
    async with (
        scripted(script) as server,
        session_with(server, retries=1, retry_wait_s=0) as session,
    ):
        await session.put(tmp_path / "a", "x", existing=existing)  # type: ignore[arg-type]
        assert ("REST 20000" in server.heard) is resumes
    assert stored == DATA


async def test_an_upload_never_goes_on_behind_what_it_has_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)
    script: dict[str, Handler] = {"EPSV": epsv, "SIZE": "421 sorry"}
    async with scripted(script) as server:

        def relent(_: str) -> None:
            server.script["SIZE"] = "213 100"

        async with session_with(server, retries=1, retry_wait_s=0, notice=relent) as session:
            with pytest.raises(FileError, match="exists"):
                await session.put(tmp_path / "a", "x")
        assert "STOR" not in server.verbs()
