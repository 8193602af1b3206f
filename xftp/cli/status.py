"""`xftpd status`: asks the running daemon how it fares."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xftp.server.status import somebody_listens

from .text import printable, rate_text, size_text
from .watching import runtime_directories, socket_name

if TYPE_CHECKING:
    from rich.table import Table

WORD = "status"
"""The word behind `xftpd` that means this."""

_TIMEOUT_S = 10.0
_MOST_BYTES = 64 * 1024 * 1024


@click.command(WORD)
@click.option(
    "--socket",
    "path",
    type=click.Path(path_type=Path),
    help="The daemon's --status-socket [default: the one that there is].",
)
@click.option("--port", type=click.IntRange(1, 65535), help="The daemon that listens on this port.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with everything.")
def status_command(path: Path | None, port: int | None, as_json: bool) -> None:
    """Tell how a running xftpd fares: sessions, transfers, rates, what was refused.

    Needs to be run by the daemon's user, or by root.
    """
    answer = _ask(path or _find(port))
    if as_json:
        click.echo(json.dumps(answer))
    else:
        _show(answer)


def _find(port: int | None) -> Path:
    """Find the socket of the daemon that runs. Raises ClickException without exactly one."""
    pattern = socket_name(port or "*")
    there = [path for place in runtime_directories() for path in sorted(place.glob(pattern))]
    found = [path for path in there if _may_answer(path)]
    if not found:
        raise click.ClickException(
            "no running xftpd was found: give its --status-socket with --socket"
        )
    if len(found) > 1:
        names = ", ".join(str(path) for path in found)
        raise click.ClickException(f"several daemons run, choose one with --socket: {names}")
    return found[0]


def _may_answer(path: Path) -> bool:
    """Tell whether a daemon is behind a socket, as far as we may know."""
    try:
        return somebody_listens(path)
    except OSError:
        return True  # the question itself will say why


def _ask(path: Path) -> dict[str, Any]:
    data = bytearray()
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_TIMEOUT_S)
            sock.connect(str(path))
            while (more := sock.recv(65536)) and len(data) < _MOST_BYTES:
                data += more
        answer = json.loads(data)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(f"{path}: the answer is no JSON") from error
    if not isinstance(answer, dict):
        raise click.ClickException(f"{path}: the answer is not that of xftpd")
    return answer


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console  # a fifth of the daemon's start, which needs it not

    console = Console(highlight=False, soft_wrap=True)
    state = ", is stopping" if answer["is_stopping"] else ""
    console.print(
        f"xftpd {answer['process']} on {answer['listening']}, up {answer['up_s']:.0f} s{state}",
        markup=False,
    )
    now, refused = answer["now"], answer["refused"]
    with_tls = sum(each["tls"] is not None for each in answer["sessions"])
    console.print(
        f"{now['sessions']} sessions from {answer['addresses']} addresses, {with_tls} with TLS, "
        f"{now['transfers']} transfers, {now['data_connections']} data connections, "
        f"{now['listeners']} listeners; refused: "
        + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in refused.items()),
        markup=False,
    )
    logins = answer["logins"]
    moved = ", ".join(f"{name} {size_text(n)}" for name, n in answer["bytes_total"].items())
    console.print(
        f"so far: {answer['sessions_total']} sessions, {logins['ok']} logins, "
        f"{logins['refused']} logins refused" + (f"; moved: {moved}" if moved else ""),
        markup=False,
    )
    if answer["transfers"]:
        console.print(_transfers(answer["transfers"]))


def _transfers(running: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("direction", "user", "from", "moved", "rate", "connections", "path"):
        table.add_column(title, overflow="fold")
    for each in running:
        table.add_row(
            each["direction"],
            _plain(each["user"]),
            each["peer"],
            size_text(each["bytes"]),
            rate_text(each["bytes_per_s"]),
            str(each["connections"]),
            _plain(each["path"]),
        )
    return table


def _plain(text: str) -> str:
    """Show no control characters, and no markup of rich."""
    from rich.markup import escape

    return escape(printable(text))
