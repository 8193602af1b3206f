"""`xftpd --run-as`: root opens what only root may, and then is an ordinary user for good."""

from __future__ import annotations

import os
import pwd
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from ftplib import FTP
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.tuning.conftest import loaded_algorithms as loaded_algorithms
from tests.tuning.support import unprivileged
from xftp.cli.daemon import xftpd_command
from xftp.cli.privileges import Identity, PrivilegeError

from .conftest import PYTHON_PATH, WAIT_S, Client, running_daemon, wait_until

DATA = os.urandom(100_000)
NOBODY = pwd.getpwnam("nobody")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: drops it")


@pytest.fixture
def root() -> Iterator[Path]:
    """Give a directory to serve that nobody can get at and write in."""
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xftp-run-as-")))
        path.chmod(0o755)
        served = path / "served"
        served.mkdir()
        served.chmod(0o777)
        (served / "there").write_bytes(DATA)
        yield served


def daemon_of(address: str) -> dict[str, list[str]]:
    """Give /proc/PID/status of the process that listens on an address, by field."""
    port = int(address.rpartition(":")[2])
    listening = f":{port:04X} 00000000:0000 0A"
    (line,) = (s for s in Path("/proc/net/tcp").read_text().splitlines() if listening in s)
    inode = f"socket:[{line.split()[9]}]"
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if inode in (os.readlink(each) for each in (process / "fd").iterdir()):
                status = (process / "status").read_text().splitlines()
                return {name: rest.split() for name, _, rest in (s.partition(":") for s in status)}
        except OSError:
            continue  # it has ended meanwhile
    raise AssertionError("nobody listens")


@pytest.mark.parametrize(("group", "group_id"), [("", NOBODY.pw_gid), (":mail", 8)])
@pytest.mark.root
@needs_root
def test_nothing_of_root_is_left(root: Path, group: str, group_id: int) -> None:
    with running_daemon(root, "--run-as", f"nobody{group}") as address:
        status = daemon_of(address)
    assert status["Uid"] == [str(NOBODY.pw_uid)] * 4
    assert status["Gid"] == [str(group_id)] * 4
    assert status["Groups"] == [str(group_id)]
    assert [int(status[f"Cap{kind}"][0], 16) for kind in ("Prm", "Eff", "Inh", "Amb")] == [0] * 4
    assert status["NoNewPrivs"] == ["1"]


@pytest.mark.root
@needs_root
def test_a_port_below_1024_is_bound_first(root: Path) -> None:
    """And what is made belongs to the user."""
    with running_daemon(root, "--run-as", "nobody", "--port", str(free_low_port())) as address:
        host, _, port = address.rpartition(":")
        assert int(port) < 1024
        with FTP() as client:
            client.connect(host, int(port), WAIT_S)
            client.login()
            client.mkd("made")
            with (root / "there").open("rb") as source:
                client.storbinary("STOR made/new", source)
            into: list[bytes] = []
            client.retrbinary("RETR there", into.append)
    assert b"".join(into) == (root / "made" / "new").read_bytes() == DATA
    assert {(root / name).stat().st_uid for name in ("made", "made/new")} == {NOBODY.pw_uid}
    assert {(root / name).stat().st_gid for name in ("made", "made/new")} == {NOBODY.pw_gid}


def free_low_port() -> int:
    for port in range(1023, 600, -1):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port below 1024 is free")


@pytest.mark.root
@needs_root
def test_what_takes_privilege_is_refused_and_reported(root: Path, xftp: Client) -> None:
    """Forced buffers, and a route's initcwnd; the wish goes on with what there is."""
    most = int(Path("/proc/sys/net/core/rmem_max").read_text())
    log = root.parent / "log"
    options = ["--run-as", "nobody", "--max-buffer", "512M", "-vv", "--rcvbuf", str(2 * most)]
    with log.open("wb") as stream, running_daemon(root, *options, log=stream) as address:
        asked = ["--rcvbuf", str(2 * most), "--cc", "reno", "--initial-window", "40"]
        done = xftp("get", "-n", "2", *asked, f"ftp://{address}/there")
        wait_until(lambda: log.read_text().count(": connection ") == 2)
    written = log.read_text()
    assert f"WARNING receive_buffer_bytes: asked for {2 * most}, got {most}" in written
    (granted,) = re.findall(r"<- 200 MULT (.*)", written)
    assert f"Congestion=reno;ReceiveBuffer={most};" in granted
    assert "InitialWindow" not in granted
    said = done.stderr.decode()
    assert "InitialWindow 40 was asked of the server, which does not grant it" in said
    assert f"ReceiveBuffer {2 * most} was asked of the server, which grants {most}" in said
    assert f"receive_buffer_bytes={most} " in written
    assert (xftp.here / "there").read_bytes() == DATA


@pytest.mark.root
@needs_root
@pytest.mark.usefixtures("loaded_algorithms")
def test_the_map_opened_by_root_still_grants_an_initial_window(root: Path, xftp: Client) -> None:
    """/sys/fs/bpf may be closed to others: the descriptor that root opened is kept."""
    log = root.parent / "log"
    options = ["--run-as", "nobody", "-vv"]
    with log.open("wb") as stream, running_daemon(root, *options, log=stream) as address:
        asked = ["--cc", "xftp_abc", "--initial-window", "37", "--strict-tuning"]
        xftp("get", "-n", "2", *asked, f"ftp://{address}/there")
        wait_until(lambda: log.read_text().count(": connection ") == 2)
        assert daemon_of(address)["CapEff"] == ["0" * 16]
    assert log.read_text().count("congestion=xftp_abc ") == 2
    assert log.read_text().count("initial_window_segments=37 ") == 2
    assert "Congestion=xftp_abc;InitialWindow=37;" in log.read_text()


# -- what cannot be ---------------------------------------------------------------------------


@pytest.mark.root
@needs_root
@pytest.mark.parametrize(
    ("who", "sentence"),
    [
        ("nosuchuser", "there is no user 'nosuchuser'"),
        ("", "there is no user ''"),
        ("99999999999999999999", "there is no user"),
        ("nobody:nosuchgroup", "there is no group 'nosuchgroup'"),
        ("nobody:", "there is no group ''"),
        ("root", "root is root"),
        ("0", "0 is root"),
        ("nobody:root", "the group 0 is root's"),
    ],
)
def test_nobody_to_be(tmp_path: Path, who: str, sentence: str) -> None:
    arguments = ["--root", str(tmp_path), "--anonymous", "--run-as", who]
    done = CliRunner().invoke(xftpd_command, arguments)
    assert done.exit_code == 2
    assert sentence in done.output


def test_not_started_as_root() -> None:
    arguments = ["--root", "/", "--anonymous", "--run-as", "nobody"]
    with unprivileged():
        done = CliRunner().invoke(xftpd_command, arguments)
    assert done.exit_code == 2
    assert "only root can become nobody: start xftpd as root" in done.output


@pytest.mark.root
@needs_root
def test_what_the_user_may_not_read_is_said_before_anybody_comes(root: Path) -> None:
    root.chmod(0o700)
    command = [sys.executable, "-m", "xftp.cli.daemon", "--root", str(root), "--anonymous"]
    command += ["--host", "127.0.0.1", "--port", "0", "--run-as", "nobody"]
    environment = os.environ | {"PYTHONPATH": str(PYTHON_PATH)}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=WAIT_S)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.decode() == f"xftpd: nobody may not read {root}\n"


def test_by_number() -> None:
    assert Identity.find(str(NOBODY.pw_uid)) == Identity.find("nobody")
    assert Identity.find(f"nobody:{NOBODY.pw_gid}").groups == (NOBODY.pw_gid,)


def test_the_groups_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getgrouplist", lambda name, group: [group, 7, 8])
    assert Identity.find("nobody").groups == (NOBODY.pw_gid, 7, 8)
    monkeypatch.setattr("os.getgrouplist", lambda name, group: [group, 0])
    with pytest.raises(PrivilegeError, match="root's group"):
        Identity.find("nobody")
