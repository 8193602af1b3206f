"""The server's side of a download in the report: asked only where it is wanted and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import xftp
from xftp.transport.report import SenderReport

from ..support import running_server
from .scripted import HOST, Handler, epsv, pasv, scripted, sends, session_with
from .tuning_fakes import DATA, FakeTuner

LINE = f"Transfer Direction=sent;Bytes={len(DATA)};Duration=250000;"
CONNECTION = "Connection Number=0;Bytes=5;Congestion=cubic;RTT=600000;MinRTT=500000;Retransmits=3;"


def reply(*lines: str) -> str:
    return "\r\n".join(["211-Report", *(f" {line}" for line in lines), "211 End"])


def script(site: Handler, feat: str = "SITE REPORT") -> dict[str, Handler]:
    return {
        "FEAT": f"211-\r\n {feat}\r\n SIZE\r\n EPSV\r\n211 end",
        "EPSV": epsv,
        "PASV": pasv,
        "RETR": sends(DATA),
        "SIZE": f"213 {len(DATA)}",
        "SITE": site,
    }


async def fetched(
    tmp_path: Path, script_: dict[str, Handler], **options: Any
) -> tuple[SenderReport | None, list[str], list[str]]:
    """Fetch; give the sender's report, the SITE commands, and the notices."""
    notices: list[str] = []
    options = {"report_sender": True, "notice": notices.append} | options
    async with scripted(script_) as server, session_with(server, **options) as session:
        report = await session.get("a", tmp_path / "a")
        asked = [line for line in server.heard if line.startswith("SITE")]
    assert report is not None
    assert (tmp_path / "a").read_bytes() == DATA
    return report.sender, asked, notices


async def test_it_is_asked_and_read(tmp_path: Path) -> None:
    sender, asked, notices = await fetched(tmp_path, script(reply(LINE, CONNECTION)))
    assert asked == ["SITE REPORT"]
    assert notices == []
    assert sender is not None
    (connection,) = sender.connections
    assert sender.seconds == 0.25
    assert (connection.number, connection.bytes) == (0, 5)
    assert (connection.rtt_s, connection.retransmits) == (0.6, 3)
    assert connection.socket == {"congestion": "cubic", "min_rtt_s": 0.5}


async def test_it_costs_nothing_where_nobody_wants_it(tmp_path: Path) -> None:
    told = script(reply(LINE, CONNECTION))
    assert await fetched(tmp_path, told, report_sender=False) == (None, [], [])


@pytest.mark.parametrize("feat", ["TVFS", "SITE CHMOD", "SITE", "XSITE REPORT"])
async def test_a_plain_peer_is_not_asked(tmp_path: Path, feat: str) -> None:
    assert await fetched(tmp_path, script("500 what?", feat)) == (None, [], [])


async def test_beside_other_site_features(tmp_path: Path) -> None:
    both = script(reply(LINE), "SITE UTIME\r\n SITE REPORT")
    assert (await fetched(tmp_path, both))[0] == SenderReport(0.25, ())


async def test_a_refusal_is_none(tmp_path: Path) -> None:
    refused = script("503 There is no finished transfer to report on.")
    assert await fetched(tmp_path, refused) == (None, ["SITE REPORT"], [])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply("Transfer nonsense"), "cannot be read"),
        (reply(LINE.replace("sent", "received")), "of another transfer"),
        (reply(LINE.replace("Bytes=", "Bytes=1")), "of another transfer"),
        (reply(LINE, *[CONNECTION] * 2), "in disorder"),
    ],
)
async def test_what_cannot_be_used_fails_nothing(tmp_path: Path, answer: str, why: str) -> None:
    sender, asked, notices = await fetched(tmp_path, script(answer))
    assert (sender, asked) == (None, ["SITE REPORT"])
    (notice,) = notices
    assert notice.startswith("how the server's sockets fared is not known: ")
    assert why in notice


async def test_a_server_that_hangs_up_fails_nothing(tmp_path: Path) -> None:
    async def leave(talk: Any, argument: str) -> None:
        talk.hang_up()

    sender, _, (notice,) = await fetched(tmp_path, script(leave), retries=0)
    assert sender is None
    assert "closed the control connection" in notice


@pytest.mark.parametrize("count", [1, 3])
async def test_of_our_own_server(tmp_path: Path, count: int) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "there").write_bytes(DATA)
    async with running_server(root, tuner=FakeTuner()) as server:
        options = xftp.Options(connections=count, report_sender=True)
        url = f"ftp://{HOST}:{server.server_port}/"
        async with xftp.connect(url, options=options) as session:
            down = await session.get("there", tmp_path / "here")
            up = await session.put(tmp_path / "here", "again")
            stream = await session.get_stream("there", lambda piece: None)
    assert down is not None and up is not None
    for report in (down, stream):
        assert report.sender is not None
        assert sum(each.bytes for each in report.sender.connections) == sum(
            each.bytes for each in report.connections
        )
        assert all(each.socket["congestion"] == "observed" for each in report.sender.connections)
    assert up.sender is None
    assert "sender" not in up.as_json()
    told = down.as_json()["sender"]
    assert [each["number"] for each in told["connections"]] == list(range(count))
