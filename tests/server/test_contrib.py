"""The files in contrib/ fit the daemon."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from .daemon import HOST, ROOT, running_daemon

CONTRIB = ROOT / "contrib"


def test_configuration_starts_a_daemon(root: Path, tmp_path: Path) -> None:
    text = (CONTRIB / "xftpd.toml").read_text()
    every_line = re.sub(r"(?m)^# (?=[a-z-]+ = )", "", text)  # those that are only suggested too
    values = tomllib.loads(every_line)
    assert values["port"] == 21
    (tmp_path / "users.toml").touch(mode=0o600)
    moved = {
        "/srv/ftp": str(root),
        "/etc/xftpd/users.toml": str(tmp_path / "users.toml"),
        "/var/log/xftpd/xferlog": str(tmp_path / "xferlog"),
        "127.0.0.1:9721": f"{HOST}:0",
    }
    for old, new in moved.items():
        assert old in every_line
        every_line = every_line.replace(old, new)
    (tmp_path / "xftpd.toml").write_text(every_line.replace("anonymous = true", ""))
    with running_daemon(root, "--config", str(tmp_path / "xftpd.toml")) as daemon:
        with daemon.log_in() as control:
            text = control.command("PASV")[1]
        numbers = [int(number) for number in re.findall(r"\d+", text.partition("(")[2])]
        assert numbers[:4] == [192, 0, 2, 10]
        assert 50_000 <= numbers[4] * 256 + numbers[5] <= 50_999
    assert (tmp_path / "xferlog").exists()


def test_unit_is_understood(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze")
    text = (CONTRIB / "xftpd.service").read_text()
    assert "ExecStart=/usr/local/bin/xftpd --config /etc/xftpd/xftpd.toml\n" in text
    unit = tmp_path / "xftpd.service"
    unit.write_text(
        text.replace("/usr/local/bin/xftpd", "/bin/true").replace("=xftpd\n", "=root\n")
    )
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, timeout=60)
    if done.returncode and b"Failed to" in done.stderr and b"bus" in done.stderr:
        pytest.skip("systemd does not run here")
    assert done.returncode == 0, done.stderr
    assert b"xftpd.service" not in done.stderr, done.stderr
