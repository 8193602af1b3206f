"""A real daemon, and what the kernel says of it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
WAIT_S = 60.0
MIB = 1 << 20
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Daemon:
    """One running `xftpd`."""

    process: subprocess.Popen[bytes]
    port: int

    def rss_bytes(self, name: str = "VmRSS") -> int:
        """Give the resident memory, or with VmHWM the most there was."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
        return int(line.split()[1]) * 1024

    def forget_peak(self) -> None:
        """Let VmHWM begin anew (proc(5), clear_refs)."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def cpu_s(self) -> float:
        """Give the processor time used so far, of all threads."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def descriptors(self) -> int:
        """Count its open descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def connect(self, source: str = HOST) -> Control:
        """Open a control connection from an address of the loopback net."""
        sock = socket.create_connection((HOST, self.port), WAIT_S, source_address=(source, 0))
        return Control(sock)

    def log_in(self, source: str = HOST) -> Control:
        """Open a session."""
        control = self.connect(source)
        control.expect(220)
        control.send("USER anonymous\r\nPASS x\r\nTYPE I")
        for code in (331, 230, 200):
            control.expect(code)
        return control


class Control:
    """A control connection that blocks."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._lines = sock.makefile("rb")

    def send(self, line: str) -> None:
        """Send a command."""
        self.sock.sendall(line.encode() + b"\r\n")

    def reply(self) -> tuple[int, str]:
        """Give the next reply. Raises ConnectionError at the end."""
        lines = [self._line()]
        code = lines[0][:4]
        if code[3:] == "-":
            while not lines[-1].startswith(f"{code[:3]} "):
                lines.append(self._line())
        return int(code[:3]), "\n".join(lines)

    def expect(self, code: int) -> str:
        """Take the next reply, which has this code; give its text."""
        found, text = self.reply()
        assert found == code, text
        return text

    def command(self, line: str) -> tuple[int, str]:
        """Send a command; give its first reply."""
        self.send(line)
        return self.reply()

    def is_closed(self) -> bool:
        """Wait for the end, however it comes; whatever is said before is dropped."""
        with contextlib.suppress(ConnectionError):
            while self.sock.recv(65536):
                pass
        return True

    def close(self) -> None:
        """Close."""
        self._lines.close()
        self.sock.close()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self) -> str:
        line = self._lines.readline()
        if not line:
            raise ConnectionResetError("the server closed the control connection")
        return line.decode("utf-8", "surrogateescape").rstrip("\r\n")


@contextlib.contextmanager
def running_daemon(root: Path, *options: str, log: Path | None = None) -> Iterator[Daemon]:
    """Run `xftpd` as its operator does. log: where its standard error goes."""
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("wb")) if log else subprocess.DEVNULL
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "xftp.cli.daemon", "--root", str(root)),
                *("--host", HOST, "--port", "0", "--anonymous", "--writable"),
                *("--status-socket", "none", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], WAIT_S)[0], "xftpd printed nothing"
            line = process.stdout.readline().decode()
            yield Daemon(process, int(line.rpartition(":")[2]))
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=WAIT_S)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; an AssertionError is the failure."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.01)
