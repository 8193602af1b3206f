"""What the kernel gave, and the reasons why it is not what was asked."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Any

import pytest

from tuning import readback
from tuning.readback import Keepalive, agrees, explain, granted, is_connected, sysctl

from .support import connected, payload_bps


@pytest.fixture
def sysctls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an ordinary host's settings in place of this one's."""
    for name, value in {
        "net/core/rmem_max": "212992",
        "net/core/wmem_max": "212992",
        "net/ipv4/tcp_fastopen": "1",
        "net/ipv4/tcp_available_congestion_control": "reno cubic",
        "net/ipv4/tcp_allowed_congestion_control": "reno",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(value + "\n")
    monkeypatch.setattr(readback, "_SYSCTLS", tmp_path)
    return tmp_path


def test_a_new_socket() -> None:
    with socket.socket() as sock:
        got = granted(sock)
    assert got.send_buffer_bytes > 0
    assert got.congestion
    assert got.initial_window_segments is None
    assert got.pacing_rate_bps is None
    assert got.notsent_lowat_bytes == 0
    assert got.window_clamp_bytes == 0
    assert got.user_timeout_ms == 0
    assert got.keepalive is None
    assert got.fast_open is False


def test_a_connection_has_an_initial_window() -> None:
    with connected() as pair:
        for sock in (pair.client, pair.server):
            window = granted(sock).initial_window_segments
            assert window is not None and window > 0
        assert granted(pair.listener).initial_window_segments is None


def test_a_receiver_whose_peer_has_closed_still_has_its_initial_window() -> None:
    with connected() as pair:
        before = granted(pair.server).initial_window_segments
        pair.client.sendall(b"all")
        pair.client.shutdown(socket.SHUT_WR)
        assert pair.server.recv(3, socket.MSG_WAITALL) == b"all"
        assert pair.server.recv(1) == b""
        assert granted(pair.server).initial_window_segments == before


def test_is_connected() -> None:
    with socket.socket() as sock, connected() as pair:
        assert not is_connected(sock)
        assert not is_connected(pair.listener)
        assert is_connected(pair.client)
        assert is_connected(pair.server)


def test_what_is_no_tcp_socket_raises() -> None:
    with (
        socket.socket(socket.AF_UNIX) as sock,
        pytest.raises(OSError, match=r"not supported|not available"),
    ):
        granted(sock)


@pytest.mark.parametrize(
    ("option", "asked", "got", "new", "connected_"),
    [
        ("send_buffer_bytes", 5000, 5000, True, True),
        ("send_buffer_bytes", 5000, 4999, False, False),
        ("send_buffer_bytes", 5000, 6000, False, False),
        ("pacing_rate_bps", 8001.0, payload_bps(8000), True, True),
        ("pacing_rate_bps", 8e6, None, False, False),
        ("pacing_rate_bps", 8e6, 7_000_000, False, False),
        ("keepalive", Keepalive(1, 1, 1), None, False, False),
        ("keepalive", Keepalive(1, 1, 1), Keepalive(1, 1, 1), True, True),
        ("initial_window_segments", 32, None, True, True),
        ("initial_window_segments", 32, 10, False, False),
        ("quick_ack", True, False, True, True),
        ("window_clamp_bytes", 5000, 4000, False, True),
        ("window_clamp_bytes", 5000, 6000, False, False),
        ("window_clamp_bytes", 5000, 0, False, False),
        ("window_clamp_bytes", 5000, None, False, False),
        ("max_segment_bytes", 1000, 988, False, True),
        ("max_segment_bytes", 1000, 536, False, False),
        ("max_segment_bytes", 1000, 1001, False, False),
    ],
)
def test_agrees(option: str, asked: Any, got: Any, new: bool, connected_: bool) -> None:
    with socket.socket() as sock:
        assert agrees(sock, option, asked, got, connected=False) is new
        assert agrees(sock, option, asked, got, connected=True) is connected_


@pytest.mark.parametrize(
    ("option", "asked", "got", "error", "reason"),
    [
        (
            "receive_buffer_bytes",
            4_000_000,
            212992,
            None,
            "net.core.rmem_max is 212992: sysctl -w net.core.rmem_max=4000000",
        ),
        (
            "send_buffer_bytes",
            4_000_000,
            212992,
            None,
            "net.core.wmem_max is 212992: sysctl -w net.core.wmem_max=4000000",
        ),
        ("send_buffer_bytes", 1000, 2304, None, "the kernel gives no smaller buffer"),
        (
            "congestion",
            "cubic",
            "reno",
            errno.EPERM,
            "only root may choose it:"
            ' sysctl -w net.ipv4.tcp_allowed_congestion_control="reno cubic"',
        ),
        (
            "congestion",
            "htcp",
            "reno",
            errno.ENOENT,
            "the kernel has only reno, cubic: modprobe tcp_htcp",
        ),
        (
            "congestion",
            "xftp_rented",
            "reno",
            errno.ENOENT,
            "the kernel has only reno, cubic: python -m tuning load",
        ),
        ("congestion", "cubic", "reno", None, "it was changed since"),
        (
            "fast_open",
            True,
            False,
            errno.EOPNOTSUPP,
            "net.ipv4.tcp_fastopen is 1: sysctl -w net.ipv4.tcp_fastopen=3",
        ),
        ("user_timeout_ms", 5, 0, errno.EINVAL, "the kernel refuses: Invalid argument"),
        ("max_segment_bytes", 1400, 536, None, "the path or the peer allows only this"),
    ],
)
def test_explain(
    sysctls: Path, option: str, asked: Any, got: Any, error: int | None, reason: str
) -> None:
    raised = OSError(error, "") if error else None
    assert explain(option, asked, got, raised) == reason


def test_without_sysctls_what_was_granted_is_the_ceiling(sysctls: Path) -> None:
    """In some network namespaces net.core is not there to be read."""
    (sysctls / "net/core/rmem_max").unlink()
    assert sysctl("net.core.rmem_max") is None
    reason = explain("receive_buffer_bytes", 4_000_000, 212992)
    assert reason == "net.core.rmem_max is 212992: sysctl -w net.core.rmem_max=4000000"
