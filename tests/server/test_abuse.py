"""A real daemon among clients that mean it ill: what they cost, and that others get in."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .daemon import HOST, MIB, Control, Daemon, running_daemon, wait_until

MOST_BYTES = 32 * MIB
MOST_CPU_S = 0.5


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Path]]:
    root = tmp_path_factory.mktemp("served")
    with running_daemon(root) as daemon:
        with daemon.log_in() as control:  # what is imported late is there now
            control.command("EPSV")
            control.send("MLSD")
        yield daemon, root


@pytest.fixture
def daemon(shared_daemon: tuple[Daemon, Path]) -> Daemon:
    """A daemon with the limits that it has of itself; its peak of memory begins now."""
    daemon, _ = shared_daemon
    daemon.forget_peak()
    return daemon


def _push(sock: socket.socket, data: bytes, patience_s: float) -> int:
    """Send until everything is gone, or nothing more is taken for so long; give how much went."""
    sock.settimeout(patience_s)
    sent = 0
    view = memoryview(data)
    with contextlib.suppress(TimeoutError, ConnectionError):
        while sent < len(data):
            sent += sock.send(view[sent : sent + 65536])
    return sent


def test_a_line_without_end_costs_nothing(daemon: Daemon) -> None:
    before = daemon.rss_bytes()
    with daemon.connect() as control:
        control.expect(220)
        block = b"x" * MIB
        for _ in range(64):
            assert _push(control.sock, block, 20.0) == len(block)
        control.expect(500)
        control.send("")
        assert control.command("NOOP")[0] == 200
    assert daemon.rss_bytes("VmHWM") - before < MOST_BYTES


def test_a_million_pipelined_commands_wait_at_the_client(daemon: Daemon) -> None:
    """Nobody reads the replies, so that soon nothing is taken any more."""
    before = daemon.rss_bytes()
    commands = b"HELP\r\n" * 1_000_000
    with daemon.log_in() as control:
        assert _push(control.sock, commands, 0.5) < len(commands) // 2
        cpu_s = daemon.cpu_s()
        with daemon.log_in() as other:
            assert other.command("NOOP")[0] == 200
        assert daemon.cpu_s() - cpu_s < MOST_CPU_S
    assert daemon.rss_bytes("VmHWM") - before < MOST_BYTES


def test_fifty_sessions_that_read_nothing(daemon: Daemon) -> None:
    before = daemon.rss_bytes()
    with contextlib.ExitStack() as stack:
        line = b"STAT " + b"\xff" * 8000 + b"\r\n"
        for _ in range(45):
            control = stack.enter_context(daemon.connect("127.0.0.4"))
            control.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            control.expect(220)
            _push(control.sock, (b"HELP\r\n" * 500 + line * 4) * 8, 0.02)
        with daemon.connect("127.0.0.2") as other:
            other.expect(220)
        assert daemon.rss_bytes() - before < MOST_BYTES
    assert daemon.rss_bytes("VmHWM") - before < MOST_BYTES


def test_a_thousand_idle_sessions(root: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("needs 4096 open files (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    options = ("--sessions", "1100", "--sessions-per-address", "1100")
    try:
        with running_daemon(root, *options) as daemon, contextlib.ExitStack() as stack:
            stack.enter_context(daemon.log_in())
            before = daemon.rss_bytes()
            sessions = [stack.enter_context(daemon.log_in()) for _ in range(1000)]
            assert daemon.rss_bytes() - before < 100 * 1_000_000
            assert sessions[0].command("NOOP")[0] == sessions[-1].command("NOOP")[0] == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_flood_keeps_nobody_else_out(root: Path) -> None:
    options = ("--sessions", "60", "--sessions-per-address", "60")
    with running_daemon(root, *options) as daemon, contextlib.ExitStack() as stack:
        flood = [stack.enter_context(daemon.connect()) for _ in range(80)]
        said = [control.reply()[0] for control in flood]
        assert sorted(set(said)) == [220, 421]
        assert said.count(220) == 60
        with daemon.log_in("127.0.0.2") as other:
            assert other.command("PWD")[0] == 257
            # It took the place of one of the flood, who is told.
            evicted = flood[said.index(220)]
            assert evicted.reply()[0] == 421
            assert evicted.is_closed()


def test_default_share_of_one_address(daemon: Daemon) -> None:
    with contextlib.ExitStack() as stack:
        flood = [stack.enter_context(daemon.connect("127.0.0.3")) for _ in range(60)]
        said = [control.reply()[0] for control in flood]
        assert said.count(220) <= 50
        assert said[-1] == 421
        with daemon.log_in("127.0.0.2") as other:
            assert other.command("PWD")[0] == 257


@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nHost: ftp\r\n\r\nUSER anonymous\r\nPASS x\r\n",
        b"POST / HTTP/1.1\r\n\r\nUSER anonymous\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03USER anonymous\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"EHLO there\r\nUSER anonymous\r\n",
    ],
)
def test_other_protocols_are_hung_up_on(daemon: Daemon, opening: bytes) -> None:
    with daemon.connect() as control:
        control.expect(220)
        control.sock.sendall(opening)
        said = b""
        with contextlib.suppress(ConnectionError):
            while data := control.sock.recv(4096):
                said += data
        assert b"331" not in said


def test_slow_lines_do_not_prolong_the_login(root: Path) -> None:
    with running_daemon(root, "--login-timeout", "1") as daemon, daemon.connect() as control:
        control.expect(220)
        control.sock.settimeout(0.1)
        began_s = time.monotonic()
        said = b""
        while not said.endswith(b"closing.\r\n"):
            assert time.monotonic() - began_s < 30
            with contextlib.suppress(TimeoutError):
                control.sock.sendall(b"NOOP\r\nNO")
                said += control.sock.recv(4096)
        assert b"\r\n421 " in said


@pytest.mark.parametrize("verb", ["RETR", "STOR"])
def test_slow_data_is_cut(root: Path, verb: str) -> None:
    """A byte now and then is as good as nothing."""
    (root / "file").write_bytes(bytes(16 * MIB))
    with running_daemon(root, "--stall-timeout", "1") as daemon, daemon.log_in() as control:
        data = _open_data(control)
        with data:
            data.settimeout(5.0)
            control.send(f"{verb} file{'' if verb == 'RETR' else '2'}")
            control.expect(150)
            control.sock.settimeout(0.1)
            said, began_s = b"", time.monotonic()
            while b"\r\n" not in said:
                assert time.monotonic() - began_s < 30
                with contextlib.suppress(ConnectionError):
                    assert data.recv(1) if verb == "RETR" else data.send(b"x")
                with contextlib.suppress(TimeoutError):
                    said += control.sock.recv(4096)
        assert said.startswith(b"426 ")


@pytest.fixture(scope="module")
def crowded() -> Iterator[Path]:
    """A root with 9,000 files, and with 12,000 in `huge`; in memory where that can be."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        root = Path(name)
        for number in range(9_000):
            (root / f"{'a' * 240}{number}").touch()
        (root / "huge").mkdir()
        for number in range(12_000):
            (root / "huge" / str(number)).touch()
        yield root


def test_a_huge_directory_is_refused_cheaply(crowded: Path) -> None:
    with running_daemon(crowded) as daemon, daemon.log_in() as control:
        for line in ("LIST huge", "NLST huge", "MLSD huge", "LIST huge/*", "STAT huge"):
            control.command("EPSV")
            cpu_s = daemon.cpu_s()
            code, text = control.command(line)
            assert (code, "10000" in text) == (550, True)
            assert daemon.cpu_s() - cpu_s < MOST_CPU_S


def test_listings_and_patterns_are_cheap(crowded: Path) -> None:
    patterns = ("", "*a" * 100 + "*b", "[!b]*" * 50 + "b", "*" * 250 + "b")
    with running_daemon(crowded) as daemon, daemon.log_in() as control:
        for line in ("MLSD", *(f"{verb} {each}" for verb in ("LIST", "NLST") for each in patterns)):
            with _open_data(control) as data:
                cpu_s = daemon.cpu_s()
                control.send(line)
                while data.recv(1 << 20):
                    pass
                control.expect(150)
                control.expect(226)
                assert daemon.cpu_s() - cpu_s < MOST_CPU_S
        assert control.command(f"STAT {patterns[1] * 4}")[0] == 553


def test_deep_paths_take_few_descriptors(shared_daemon: tuple[Daemon, Path]) -> None:
    daemon, path = shared_daemon
    with daemon.log_in() as control:
        deep = "d/" * 300
        for _ in range(300):
            path /= "d"
        path.mkdir(parents=True)
        assert control.command(f"MLST {deep}")[0] == 553
        assert control.command(f"MLST {'d/' * 200}")[0] == 250


def test_two_thousand_listeners(daemon: Daemon) -> None:
    with daemon.log_in() as control:
        control.command("MPSV")
        before = daemon.descriptors()
        for _ in range(20):
            control.sock.sendall(b"MPSV\r\n" * 100)
            for _ in range(100):
                control.expect(229)
        wait_until(lambda: daemon.descriptors() <= before)


def _open_data(control: Control) -> socket.socket:
    code, text = control.command("EPSV")
    assert code == 229
    found = re.search(r"\|\|\|(\d+)\|", text)
    assert found
    return socket.create_connection((HOST, int(found[1])), 20.0)
