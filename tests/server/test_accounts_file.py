"""The users file: what it may hold, who may see it, how it is replaced."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from xftp.errors import ArgumentError, FileError
from xftp.server.accounts_file import (
    Entry,
    check_name,
    edited_users,
    format_users,
    read_accounts,
    read_users,
)
from xftp.server.passwords import hash_password
from xftp.server.permissions import ALL, READ_ONLY, Permission

HASH = hash_password("secret")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.toml"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


ENTRIES = {
    "ann": Entry(HASH),
    "b.o'b": Entry(
        HASH, Path('/srv/b "o" b\\ü'), frozenset({Permission.WRITE}), 1, 2, 3, 4, 5, 6, 7
    ),
    "ünï": Entry(HASH, Path("relative/home"), frozenset()),
    "🛰": Entry(HASH, permissions=ALL),
    "anonymous": Entry(),
}


def test_what_is_written_is_read_again(path: Path) -> None:
    with edited_users(path) as users:
        users.update(ENTRIES)
    assert read_users(path) == ENTRIES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with edited_users(path) as users:
        del users["ann"]
    assert read_users(path) == {name: each for name, each in ENTRIES.items() if name != "ann"}
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_accounts(path: Path, tmp_path: Path) -> None:
    written(path, format_users(ENTRIES))
    accounts = {each.name: each for each in read_accounts(path, tmp_path)}
    assert accounts["ann"].root == tmp_path
    assert accounts["ann"].permissions == READ_ONLY
    assert accounts["ünï"].root == tmp_path / "relative/home"
    bob = accounts["b.o'b"]
    assert bob.root == Path('/srv/b "o" b\\ü')
    assert (bob.session_limit, bob.connection_limit, bob.rate_bytes_per_s) == (1, 2, 3)
    assert (bob.idle_timeout_s, bob.stall_timeout_s) == (6, 7)
    assert HASH not in repr(bob)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[users.ann\n", "line 1"),
        ("x = 1\n", "and nothing else"),
        ("users = 1\n", "and nothing else"),
        ("[users]\nann = 1\n", "ann: expected a table"),
        ("[users.ann]\n", "no argon2 hash"),
        ('[users.ann]\npassword = "secret"\n', "no argon2 hash"),
        ("[users.ann]\npassword = 1\n", "no argon2 hash"),
        (f'[users.ann]\npassword = "{HASH}"\nwritable = true\n', "no setting 'writable'"),
        (f'[users.ann]\npassword = "{HASH}"\npermissions = "read"\n', "list of words"),
        (f'[users.ann]\npassword = "{HASH}"\npermissions = ["fly"]\n', "'fly' is no permission"),
        (f'[users.ann]\npassword = "{HASH}"\nsessions = 0\n', "sessions is no number"),
        (f'[users.ann]\npassword = "{HASH}"\nconnections = true\n', "connections is no number"),
        (f'[users.ann]\npassword = "{HASH}"\nhome = ""\n', "home is no path"),
        (f'[users."a b"]\npassword = "{HASH}"\n', "cannot be the name"),
        (f'[users.FTP]\npassword = "{HASH}"\n', "another name of anonymous"),
    ],
)
def test_bad_files(path: Path, text: str, sentence: str) -> None:
    written(path, text)
    with pytest.raises(FileError, match=sentence) as caught:
        read_users(path)
    assert str(path) in str(caught.value)
    assert HASH not in str(caught.value)
    with pytest.raises(FileError), edited_users(path):
        pass
    assert path.read_text(encoding="utf-8") == text


def test_no_text_and_no_file(path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        read_users(path)
    path.write_bytes(b"\xff")
    path.chmod(0o600)
    with pytest.raises(FileError, match="utf-8"):
        read_users(path)
    with pytest.raises(FileError, match="nowhere"), edited_users(path.parent / "nowhere" / "x"):
        pass


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o644, 0o666])
def test_a_file_open_to_others_is_refused(path: Path, mode: int) -> None:
    written(path, format_users(ENTRIES), mode)
    with pytest.raises(FileError, match="chmod 600"):
        read_users(path)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_mode_and_owner_stay(path: Path, mode: int) -> None:
    """A daemon without root reads the file through its group."""
    written(path, format_users(ENTRIES), mode)
    if os.geteuid() == 0:
        os.chown(path, 1, 2)
    before = path.stat()
    with edited_users(path) as users:
        users.clear()
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid,
    )  # fmt: skip
    assert after.st_ino != before.st_ino


def test_a_link_stays_one(path: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = written(tmp_path / "real" / "users", format_users({}))
    path.symlink_to(real)
    with edited_users(path) as users:
        users.update(ENTRIES)
    assert path.is_symlink()
    assert read_users(real) == ENTRIES


def test_a_change_that_fails_changes_nothing(path: Path) -> None:
    written(path, format_users(ENTRIES))
    with pytest.raises(ZeroDivisionError), edited_users(path) as users:
        users.clear()
        raise ZeroDivisionError
    with pytest.raises(UnicodeEncodeError), edited_users(path) as users:
        users["\udcff"] = Entry(HASH)
    assert read_users(path) == ENTRIES
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_editors_wait_for_each_other(path: Path) -> None:
    def add(number: int) -> None:
        with edited_users(path) as users:
            users[f"user{number}"] = Entry(HASH)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_users(path)) == 8


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a/b", "a\nb", "x" * 65, 'a"b', "Anonymous"])
def test_bad_names(name: str) -> None:
    with pytest.raises(ArgumentError):
        check_name(name)
