"""The daemon's configuration file: what it may hold, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from xftp.cli.daemon import xftpd_command


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "xftpd.toml"
    path.write_text(text)
    done = CliRunner().invoke(xftpd_command, ["--root", str(tmp_path), "--config", str(path)])
    assert done.exit_code == 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("writable = 1", "'writable' is true or false"),
        ('writable = "yes"', "'writable' is true or false"),
        ("sessions = true", "'sessions' is neither true nor false, it takes a value"),
        ("port = 2195.9", "'2195.9' is not a valid integer"),
        ("sessions = 1.5", "'1.5' is not a valid integer"),
        ('users = ["a", "b"]', "'users' is not a list"),
        ("user = { a = 1 }", "'user' is no text, number or list"),
        ("idle-timeout = nan", "'nan' is no number of seconds"),
        ("prot = 1", "there is no option 'prot'"),
        ("port = ", "Invalid value for '--config'"),
    ],
)
def test_what_is_no_value_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


@pytest.mark.parametrize("value", ["nan", "NaN", "-nan", "0.5"])
def test_the_command_line_takes_no_more(tmp_path: Path, value: str) -> None:
    done = CliRunner().invoke(xftpd_command, ["--root", str(tmp_path), "--idle-timeout", value])
    assert done.exit_code == 2
    assert "Invalid value for '--idle-timeout'" in done.output


@pytest.mark.parametrize(
    "text",
    [
        "verbose = true",
        "verbose = 2",
        "writable = true",
        "port = 2121",
        "idle-timeout = 60",
        "idle-timeout = 60.5",
        'user = "joe:secret"',
        'user = ["joe:secret", "ann:secret"]',
    ],
)
def test_what_is_one_is_taken(tmp_path: Path, text: str) -> None:
    """The start ends behind it, with a certificate that is not there."""
    missing = f'\ntls-cert = "{tmp_path}/none"\ntls-key = "{tmp_path}/none"\nanonymous = true\n'
    path = tmp_path / "xftpd.toml"
    path.write_text(text + missing)
    done = CliRunner().invoke(xftpd_command, ["--root", str(tmp_path), "--config", str(path)])
    assert done.exit_code != 0
    assert "none" in done.output
    assert "--config" not in done.output
