"""Who logs in, and where the password comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xftp.cli import credentials
from xftp.cli.credentials import Login, find_login
from xftp.errors import FileError, NotLoggedInError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    monkeypatch.delenv("XFTP_PASSWORD", raising=False)
    return tmp_path


def write_netrc(path: Path, mode: int = 0o600) -> None:
    path.write_text(
        "machine one login joe password secret\nmachine two login anonymous\n"
        "machine three login ann password x\n"
    )
    path.chmod(mode)


def login(host: str, user: str | None = None, password: str | None = None) -> Login:
    return find_login(host, user=user, password=password, may_ask=False)


def test_without_anything_it_is_anonymous() -> None:
    assert login("one") == Login(None, None)
    assert login("one", "anonymous") == Login("anonymous", None)


def test_the_url_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_netrc(home / ".netrc")
    monkeypatch.setenv("XFTP_PASSWORD", "environment")
    assert login("one", "joe", "url") == Login("joe", "url")
    assert login("one", "joe") == Login("joe", "environment")


def test_netrc(home: Path) -> None:
    write_netrc(home / ".netrc")
    assert login("one") == Login("joe", "secret")
    assert login("one", "joe") == Login("joe", "secret")
    assert login("two") == Login("anonymous", None)
    assert login("elsewhere") == Login(None, None)


def test_netrc_of_another_user_is_not_used(home: Path) -> None:
    write_netrc(home / ".netrc")
    with pytest.raises(NotLoggedInError, match="no password for ann at one"):
        login("one", "ann")


def test_named_netrc(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_netrc(home / "mine", 0o644)  # whoever names a file answers for it
    found = find_login("one", user=None, password=None, netrc_file=home / "mine", may_ask=False)
    assert found == Login("joe", "secret")
    monkeypatch.setenv("NETRC", str(home / "mine"))
    assert login("three") == Login("ann", "x")
    monkeypatch.setenv("NETRC", str(home / "missing"))
    with pytest.raises(FileError, match="missing"):
        login("one")


def test_a_netrc_that_others_can_read_is_refused_where_it_would_be_used(home: Path) -> None:
    write_netrc(home / ".netrc", 0o644)
    with pytest.raises(FileError, match="chmod 600"):
        login("one")
    assert login("elsewhere") == Login(None, None)


def test_a_broken_netrc(home: Path) -> None:
    (home / ".netrc").write_text("what is this\n")
    with pytest.raises(FileError, match="line 1"):
        login("one")


def test_a_home_that_is_none_has_no_netrc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As service accounts have it; but a file that was named has to be there."""
    monkeypatch.setenv("HOME", "/dev/null")
    assert login("one") == Login(None, None)
    monkeypatch.setenv("NETRC", "/dev/null/.netrc")
    with pytest.raises(FileError, match="Not a directory"):
        login("one")


def test_a_pipe_is_not_waited_for(home: Path) -> None:
    os.mkfifo(home / ".netrc")
    with pytest.raises(FileError, match=r"\.netrc: is a pipe"):
        login("one")


def test_a_person_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "ask_password", lambda question: f"answer to {question}")
    found = find_login("one", user="joe", password=None)
    assert found == Login("joe", "answer to Password for joe at one: ")
