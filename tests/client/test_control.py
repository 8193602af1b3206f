import asyncio

import pytest

from xftp.client.control import Control
from xftp.client.options import Options
from xftp.errors import ArgumentError, ConnectError, PeerError, XftpError
from xftp.protocol.commands import Command

from .scripted import HOST, Conversation, ScriptedServer, scripted

LONG_REPLY = "211-first\r\n 211 not the last\r\n211-more\r\n211 last"


async def connected(server: ScriptedServer, **options: object) -> Control:
    control = Control(Options(**options))  # type: ignore[arg-type]
    await control.connect(HOST, server.port)
    await control.greet()
    return control


async def test_replies_are_matched_in_order_however_they_are_cut() -> None:
    script = {"FEAT": LONG_REPLY, "NOOP": "200 yes", "SYST": "215 \udcff"}
    async with scripted(script, byte_by_byte=True) as server:
        control = await connected(server)
        answers = control.send(Command("NOOP", ""), Command("FEAT", ""), Command("NOOP", ""))
        replies = [await answer.wait_final(10) for answer in answers]
        await control.wait_closed()
    assert [reply.code for reply in replies] == [200, 211, 200]
    assert replies[1].lines == ("first", "211 not the last", "more", "last")


async def test_commands_may_be_given_before_the_connection_is_made() -> None:
    async with scripted({"NOOP": "200 yes"}) as server:
        control = Control(Options())
        await control.connect(HOST, server.port, early=True, expected_rtt_s=0.6)
        assert not control.is_made
        assert not control.is_closed
        assert (control.rtt_s, control.peer_host, control.local_host) == (0.6, HOST, HOST)
        answers = control.send(Command("NOOP", "")) + control.send(Command("NOOP", ""))
        await control.connected()
        assert control.is_made
        assert control.rtt_s is not None
        assert control.rtt_s < 0.6
        await control.greet()
        assert [(await each.wait_final(10)).code for each in answers] == [200, 200]
        await control.wait_closed()


async def test_a_connection_that_cannot_be_made_is_told_by_who_waits_for_it() -> None:
    async with scripted({}) as server:
        port = server.port
    control = Control(Options())
    with pytest.raises(ConnectError, match="refused"):
        await control.connect(HOST, port, early=True, expected_rtt_s=0.6)
        control.send(Command("NOOP", ""))
        await control.connected()
    assert control.is_closed
    await control.wait_closed()


async def test_a_connection_may_be_given_up_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(*arguments: object) -> None:
        asked = arguments[-1]
        assert isinstance(asked, asyncio.Future)
        asked.set_result((HOST, HOST))
        await asyncio.Event().wait()

    monkeypatch.setattr("xftp.client.control.dial", silent)
    control = Control(Options())
    await control.connect(HOST, 21, early=True, expected_rtt_s=0.6)
    (answer,) = control.send(Command("NOOP", ""))
    await control.wait_closed()
    with pytest.raises(ConnectError, match="closed"):
        await answer.wait_final(10)


async def test_a_flight_leaves_in_one_write() -> None:
    async def noop(talk: Conversation, _: str) -> None:
        seen.append(len(talk.reader._buffer))  # type: ignore[attr-defined]
        talk.say("200 yes")

    seen: list[int] = []
    async with scripted({"NOOP": noop}) as server:
        control = await connected(server)
        answers = control.send(*[Command("NOOP", "")] * 3)
        for answer in answers:
            await answer.wait_final(10)
        await control.wait_closed()
    assert seen == [12, 6, 0]


async def test_bytes_that_are_no_utf8_pass_both_ways() -> None:
    async def echo(talk: Conversation, argument: str) -> None:
        talk.say(f"257 {argument}")

    async with scripted({"MKD": echo}) as server:
        control = await connected(server)
        reply = await control.ask(Command("MKD", "a\udcff"))
        await control.wait_closed()
    assert reply.text == "a\udcff"


@pytest.mark.parametrize("argument", ["a\r\nDELE b", "a\nb", "a\0b"])
async def test_a_line_end_is_refused_and_nothing_of_the_flight_is_sent(argument: str) -> None:
    async with scripted({"NOOP": "200 yes"}) as server:
        control = await connected(server)
        with pytest.raises(ArgumentError):
            control.send(Command("NOOP", ""), Command("RETR", argument))
        await control.ask(Command("NOOP", ""))
        await control.wait_closed()
        assert server.heard == ["NOOP"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("421 going down", ConnectError),
        ("this is no FTP", PeerError),
        ("200-" + "x" * 20_000, PeerError),
        ("200-" + "\r\nline" * 2000, PeerError),
    ],
)
async def test_what_ends_the_connection_ends_every_pending_command(
    said: str, error: type[XftpError]
) -> None:
    async with scripted({"NOOP": said}) as server:
        control = await connected(server)
        answers = control.send(Command("NOOP", ""), Command("SYST", ""))
        for answer in answers:
            with pytest.raises(error):
                await answer.wait_final(10)
        assert control.is_closed
        with pytest.raises(error):
            control.send(Command("NOOP", ""))
        await control.wait_closed()


async def test_the_end_of_the_connection_is_noticed() -> None:
    async def hang_up(talk: Conversation, _: str) -> None:
        talk.hang_up()

    async with scripted({"NOOP": hang_up}) as server:
        control = await connected(server)
        with pytest.raises(ConnectError, match="closed the control connection"):
            await control.ask(Command("NOOP", ""))
        await control.wait_closed()


async def test_a_reply_that_does_not_come_is_not_waited_for_forever() -> None:
    async def silence(talk: Conversation, _: str) -> None:
        pass

    async with scripted({"NOOP": silence}) as server:
        control = await connected(server, reply_timeout_s=0.05)
        with pytest.raises(ConnectError, match=r"did not answer NOOP within 0\.05 s"):
            await control.ask(Command("NOOP", ""))
        assert control.is_closed
        await control.wait_closed()


async def test_a_cancelled_command_does_not_shift_the_replies() -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def slow(talk: Conversation, _: str) -> None:
        asked.set()
        await gate.wait()
        talk.say("215 slow")

    async with scripted({"SYST": slow, "NOOP": "200 yes"}) as server:
        control = await connected(server)
        task = asyncio.create_task(control.ask(Command("SYST", "")))
        await asked.wait()
        task.cancel()
        gate.set()
        assert (await control.ask(Command("NOOP", ""))).text == "yes"
        await control.wait_closed()


async def test_a_status_reply_may_overtake_that_of_a_transfer() -> None:
    async def retr(talk: Conversation, _: str) -> None:
        talk.say("150 go")

    async def stat(talk: Conversation, _: str) -> None:
        talk.say("211 half-way\r\n226 done")

    async with scripted({"RETR": retr, "STAT": stat}) as server:
        control = await connected(server)
        (transfer,) = control.send(Command("RETR", "a"))
        assert (await transfer.wait_begun(10)).code == 150
        status = await control.ask(Command("STAT", ""), codes=(211, 212, 213))
        assert status.text == "half-way"
        assert (await transfer.wait_final(10)).code == 226
        await control.wait_closed()


async def test_a_reply_that_nobody_asked_for_is_dropped() -> None:
    async with scripted({"SYST": "215 a\r\n226 b", "NOOP": "200 yes"}) as server:
        dropped = asyncio.Event()

        def trace(line: str) -> None:
            if line == "* nobody asked for that reply":
                dropped.set()

        control = await connected(server, trace=trace)
        await control.ask(Command("SYST", ""))
        await dropped.wait()
        assert (await control.ask(Command("NOOP", ""))).text == "yes"
        await control.wait_closed()


@pytest.mark.parametrize(
    ("greeting", "said"),
    [
        ("421 too many", "421 too many"),
        ("530 go away", "530 go away"),
        ("SSH-2.0-OpenSSH_9.2", "is no FTP server"),
    ],
)
async def test_a_greeting_that_is_none_is_a_failed_connection(greeting: str, said: str) -> None:
    async with scripted(greeting=greeting) as server:
        control = Control(Options())
        await control.connect(HOST, server.port)
        with pytest.raises(ConnectError, match=said):
            await control.greet()
        await control.wait_closed()


async def test_a_server_that_says_to_wait_is_waited_for() -> None:
    async with scripted(greeting="120 soon\r\n220 now") as server:
        control = await connected(server)
        assert control.greeting == "now"
        await control.wait_closed()


async def test_the_trace_shows_everything_but_passwords_and_escape_sequences() -> None:
    lines: list[str] = []
    async with scripted({"PASS": "230 \x1b[31mred\x1b[0m"}) as server:
        control = await connected(server, trace=lines.append)
        await control.ask(Command("USER", "me"))
        await control.ask(Command("PASS", "secret"))
        await control.wait_closed()
    assert "> USER me" in lines
    assert "> PASS ****" in lines
    assert "< 230 ?[31mred?[0m" in lines
    assert "secret" not in "".join(lines)
