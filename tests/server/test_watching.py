"""A real daemon and what it tells: status, metrics, transfer log, structured log; how it stops."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .daemon import HOST, ROOT, WAIT_S, Control, Daemon, running_daemon, wait_until

CONTENT = b"x" * 10_000


class Watched:
    """A daemon with everything that watches it."""

    def __init__(self, daemon: Daemon, home: Path, metrics_port: int) -> None:
        self.daemon = daemon
        self.home = home
        self.metrics_port = metrics_port

    def status(self, *options: str) -> str:
        """Run `xftpd status`."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "xftp.cli.daemon", "status"),
                *("--socket", str(self.home / "socket"), *options),
            ],
            capture_output=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"},
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def snapshot(self) -> dict[str, Any]:
        """Ask the socket itself."""
        data = b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(WAIT_S)
            sock.connect(str(self.home / "socket"))
            while more := sock.recv(65536):
                data += more
        answer = json.loads(data)
        assert isinstance(answer, dict)
        return answer

    def metrics(self) -> dict[str, float]:
        """Read the metrics, without their comments."""
        url = f"http://{HOST}:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def log(self) -> list[dict[str, Any]]:
        """Read the structured log."""
        return [json.loads(line) for line in (self.home / "log").read_text().splitlines()]

    def transfers(self) -> list[list[str]]:
        """Read the transfer log: the fields behind the time."""
        return [line[25:].split(" ") for line in (self.home / "xferlog").read_text().splitlines()]


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


@pytest.fixture
def watched(root: Path, tmp_path: Path) -> Iterator[Watched]:
    port = _free_port()
    options = (
        *("--status-socket", str(tmp_path / "socket"), "--metrics", str(port), "-v"),
        *("--log-file", str(tmp_path / "log"), "--log-format", "json"),
        *("--transfer-log", str(tmp_path / "xferlog"), "--stop-timeout", "2"),
    )
    with running_daemon(root, *options) as daemon:
        yield Watched(daemon, tmp_path, port)


def begin(control: Control, line: str) -> socket.socket:
    """Open a data connection and begin a transfer."""
    text = control.command("EPSV")[1]
    found = re.search(r"\|\|\|(\d+)\|", text)
    assert found, text
    data = socket.create_connection((HOST, int(found[1])), WAIT_S)
    control.send(line)
    control.expect(150)
    return data


def move(control: Control, line: str, content: bytes = b"") -> None:
    """Move a file to the end."""
    with begin(control, line) as data:
        data.sendall(content)
        data.shutdown(socket.SHUT_WR)
        while data.recv(65536):
            pass
    control.expect(226)


def test_everything_is_told(watched: Watched) -> None:
    with watched.daemon.log_in() as control, watched.daemon.connect() as stranger:
        stranger.expect(220)
        stranger.command("USER nobody")
        move(control, "STOR a file", CONTENT)
        move(control, "RETR a file")
        move(control, "NLST")
        data = begin(control, "STOR cut")
        data.sendall(CONTENT)
        wait_until(lambda: watched.snapshot()["bytes_total"]["upload"] == 2 * len(CONTENT))
        _check_running(watched)
        control.send("ABOR")
        assert [control.reply()[0], control.reply()[0]] == [426, 226]
        data.close()
        _check_ended(watched)
    wait_until(lambda: watched.snapshot()["now"]["sessions"] == 0)
    assert [each["event"] for each in watched.log() if "event" in each].count("leave") == 2


def test_a_series_that_runs_is_told(watched: Watched) -> None:
    with watched.daemon.log_in() as control:
        text = control.command("MPSV")[1]
        port = re.search(r"\|(\d+)[,)]", text)
        assert port, text
        with socket.create_connection((HOST, int(port[1])), WAIT_S) as data:
            for name in ("a", "b"):
                control.send(f"SERI STOR Size={len(CONTENT)}; {name}")
                control.expect(250)
            control.send("MSTR")
            control.expect(150)
            data.sendall(bytes(4) + CONTENT[:8192])
            wait_until(
                lambda: [each["bytes"] for each in watched.snapshot()["transfers"]] == [8192]
            )
            (running,) = watched.snapshot()["transfers"]
            assert (running["path"], running["direction"]) == ("2 files", "upload")
            assert re.search(
                r"upload +anonymous +127\.0\.0\.1 +8.19 kB .* 1 +2 files", watched.status()
            )
            control.send("ABOR")
            assert [control.reply()[0], control.reply()[0]] == [426, 226]
        wait_until(lambda: not watched.snapshot()["transfers"])
    told = [each["path"] for each in watched.log() if each.get("event") == "transfer"]
    assert told == ["/a", "/b"], "each file by itself, and not the series again"


def _check_running(watched: Watched) -> None:
    mode = (watched.home / "socket").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    now = watched.snapshot()
    assert now["process"] == watched.daemon.process.pid
    assert now["now"] == {
        "sessions": 2,
        "transfers": 1,
        "data_connections": 1,
        "listeners": 1,
    }
    (running,) = now["transfers"]
    assert (running["path"], running["bytes"]) == ("/cut", len(CONTENT))
    assert sorted(str(each["user"]) for each in now["sessions"]) == ["None", "anonymous"]
    shown = watched.status()
    assert "2 sessions from 1 addresses, 0 with TLS" in shown
    assert re.search(r"upload +anonymous +127\.0\.0\.1 +10 kB .* 1 +/cut", shown)
    assert json.loads(watched.status("--json"))["now"] == now["now"]
    metrics = watched.metrics()
    assert metrics["xftpd_sessions"] == 2
    assert metrics["xftpd_transfers"] == 1
    assert metrics['xftpd_bytes_total{direction="upload"}'] == 2 * len(CONTENT)


def _check_ended(watched: Watched) -> None:
    metrics = watched.metrics()
    assert metrics["xftpd_transfers"] == 0
    assert metrics['xftpd_transfers_total{direction="upload",outcome="ok"}'] == 1
    assert metrics['xftpd_transfers_total{direction="upload",outcome="failed"}'] == 1
    assert metrics['xftpd_transfers_total{direction="download",outcome="ok"}'] == 1
    assert metrics['xftpd_bytes_total{direction="download"}'] == len(CONTENT)
    assert metrics['xftpd_logins_total{outcome="ok"}'] == 1
    # xferlog(5), in its order; the listing is not in it.
    user = ["anonymous", "ftp", "0", "*"]
    size = str(len(CONTENT))
    assert [fields[1:] for fields in watched.transfers()] == [
        [HOST, size, "/a_file", "b", "_", "i", "a", *user, "c"],
        [HOST, size, "/a_file", "b", "_", "o", "a", *user, "c"],
        [HOST, size, "/cut", "b", "_", "i", "a", *user, "i"],
    ]
    told = [each for each in watched.log() if each.get("event") == "transfer"]
    assert [(each["direction"], each["bytes"], each["error"]) for each in told] == [
        ("upload", len(CONTENT), None),
        ("download", len(CONTENT), None),
        ("listing", 8, None),
        ("upload", len(CONTENT), "aborted"),
    ]
    assert {each["peer_host"] for each in told} == {HOST}


def test_reload_goes_on_in_new_files(watched: Watched) -> None:
    with watched.daemon.log_in() as control:
        move(control, "STOR one", CONTENT)
        for name in ("xferlog", "log"):
            (watched.home / name).rename(watched.home / f"{name}.1")
        watched.daemon.process.send_signal(signal.SIGHUP)
        wait_until((watched.home / "xferlog").exists)
        move(control, "STOR two", CONTENT)
        assert [fields[3] for fields in watched.transfers()] == ["/two"]
        assert watched.log()[-1]["path"] == "/two"
        assert control.command("NOOP")[0] == 200


def test_stop_waits_for_transfers_but_not_for_ever(watched: Watched) -> None:
    with watched.daemon.log_in() as idle, watched.daemon.log_in() as busy:
        data = begin(busy, "STOR file")
        data.sendall(CONTENT)
        with watched.daemon.log_in() as quick:
            done = begin(quick, "STOR quick")
            wait_until(lambda: len(watched.snapshot()["transfers"]) == 2)
            watched.daemon.process.send_signal(signal.SIGTERM)
            assert idle.reply()[0] == 421
            assert idle.is_closed()
            assert watched.snapshot()["is_stopping"]
            with pytest.raises(ConnectionRefusedError):
                watched.daemon.connect()
            done.sendall(CONTENT)
            done.close()
            assert [quick.reply()[0], quick.reply()[0]] == [226, 421]
        assert busy.reply()[0] == 421  # after --stop-timeout
        data.close()
    assert watched.daemon.process.wait(WAIT_S) == 0
    assert not (watched.home / "socket").exists()


def test_remains_of_a_killed_daemon_are_no_hindrance(root: Path, tmp_path: Path) -> None:
    option = ("--status-socket", str(tmp_path / "socket"))
    with running_daemon(root, *option) as daemon:
        daemon.process.kill()
        daemon.process.wait(WAIT_S)
        assert (tmp_path / "socket").exists()
    with running_daemon(root, *option):
        errors = _start(root, *option)
        assert "another daemon" in errors
    (tmp_path / "file").write_bytes(b"mine")
    assert "no socket" in _start(root, "--status-socket", str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b"mine"


def _start(root: Path, *options: str, **environment: str) -> str:
    """Start a daemon that cannot run; give what it says."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "xftp.cli.daemon", "--root", str(root)),
            *("--host", HOST, "--port", "0", "--anonymous", *options),
        ],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        timeout=WAIT_S,
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


def test_metrics_without_their_library(root: Path, tmp_path: Path) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('not here')")
    errors = _start(root, "--metrics", "0", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert "pip install 'xftp[metrics]'" in errors


def test_metrics_on_a_port_that_is_taken(root: Path) -> None:
    with contextlib.closing(socket.create_server((HOST, 0))) as taken:
        assert "cannot be served" in _start(root, "--metrics", str(taken.getsockname()[1]))


def test_logs_that_cannot_be_written(root: Path, tmp_path: Path) -> None:
    for option in ("--transfer-log", "--log-file"):
        assert "No such file" in _start(root, option, str(tmp_path / "none" / "log"))


def test_no_daemon(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xftp.cli.daemon", "status", "--port", "9"],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=WAIT_S,
    )
    assert done.returncode == 1
    assert b"no running xftpd" in done.stderr


def test_what_clients_send_cannot_write_on_the_terminal(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "errors"
    with running_daemon(root, "-vv", log=log) as daemon, daemon.log_in() as control:
        control.command("CWD \x1b[31mred")
    text = log.read_bytes()
    assert b"red" in text
    assert b"\x1b" not in text
