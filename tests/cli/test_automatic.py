"""`-n auto`, and what is supposed of a path."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tuning.sockopts import SocketTuning
from xftp.cli.automatic import ORDINARY_CEILING_BYTES, AutoConnections, buffer_ceiling_bytes
from xftp.cli.supposed import SupposedTuning, may_suppose
from xftp.cli.tuning import ClientTuning, Wish
from xftp.client.memory import MemoryFile
from xftp.client.options import Direction

from .conftest import Client, Place, running_daemon

CEILING = "xftp.cli.automatic.buffer_ceiling_bytes"


@pytest.mark.parametrize(
    ("wish", "direction", "rtt_s", "supposed_bps", "opens", "feeds"),
    [
        (Wish(), "download", 0.6, None, 8, 8),
        (Wish(), "download", 0.0001, None, 8, 4),
        (Wish(), "download", None, None, 8, 4),
        (Wish(profile="lan"), "download", 0.0001, None, 8, 4),
        (Wish(rate_bps=50e6), "download", 0.0001, None, 4, None),
        # 3,750,000 B of window (equation 2.3), 212,992 B of buffer: 18 (equation 2.5), cut to 8
        (Wish(rate_bps=50e6), "download", 0.6, None, 8, None),
        (Wish(), "download", 0.6, 50e6, 8, None),
        (Wish(profile="hts-geo"), "download", 0.6, None, 8, None),
        # T1: 107,520 B of window and 24 KiB each are the 5 connections of Allman 1997 section 2.2
        (Wish(profile="t1-geo", receive_buffer_bytes=24 * 1024), "download", 0.56, None, 5, None),
        (Wish(profile="hts-geo"), "upload", 0.6, None, 4, None),
    ],
)
def test_how_many(
    monkeypatch: pytest.MonkeyPatch,
    wish: Wish,
    direction: Direction,
    rtt_s: float | None,
    supposed_bps: float | None,
    opens: int,
    feeds: int | None,
) -> None:
    monkeypatch.setattr(CEILING, lambda direction: ORDINARY_CEILING_BYTES)
    assert AutoConnections(wish)(direction, rtt_s, supposed_bps) == (opens, feeds)


def test_the_ceiling_is_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "rmem_max").write_text("4194304\n")
    assert buffer_ceiling_bytes("download", tmp_path) == 4194304
    assert buffer_ceiling_bytes("upload", tmp_path) == ORDINARY_CEILING_BYTES


# -- a rate that is supposed ----------------------------------------------------------------------


def test_nothing_is_supposed_where_the_user_spoke() -> None:
    assert may_suppose(Wish())
    assert may_suppose(Wish(profile="auto", receive_buffer_bytes=100_000))
    for wish in (
        Wish(rate_bps=1e6),
        Wish(profile="hts-geo"),
        Wish(congestion="cubic"),
        Wish(initial_window_segments=10),
    ):
        assert not may_suppose(wish)


@dataclass
class Kernel:
    """What a pretended kernel refuses, and the settings that are made in the end."""

    refuses: bool = False
    made: list[SocketTuning] = field(default_factory=list)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()

    class Made:
        def __init__(self, settings: SocketTuning, *_: object, is_trial: bool = False) -> None:
            self.differences = ("less",) if kernel.refuses else ()
            if not is_trial:
                kernel.made.append(settings)

        def apply(self, sock: object) -> None:
            pass

        def close(self) -> None:
            pass

    for module in ("xftp.cli.supposed", "xftp.cli.tuning"):
        monkeypatch.setattr(f"{module}.tuner", Made)
    return kernel


def make(direction: Direction, rtt_s: float = 0.6) -> object:
    wish = Wish()
    made = SupposedTuning(wish, ClientTuning(wish), 50e6)
    return made(direction, 8, rtt_s, "192.0.2.1")[1]


def test_a_download_asks_for_the_rate_and_opens_its_own_buffer(kernel: Kernel) -> None:
    asked = make("download")
    assert getattr(asked, "rate_bps", None) == 50_000_000
    assert getattr(asked, "send_buffer_bytes", 0) is None
    assert kernel.made[-1] == SocketTuning(receive_buffer_bytes=4 * 3_750_000 // 8)


def test_a_buffer_that_would_be_cut_is_left_to_the_system(kernel: Kernel) -> None:
    kernel.refuses = True
    asked = make("download")
    assert getattr(asked, "rate_bps", None) == 50_000_000
    assert kernel.made == [SocketTuning()]


@pytest.mark.parametrize("is_there", [True, False])
def test_an_upload_sets_a_rate_for_an_algorithm_that_starts_with_it(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    names = frozenset({"xftp_rented"}) if is_there else frozenset[str]()
    for module in ("xftp.cli.supposed", "xftp.cli.tuning"):
        monkeypatch.setattr(f"{module}.loaded", lambda: names)
    asked = make("upload")
    assert getattr(asked, "rate_bps", 0) is None
    rented = SocketTuning(congestion="xftp_rented", pacing_rate_bps=50e6 / 8)
    assert kernel.made[-1] == (rented if is_there else SocketTuning())


# -- the commands ---------------------------------------------------------------------------------


def cache(xftp: Client) -> Path:
    return Path(xftp.environment["HOME"]) / ".cache" / "xftp" / "paths.json"


def test_a_server_is_remembered_unless_nothing_shall_be(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x" * 100_000)
    xftp("get", "--no-memory", place.url_of("file"))
    assert not cache(xftp).exists()
    xftp("get", "--overwrite", place.url_of("file"))
    host, port = place.address.split(":")
    known = MemoryFile(cache(xftp)).server(host, int(port))
    assert known is not None
    assert known.is_our_kind
    done = xftp("get", "-v", "--overwrite", place.url_of("file"))
    lines = [line for line in done.stderr.decode().splitlines() if line[:1] in "<>"]
    begin = lines.index("> USER anonymous")
    flight = itertools.takewhile(lambda line: line[0] == ">", lines[begin:])
    verbs = [line.split(" ")[1] for line in flight]
    assert verbs[:2] == ["USER", "PASS"]
    assert verbs[-1] == "MPSV"


def test_a_file_of_memory_that_cannot_be_read_is_mentioned_to_who_wants_to_know(
    xftp: Client, place: Place
) -> None:
    (place.path / "file").write_bytes(b"x")
    cache(xftp).parent.mkdir(parents=True)
    cache(xftp).write_text("{")
    done = xftp("get", place.url_of("file"))
    assert done.stderr == b""
    cache(xftp).write_text("{")
    done = xftp("get", "-v", "--overwrite", place.url_of("file"))
    assert b"paths.json is not used" in done.stderr


def test_auto_is_the_default_and_opens_the_limit(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x" * 3_000_000)
    done = xftp("get", "--json", place.url_of("file"))
    report = json.loads(done.stdout)
    assert report["framed"]
    assert len(report["connections"]) == 8
    assert sum(each["bytes"] > 0 for each in report["connections"]) <= 5
    done = xftp("get", "--json", "-n", "8", "--overwrite", place.url_of("file"))
    assert len(json.loads(done.stdout)["connections"]) == 8
    xftp("put", "file", place.url_of("back"))
    assert (place.path / "back").read_bytes() == (place.path / "file").read_bytes()


def test_auto_says_nothing_of_connections_that_are_not_granted(
    tmp_path: Path, xftp: Client
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"x" * 100_000)
    with running_daemon(tmp_path / "root", "-n", "2") as address:
        done = xftp("get", f"ftp://{address}/file")
        assert done.stderr == b""
        done = xftp("get", "-n", "4", "--overwrite", f"ftp://{address}/file")
        assert done.stderr == b"xftp: 4 data connections asked, 2 granted\n"
