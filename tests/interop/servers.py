"""Servers as processes: our own, vsftpd, pyftpdlib and aioftp, each on a free port."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from .programs import IPV4, PASSWORD, USER, XFTPD, Daemon, find, running, wait_for

Server = Callable[[str, Path], AbstractContextManager[Daemon]]
"""Runs a server on a host, with a folder of its own; anybody may write below its root."""

_AIOFTP = """
import asyncio, sys, aioftp

async def main(host, root):
    server = aioftp.Server([aioftp.User(base_path=root)])
    await server.start(host, 0)
    print(f"listening on {host}:{server.server_port}", flush=True)
    await server.serve_forever()

asyncio.run(main(*sys.argv[1:]))
"""
_VSFTPD_TRIES = 5


def has_ipv6() -> bool:
    """Tell whether this machine has an IPv6 loopback address."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def xftpd(host: str, folder: Path) -> Iterator[Daemon]:
    """Run our daemon; it logs every command and reply."""
    command = [*XFTPD, "--root", str(_root(folder)), "--host", host, "--port", "0", "-vv"]
    command += ["--anonymous", "--writable", "--user", f"{USER}:{PASSWORD}"]
    with _announced(command, host, folder, r"^listening on \S+:([0-9]+)$") as daemon:
        yield daemon


@contextlib.contextmanager
def pyftpdlib(host: str, folder: Path) -> Iterator[Daemon]:
    """Run the server that pyftpdlib brings."""
    pytest.importorskip("pyftpdlib", reason="pyftpdlib is not installed", exc_type=ImportError)
    command = [sys.executable, "-W", "ignore", "-m", "pyftpdlib", "-i", host, "-p", "0", "-w"]
    command += ["-d", str(_root(folder))]
    with _announced(command, host, folder, r"starting FTP server on \S+:([0-9]+),") as daemon:
        yield daemon


@contextlib.contextmanager
def aioftp(host: str, folder: Path) -> Iterator[Daemon]:
    """Run aioftp's own server."""
    command = [sys.executable, "-c", _AIOFTP, host, str(_root(folder))]
    with _announced(command, host, folder, r"^listening on \S+:([0-9]+)$") as daemon:
        yield daemon


@contextlib.contextmanager
def vsftpd(
    host: str,
    folder: Path,
    more: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Daemon]:
    """Run vsftpd, where anonymous may write.

    more: settings beside those; tls: what sees its greeting if that comes within TLS.
    """
    program = find("vsftpd")
    if os.geteuid() != 0:
        pytest.skip("vsftpd needs root")
    root = _root(folder)
    empty = folder / "empty"
    empty.mkdir()
    log = folder / "server.log"
    config = folder / "vsftpd.conf"
    with contextlib.ExitStack() as stack:
        for _ in range(_VSFTPD_TRIES):
            port = _free_port(host)
            settings = _vsftpd_settings(host, port, root, empty) | dict(more or {})
            config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            process = stack.enter_context(running([program, str(config)], cwd=folder, log=log))
            # It cannot choose a port itself; somebody may have taken ours meanwhile.
            greets = partial(_greets, process, host, port, tls)
            if wait_for(greets, "vsftpd greets or ends") == "greets":
                yield Daemon(host, port, root, log)
                return
        pytest.fail(f"vsftpd does not start: {log.read_text()}")


def _vsftpd_settings(host: str, port: int, root: Path, empty: Path) -> dict[str, str]:
    ipv6 = ":" in host
    return {
        "listen": "NO" if ipv6 else "YES",
        "listen_ipv6": "YES" if ipv6 else "NO",
        "listen_address6" if ipv6 else "listen_address": host,
        "listen_port": str(port),
        "background": "NO",
        "anonymous_enable": "YES",
        "no_anon_password": "YES",
        "anon_root": str(root),
        "anon_world_readable_only": "NO",
        "anon_umask": "022",
        "write_enable": "YES",
        "anon_upload_enable": "YES",
        "anon_mkdir_write_enable": "YES",
        "anon_other_write_enable": "YES",
        "local_enable": "NO",
        "seccomp_sandbox": "NO",
        "secure_chroot_dir": str(empty),
        "xferlog_enable": "NO",
    }


def _greets(
    process: subprocess.Popen[bytes], host: str, port: int, tls: ssl.SSLContext | None
) -> str | None:
    if process.poll() is not None:
        return "ended"
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        control = stack.enter_context(socket.create_connection((host, port), 5))
        if tls is not None:
            control = stack.enter_context(tls.wrap_socket(control, server_hostname=host))
        if control.recv(4096).startswith(b"220 (vsFTPd"):
            return "greets"
    return None


@contextlib.contextmanager
def _announced(command: Sequence[str], host: str, folder: Path, line: str) -> Iterator[Daemon]:
    """Run a server that tells its port in a line like `line`."""
    log = folder / "server.log"
    with running(command, cwd=folder, log=log) as process:

        def port() -> int | None:
            assert process.poll() is None, f"the server did not start:\n{log.read_text()}"
            found = re.search(line, log.read_text(), re.MULTILINE)
            return int(found[1]) if found else None

        yield Daemon(host, wait_for(port, "the server tells its port") or 0, folder / "root", log)


def _root(folder: Path) -> Path:
    root = folder / "root"
    root.mkdir()
    return root


def _free_port(host: str) -> int:
    family = socket.AF_INET if host == IPV4 else socket.AF_INET6
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
