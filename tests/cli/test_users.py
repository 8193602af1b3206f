"""`xftpd user`, and a daemon that takes its accounts from a users file."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from ftplib import FTP, error_perm, error_temp
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xftp.cli.daemon import xftpd_command
from xftp.errors import FileError
from xftp.server.accounts_file import Entry, read_accounts, read_users
from xftp.server.passwords import is_right
from xftp.server.permissions import ALL, READ_ONLY
from xftp.server.storage import StorageLimit

from .conftest import first_line, wait_until

Xftpd = Callable[..., Result]


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    return tmp_path / "users.toml"


@pytest.fixture
def xftpd(users_file: Path) -> Xftpd:
    """Run `xftpd user …` on the users file, and check the exit status."""

    def run(*arguments: str, stdin: str = "", expect: int = 0) -> Result:
        done = CliRunner(env={"XFTPD_USERS": str(users_file)}).invoke(
            xftpd_command, ["user", *arguments], input=stdin, prog_name="xftpd"
        )
        assert done.exit_code == expect, done.output
        return done

    return run


def test_add_passwd_list_remove(xftpd: Xftpd, users_file: Path) -> None:
    xftpd("add", "ann", "--stdin", stdin="se cret\n")
    xftpd(
        "add", "bob", "--stdin", "--permissions", "all", "--home", "bobs", "--sessions", "3",
        "--connections", "2", "--limit-rate", "1M", stdin="x",
    )  # fmt: skip
    xftpd("add", "anonymous", "--permissions", "read")
    assert stat.S_IMODE(users_file.stat().st_mode) == 0o600
    users = read_users(users_file)
    assert is_right(users["ann"].password_hash or "", "se cret")
    assert users["ann"].permissions == READ_ONLY
    bob = users["bob"]
    assert bob == Entry(bob.password_hash, Path("bobs"), ALL, 3, 2, 1024 * 1024)
    assert users["anonymous"].password_hash is None

    xftpd("passwd", "ann", "--stdin", stdin="new\r\n")
    assert is_right(read_users(users_file)["ann"].password_hash or "", "new")

    listed = xftpd("list").output.splitlines()
    assert listed[0] == "ann\tlist,read\t."
    assert listed[1] == "anonymous\tread\t."
    assert listed[2].startswith("bob\tlist,read,write,append,delete,rename,mkdir\tbobs\tsessions=3")
    assert "argon2" not in "".join(listed)

    xftpd("remove", "ann")
    assert sorted(read_users(users_file)) == ["anonymous", "bob"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "sentence"),
    [
        (["add", "ann", "--stdin"], "y\n", 1, "there is a user ann already"),
        (["add", "bob", "--stdin"], "", 1, "a password is needed"),
        (["add", "bob", "--stdin"], "\n", 1, "a password is needed"),
        (["add", "bob"], "x\n", 2, "no terminal"),
        (["add", "b b", "--stdin"], "x\n", 2, "cannot be the name"),
        (["add", "ftp"], "", 2, "another name of anonymous"),
        (["add", "bob", "--permissions", "read,fly"], "", 2, "'fly' is no permission"),
        (["add", "bob", "--sessions", "0"], "", 2, "--sessions"),
        (["passwd", "bob", "--stdin"], "x\n", 1, "there is no user bob"),
        (["passwd", "anonymous", "--stdin"], "x\n", 1, "any password"),
        (["remove", "bob"], "", 1, "there is no user bob"),
        (["dance"], "", 2, "No such command"),
        ([], "", 2, "Missing command"),
    ],
)
def test_what_is_refused_changes_nothing(
    xftpd: Xftpd, users_file: Path, arguments: list[str], stdin: str, status: int, sentence: str
) -> None:
    xftpd("add", "ann", "--stdin", stdin="x\n")
    xftpd("add", "anonymous")
    before = users_file.read_bytes()
    assert sentence in xftpd(*arguments, stdin=stdin, expect=status).output
    assert users_file.read_bytes() == before


def test_the_file_has_to_be_named(xftpd: Xftpd, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner(env={"XFTPD_USERS": None}).invoke(xftpd_command, ["user", "list"])
    assert done.exit_code == 2
    assert "--users" in done.output


def test_a_prompt_asks_twice(
    xftpd: Xftpd, users_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["one", "two", "secret", "secret"]
    monkeypatch.setattr("xftp.cli.users.can_ask", lambda: True)
    monkeypatch.setattr("xftp.cli.users.ask_password", lambda question: answers.pop(0))
    assert "differ" in xftpd("add", "ann", expect=1).output
    assert not users_file.exists()
    xftpd("add", "ann")
    assert is_right(read_users(users_file)["ann"].password_hash or "", "secret")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--users", "{users}"], 2, "Missing option '--root'"),
        (["--root", "{root}"], 2, "Nobody could log in"),
        (["--root", "{root}", "--users", "{root}/missing"], 2, "does not exist"),
        (["--root", "{root}", "--users", "{users}", "--user", "ann:x"], 1, "ann is given"),
        (["--root", "{root}", "--users", "{open}"], 1, "chmod 600"),
        (["user", "--root", "{root}"], 2, "No such option"),
    ],
)
def test_options_of_the_daemon(
    xftpd: Xftpd, users_file: Path, tmp_path: Path, arguments: list[str], status: int, sentence: str
) -> None:
    xftpd("add", "ann", "--stdin", stdin="x\n")
    open_to_all = tmp_path / "open.toml"
    open_to_all.write_bytes(users_file.read_bytes())
    open_to_all.chmod(0o644)
    filled = [each.format(users=users_file, root=tmp_path, open=open_to_all) for each in arguments]
    done = CliRunner().invoke(xftpd_command, filled, prog_name="xftpd")
    assert done.exit_code == status
    assert sentence in done.output
    assert done.output.startswith(("Usage: xftpd ", "Error: "))


def log_in(port: int, user: str, password: str) -> FTP:
    ftp = FTP(timeout=20)
    ftp.connect("127.0.0.1", port)
    ftp.login(user, password)
    return ftp


def test_a_daemon_reads_the_file_again_at_sighup(
    xftpd: Xftpd, users_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "root" / "bobs").mkdir(parents=True)
    xftpd("add", "ann", "--stdin", stdin="first\n")
    config = tmp_path / "xftpd.toml"
    config.write_text(
        f'root = "{tmp_path}/root"\nhost = "127.0.0.1"\nport = 0\nusers = "{users_file}"\n'
    )
    log = tmp_path / "log"
    command = [sys.executable, "-m", "xftp.cli.daemon", "--config", str(config), "-v"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr) as daemon,
    ):

        def hang_up(said: str) -> None:
            count = log.read_text().count(said)
            daemon.send_signal(signal.SIGHUP)
            wait_until(lambda: log.read_text().count(said) > count)

        try:
            port = int(first_line(daemon).rpartition(":")[2])
            ann = log_in(port, "ann", "first")
            with pytest.raises(error_perm, match="550"):
                ann.mkd("new")

            xftpd("passwd", "ann", "--stdin", stdin="second\n")
            xftpd("add", "bob", "--stdin", "--home", "bobs", "--permissions", "all", stdin="x\n")
            hang_up("were read again")
            with pytest.raises((error_temp, EOFError), match=r"421|^$"):
                ann.pwd()
            ann.close()
            log_in(port, "ann", "second").close()
            bob = log_in(port, "bob", "x")
            bob.mkd("new")
            assert (tmp_path / "root" / "bobs" / "new").is_dir()

            users_file.write_text("nonsense")
            hang_up("stay as they were")
            assert bob.pwd() == "/"
            bob.close()
            log_in(port, "ann", "second").close()
        finally:
            daemon.terminate()
            assert daemon.wait(20) == 0


# -- homes, quotas, PAM ------------------------------------------------------------------------


def test_a_home_has_to_be_there(xftpd: Xftpd, users_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "there").mkdir()
    for home in ("new", "file"):
        refused = xftpd(
            "add", "ann", "--home", str(tmp_path / home), "--stdin", stdin="x", expect=1
        )
        assert "directory" in refused.output
        refused = xftpd("add", "ann", "--root", str(tmp_path), "--home", home, "--stdin", expect=1)
        assert "directory" in refused.output
    assert not users_file.exists()
    xftpd("add", "ann", "--home", str(tmp_path / "there"), "--stdin", stdin="x")
    xftpd("add", "bob", "--root", str(tmp_path), "--home", "there", "--stdin", stdin="x")
    assert "--root" in xftpd("add", "cid", "--home", "where", "--stdin", stdin="x").output
    assert read_users(users_file)["bob"].home == Path("there")


def test_a_home_is_made(xftpd: Xftpd, users_file: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    options = ("--create-home", "--root", str(root), "--stdin")
    xftpd("add", "ann", "--home", "a/b", *options, stdin="x")
    assert stat.S_IMODE((root / "a" / "b").stat().st_mode) & 0o007 == 0
    assert read_users(users_file)["ann"].home == Path("a/b")
    xftpd("add", "bob", "--home", "a/b", *options, stdin="x")  # is there now


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_new_home_belongs_to_who_the_daemon_is(
    xftpd: Xftpd, users_file: Path, tmp_path: Path
) -> None:
    xftpd("add", "ann", "--stdin", stdin="x")
    os.chown(users_file, 12345, 12346)
    home = tmp_path / "home"
    xftpd("add", "bob", "--home", str(home), "--create-home", "--stdin", stdin="x")
    assert (home.stat().st_uid, home.stat().st_gid) == (12345, 12346)


def test_quotas(xftpd: Xftpd, users_file: Path) -> None:
    xftpd("add", "ann", "--quota", "20G", "--quota-entries", "1000", "--stdin", stdin="x")
    ann = read_users(users_file)["ann"]
    assert (ann.quota_bytes, ann.quota_entries) == (20 << 30, 1000)
    assert ann.account("ann", Path("/srv")).storage_limit == StorageLimit(20 << 30, 1000)
    assert "quota_bytes=21474836480\tquota_entries=1000" in xftpd("list").output
    for size in ("0", "x", "-1", "1.5G", "G"):
        xftpd("add", "bob", "--quota", size, "--stdin", stdin="x", expect=2)


def test_times(xftpd: Xftpd, users_file: Path) -> None:
    xftpd("add", "ann", "--idle-timeout", "3600", "--stall-timeout", "300", "--stdin", stdin="x")
    ann = read_users(users_file)["ann"].account("ann", Path("/srv"))
    assert (ann.idle_timeout_s, ann.stall_timeout_s) == (3600, 300)
    assert "idle_timeout_s=3600\tstall_timeout_s=300" in xftpd("list").output


def test_pam(xftpd: Xftpd, users_file: Path) -> None:
    xftpd("add", "ann", "--pam")
    xftpd("add", "anonymous", "--pam", expect=2)
    assert read_users(users_file)["ann"].account("ann", Path("/srv")).asks_pam
    assert "pam" in xftpd("list").output
    xftpd("passwd", "ann", "--stdin", stdin="own")
    ann = read_users(users_file)["ann"]
    assert not ann.pam and is_right(ann.password_hash or "", "own")


def test_pam_has_to_be_installed(
    xftpd: Xftpd, users_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xftpd("add", "ann", "--pam")
    monkeypatch.setattr("xftp.server.accounts_file.is_available", lambda: False)
    with pytest.raises(FileError, match=r"xftp\[pam\]"):
        read_accounts(users_file, Path("/srv"))


@pytest.mark.parametrize(
    "line",
    ['pam = true\npassword = "x"', "pam = 1", 'pam = "no"', "quota_bytes = 0", "pam = false"],
)
def test_a_password_is_somewhere(users_file: Path, line: str) -> None:
    users_file.write_text(f"[users.ann]\n{line}\n")
    users_file.chmod(0o600)
    with pytest.raises(FileError):
        read_users(users_file)
