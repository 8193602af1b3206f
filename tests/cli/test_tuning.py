"""Options that set sockets, by real processes: what is asked, granted, reported and refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.tuning.support import payload_bps
from xftp.cli.client import xftp_command
from xftp.cli.daemon import xftpd_command

from .conftest import WAIT_S, Client, Place, running_daemon, wait_until

DATA = os.urandom(300_000)
URL = "ftp://192.0.2.1/file"  # RFC 5737: nobody is there
ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
_SO_SNDBUFFORCE = 32


def may(option: int, value: int | bytes, level: int = socket.SOL_SOCKET) -> bool:
    """Tell whether this process may set an option of a socket."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(level, option, value)
        except OSError:
            return False
        return True


IS_ADMIN = may(_SO_SNDBUFFORCE, 65536)
OTHER = "cubic" if may(socket.TCP_CONGESTION, b"cubic", socket.IPPROTO_TCP) else "reno"
"""An algorithm that this user may choose."""


def report_of(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    (line,) = done.stdout.splitlines()
    report: dict[str, Any] = json.loads(line)
    return report


def sockets_of(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """Give what the report says of the socket of each connection."""
    return [each["socket"] for each in report_of(done)["connections"]]


def said(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return done.stderr.decode().splitlines()


@contextmanager
def logged_daemon(root: Path, *options: str) -> Iterator[tuple[Place, Path]]:
    """Run xftpd with a log of everything; give its root as a place, and the log."""
    root.mkdir()
    log = root.parent / "log"
    with log.open("wb") as stream, running_daemon(root, "-vv", *options, log=stream) as address:
        yield Place(root, address, "."), log


def server_sockets(log: Path, count: int) -> list[dict[str, str]]:
    """Wait until the daemon has logged `count` connections; give what their sockets had."""

    def found() -> list[str]:
        return re.findall(r": connection \d+: \d+ bytes (.*)", log.read_text())

    wait_until(lambda: len(found()) >= count)
    return [dict(word.split("=", 1) for word in line.split()) for line in found()]


# -- asked and reported --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["--passive", "--active"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("verb", ["get", "put"])
def test_every_knob_is_in_the_report(
    xftp: Client, place: Place, verb: str, count: int, mode: str
) -> None:
    (place.path / "there").write_bytes(DATA)
    (xftp.here / "here").write_bytes(DATA)
    options = ["--cc", OTHER, "--rcvbuf", "500k", "--sndbuf", "400k", "--rate", "80mbit"]
    what = ["get", place.url_of("there")] if verb == "get" else ["put", "here", place.url]
    done = xftp(*what, *options, "-n", str(count), mode, "--json")
    sockets = sockets_of(done)
    assert len(sockets) == count
    for each in sockets:
        assert each["congestion"] == OTHER
        assert each["send_buffer_bytes"] == 400 * 1024
        assert each["receive_buffer_bytes"] == 500 * 1024
        assert each["pacing_rate_bps"] == payload_bps(80e6 / count)
        assert each["initial_window_segments"] >= 1
        assert each["min_rtt_s"] > 0
    if verb == "put":
        # A connection that was made when another had taken everything has delivered nothing.
        sent = [each for each in report_of(done)["connections"] if each["bytes"]]
        assert sent
        assert all(each["socket"]["delivery_rate_bps"] > 0 for each in sent)
    assert said(done) == []
    if verb == "get":
        assert (xftp.here / "there").read_bytes() == DATA
    else:
        assert (place.path / "here").read_bytes() == DATA


def test_without_options_the_system_decides_and_the_report_tells(
    xftp: Client, place: Place
) -> None:
    (place.path / "there").write_bytes(DATA)
    done = xftp("get", place.url_of("there"), "-n", "2", "--json")
    for each in sockets_of(done):
        assert each["congestion"]
        assert "pacing_rate_bps" not in each


def test_the_rate_is_kept_by_the_servers_sockets(xftp: Client, place: Place) -> None:
    """The sender of a download is the server: it was told, and paces."""
    (place.path / "there").write_bytes(20 * DATA)
    report = report_of(xftp("get", place.url_of("there"), "--rate", "40mbit", "--json"))
    # The loopback's segments have 64 KiB, and the first ten of each connection need not wait.
    assert report["seconds"] > 0.95 * (len(20 * DATA) - 4 * 10 * 65536) / 5e6


CONNECTION_LINE = (
    rf"  connection N: \S+ [kM]?B, \S+ [kMG]?B/s, {OTHER}, initial window \d+, "
    r"buffers \S+ [kM]?B and \S+ [kM]?B, "
    r"RTT \S+ ms \(least \S+ ms\), \d+ segments? sent again(, delivered at \S+ [kMG]?B/s)?"
)


def test_verbose_shows_each_connection_on_a_line(xftp: Client, place: Place) -> None:
    (place.path / "there").write_bytes(DATA)
    done = xftp("get", place.url_of("there"), "-v", "-n", "2", "--cc", OTHER)
    lines = [line for line in said(done) if line.startswith("  connection ")]
    assert len(lines) == 2
    for number, line in enumerate(lines):
        assert re.fullmatch(CONNECTION_LINE.replace("N", str(number)), line)
        assert len(line) <= 180
    theirs = [line for line in said(done) if line.startswith("  server's connection ")]
    assert len(theirs) == 2
    for number, line in enumerate(theirs):
        pattern = CONNECTION_LINE.replace("  conn", "  server's conn").replace("N", str(number))
        assert re.fullmatch(pattern, line)
        assert "delivered at" in line
        assert len(line) <= 190


# -- what the daemon's operator decides ----------------------------------------------------------


def test_limits_reduce_and_it_is_said(xftp: Client, tmp_path: Path) -> None:
    limits = ["--max-buffer", "100k", "--max-rate", "30mbit", "--max-initial-window", "20"]
    with logged_daemon(tmp_path / "root", *limits, "--allow-cc", "reno") as (place, log):
        (place.path / "there").write_bytes(DATA)
        done = xftp(
            *("get", place.url_of("there"), "-n", "2", "--sndbuf", "300k", "--rcvbuf", "90k"),
            *("--rate", "80mbit", "--cc", "cubic", "--initial-window", "40"),
        )
        theirs = server_sockets(log, 2)
        granted = re.findall(r"<- 200 (MULT Conn.*)", log.read_text())
    assert granted == [
        "MULT Connections=2;Replace=1;Rate=30000000;SendBuffer=102400;ReceiveBuffer=92160;"
    ]
    ours = [line for line in said(done) if "of the server" in line]
    assert ours == [
        "xftp: Congestion cubic was asked of the server, which does not grant it",
        "xftp: InitialWindow 40 was asked of the server, which does not grant it",
        "xftp: Rate 80000000 was asked of the server, which grants 30000000",
        "xftp: SendBuffer 307200 was asked of the server, which grants 102400",
    ]
    for each in theirs:
        assert each["send_buffer_bytes"] == "102400"
        assert each["receive_buffer_bytes"] == "92160"
        assert each["pacing_rate_bps"] == str(payload_bps(15e6))
    assert (xftp.here / "there").read_bytes() == DATA


@pytest.mark.parametrize("verb", ["get", "put"])
def test_limits_end_a_strict_transfer_before_it_starts(
    xftp: Client, tmp_path: Path, verb: str
) -> None:
    with logged_daemon(tmp_path / "root", "--max-buffer", "100k") as (place, log):
        (place.path / "there").write_bytes(DATA)
        (xftp.here / "here").write_bytes(DATA)
        what = ["get", place.url_of("there")] if verb == "get" else ["put", "here", place.url]
        done = xftp(*what, "--sndbuf", "300k", "--strict-tuning", expect=1)
        assert not re.search(r"-> (RETR|STOR)", log.read_text())
        assert [path.name for path in place.path.iterdir()] == ["there"]
    assert said(done) == ["xftp: SendBuffer 307200 was asked of the server, which grants 102400"]
    assert [path.name for path in xftp.here.iterdir()] == ["here"]


@pytest.mark.parametrize("verb", ["get", "put"])
def test_defaults_hold_without_being_asked(xftp: Client, tmp_path: Path, verb: str) -> None:
    options = ["--cc", OTHER, "--sndbuf", "300k", "--rcvbuf", "200k", "--rate", "80mbit"]
    with logged_daemon(tmp_path / "root", *options) as (place, log):
        (place.path / "there").write_bytes(DATA)
        (xftp.here / "here").write_bytes(DATA)
        what = ["get", place.url_of("there")] if verb == "get" else ["put", "here", place.url]
        done = xftp(*what, "-n", "2", "--json")
        theirs = server_sockets(log, 2)
    for each in theirs:
        assert each["congestion"] == OTHER
        assert each["send_buffer_bytes"] == "307200"
        assert each["receive_buffer_bytes"] == "204800"
        assert each["pacing_rate_bps"] == str(payload_bps(40e6))
    assert all("pacing_rate_bps" not in each for each in sockets_of(done))


def test_defaults_can_stand_in_the_configuration(xftp: Client, tmp_path: Path) -> None:
    config = tmp_path / "xftpd.toml"
    config.write_text(
        'cc = "reno"\nsndbuf = "300k"\nmax-buffer = "200k"\nallow-cc = ["reno"]\nrate = "80mbit"\n'
    )
    with logged_daemon(tmp_path / "root", "--config", str(config)) as (place, log):
        (place.path / "there").write_bytes(DATA)
        xftp("get", place.url_of("there"), "-n", "1")
        xftp("get", place.url_of("there"), "-n", "1", "--sndbuf", "400k", "-o", "again")
        first, second = server_sockets(log, 2)
    assert (first["congestion"], first["send_buffer_bytes"]) == ("reno", "307200")
    assert (second["congestion"], second["send_buffer_bytes"]) == ("reno", "204800")


def test_the_daemon_says_what_it_cannot_have(tmp_path: Path) -> None:
    options = ["--cc", "nosuch", "--allow-cc", "reno", "--allow-cc", "noneither"]
    with logged_daemon(tmp_path / "root", *options) as (_, log):
        lines = [line for line in log.read_text().splitlines() if "WARNING" in line]
    assert "congestion: asked for nosuch, got " in lines[0]
    assert lines[1].endswith("this kernel has no congestion control noneither to allow")
    assert len(lines) == 2


# -- what this machine does not grant ------------------------------------------------------------


def test_an_unknown_algorithm_is_said_and_the_transfer_goes_on(xftp: Client, place: Place) -> None:
    (place.path / "there").write_bytes(DATA)
    done = xftp("get", place.url_of("there"), "--cc", "nosuch", "--json")
    local, remote = said(done)
    assert local.startswith("xftp: congestion: asked for nosuch, got ")
    assert "the kernel has only " in local
    assert remote == "xftp: Congestion nosuch was asked of the server, which does not grant it"
    assert all(each["congestion"] != "nosuch" for each in sockets_of(done))
    assert (xftp.here / "there").read_bytes() == DATA


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--cc", "nosuch"], "xftp: congestion: asked for nosuch, got "),
        pytest.param(
            ["--cc", "reno", "--initial-window", "40"],
            "xftp: initial_window_segments: asked for 40",
            marks=pytest.mark.skipif(IS_ADMIN, reason="an administrator gets it by a route"),
        ),
        (["--profile", "auto", "--no-memory"], "xftp: the profile auto needs the rate of the link"),
    ],
)
def test_strict_ends_it_before_anything_is_connected(
    xftp: Client, options: Sequence[str], sentence: str
) -> None:
    done = xftp("get", URL, *options, "--strict-tuning", expect=1)
    (line,) = said(done)
    assert line.startswith(sentence)


def without_net_admin(command: list[str]) -> list[str]:
    """Run a command as a user whose buffers the system's ceilings bound."""
    if not IS_ADMIN:
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is needed to become an ordinary user")
    return ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", *command]


@pytest.mark.parametrize("strict", [False, True])
def test_a_ceiling_of_the_system_is_said(xftp: Client, place: Place, strict: bool) -> None:
    ceiling = int(Path("/proc/sys/net/core/rmem_max").read_text())
    if ceiling >= 2**30 - 1:
        pytest.skip("this system has no ceiling")
    (place.path / "there").write_bytes(DATA)
    command = xftp.command(("get", place.url_of("there"), "--rcvbuf", str(ceiling + 1), "--json"))
    done = subprocess.run(
        without_net_admin([*command, *(["--strict-tuning"] if strict else [])]),
        capture_output=True,
        cwd=xftp.here,
        env=xftp.environment,
        timeout=WAIT_S,
    )
    assert said(done)[0] == (
        f"xftp: receive_buffer_bytes: asked for {ceiling + 1}, got {ceiling}: "
        f"net.core.rmem_max is {ceiling}: sysctl -w net.core.rmem_max={ceiling + 1}"
    )
    assert done.returncode == (1 if strict else 0)
    if not strict:
        assert {each["receive_buffer_bytes"] for each in sockets_of(done)} == {ceiling}


def test_an_algorithm_for_root_only_is_said(xftp: Client, place: Place) -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    forbidden = sorted(set(available) - set(Path(ALLOWED).read_text().split()))
    forbidden = [name for name in forbidden if not name.startswith("xftp_")]
    if not forbidden:
        pytest.skip("every algorithm of this kernel may be chosen by everyone")
    done = subprocess.run(
        without_net_admin(xftp.command(("get", URL, "--cc", forbidden[0], "--strict-tuning"))),
        capture_output=True,
        cwd=xftp.here,
        env=xftp.environment,
        timeout=WAIT_S,
    )
    assert done.returncode == 1
    (line,) = said(done)
    assert f"asked for {forbidden[0]}" in line
    assert 'only root may choose it: sysctl -w net.ipv4.tcp_allowed_congestion_control="' in line


# -- values --------------------------------------------------------------------------------------

BAD = [
    ("--cc", "", "cannot be a congestion algorithm"),
    ("--cc", "a/b", "cannot be a congestion algorithm"),
    ("--cc", "sixteen_letters_", "1 to 15 letters"),
    ("--initial-window", "0", "the initial window is 0: give a whole number of segments from 1"),
    ("--initial-window", "10000", "from 1 to 1,000"),
    ("--initial-window", "-1", "a number of segments, not '-1'"),
    ("--initial-window", "ten", "a number of segments, not 'ten'"),
    ("--initial-window", "1.5", "a number of segments, not '1.5'"),
    ("--sndbuf", "0", "less than one byte"),
    ("--rcvbuf", "-1", "is negative"),
    ("--rcvbuf", "1TB", "the buffer is 1000000000000: give a whole number of bytes from 2,304"),
    ("--sndbuf", "1000", "the buffer is 1000: give a whole number of bytes from 2,304"),
    ("--sndbuf", "big", "is not a size: write it as 64k, 4MB or 1GiB"),
    ("--rate", "0", "is zero"),
    ("--rate", "fast", "is not a rate: write it as 50mbit"),
    ("--rate", "50", "less than 1 kbit/s: was 50M meant?"),
    ("--rate", "-5", "is negative"),
    ("--rate", "100tbit", "more than any link has"),
    ("--profile", "mars", "choose from t1-geo, italsat, hybrid, hts-geo, leo, lan, auto"),
    ("--profile", "", "there is no profile"),
]


@pytest.mark.parametrize(("option", "value", "sentence"), BAD)
@pytest.mark.parametrize("command", ["get", "put", "shell", "xftpd"])
def test_bad_values(tmp_path: Path, command: str, option: str, value: str, sentence: str) -> None:
    if command == "xftpd":
        words = ["--root", str(tmp_path), "--anonymous", option, value]
        done = CliRunner().invoke(xftpd_command, words)
    else:
        words = [command, option, value, *(["file"] if command == "put" else []), URL]
        done = CliRunner().invoke(xftp_command, words)
    assert done.exit_code == 2
    assert f"Invalid value for '{option}'" in done.output
    assert sentence in done.output
    assert "_" not in done.output.partition("Invalid value")[2].replace("sixteen_letters_", "")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-buffer", "0"),
        ("--max-buffer", "1TB"),
        ("--max-rate", "fast"),
        ("--max-initial-window", "10000"),
    ],
)
def test_bad_limits(tmp_path: Path, option: str, value: str) -> None:
    words = ["--root", str(tmp_path), "--anonymous", option, value]
    done = CliRunner().invoke(xftpd_command, words)
    assert done.exit_code == 2
    assert f"Invalid value for '{option}'" in done.output


@pytest.mark.parametrize(
    "options",
    [
        ["--initial-window", "1"],
        ["--initial-window", "1000"],
        ["--sndbuf", "4MB"],
        ["--rcvbuf", "2304"],
        ["--rate", "50mbit"],
        ["--rate", "1kbit", "-n", "8"],
        ["--rate", "10tbit"],
        ["--profile", "hts-geo", "-n", "1000"],
        *(["--profile", name] for name in ("t1-geo", "italsat", "hybrid", "hts-geo", "leo", "lan")),
        ["--profile", "auto", "--rate", "1gbit"],
        ["--profile", "t1-geo", "--rate", "1gbit", "--sndbuf", "64k", "--cc", "reno"],
    ],
)
def test_good_values_move_files(xftp: Client, place: Place, options: list[str]) -> None:
    (place.path / "there").write_bytes(DATA[:900])
    xftp("get", place.url_of("there"), *options)
    assert (xftp.here / "there").read_bytes() == DATA[:900]
    xftp("put", "there", place.url_of("back"), *options)
    assert (place.path / "back").read_bytes() == DATA[:900]


def test_auto_says_what_it_needs(xftp: Client, place: Place) -> None:
    (place.path / "there").write_bytes(DATA)
    done = xftp("get", place.url_of("there"), "--profile", "auto")
    sentence = "xftp: the profile auto needs the rate of the link, as --rate 50mbit"
    assert said(done) == [f"{sentence}; none is remembered of this path"]
    done = xftp("get", place.url_of("there"), "--profile", "auto", "--overwrite", "--no-memory")
    assert said(done) == [sentence]
