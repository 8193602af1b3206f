"""The options of `xftpd` that say how much there is for all, for an address and for a user."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from xftp.server.limits import Limit, Limits, RateCaps

from .params import Command, Seconds, rate, with_options

_KINDS = {
    "sessions": "Sessions",
    "transfers": "Transfers and listings",
    "data_connections": "Data connections",
    "listeners": "Ports that wait for data connections",
}

_SCOPES = {
    "in_all": ("", "at once"),
    "per_address": ("-per-address", "of one address"),
    "per_user": ("-per-user", "of one user"),
}

_TIMEOUTS = (
    ("login", 30.0, "Close a session that is not logged in after this long."),
    ("idle", 300.0, "Close a session that is silent for this long."),
    ("data", 60.0, "How long data connections may take to be made, and a port waits for them."),
    ("stall", 60.0, "End a transfer that moves nothing, or next to nothing, for this long."),
    ("stop", 60.0, "How long running transfers may go on after SIGTERM."),
)


def _options() -> list[Callable[[Command], Command]]:
    made = []
    for kind, what in _KINDS.items():
        defaults: Limit = getattr(Limits(), kind)
        for scope, (suffix, whose) in _SCOPES.items():
            default = getattr(defaults, scope)
            shown = "any number" if default is None else str(default)
            made.append(
                click.option(
                    f"--{kind.replace('_', '-')}{suffix}",
                    f"limit_{kind}_{scope}",
                    type=click.IntRange(1),
                    default=default,
                    help=f"{what} {whose}  [default: {shown}]",
                )
            )
    for scope, (suffix, whose) in _SCOPES.items():
        made.append(
            click.option(
                f"--transfer-rate{suffix}",
                f"limit_rate_{scope}",
                metavar="RATE",
                callback=rate,
                help=f"Bytes/s of all transfers {whose.replace('at once', 'together')}, as 10M.",
            )
        )
    made.append(_count("max-listing", "listing_entries", "Entries of a directory that is listed."))
    made.append(_count("max-line", "command_line_bytes", "Bytes of a command line.", least=512))
    for name, default, text in _TIMEOUTS:
        made.append(
            click.option(
                f"--{name}-timeout",
                type=Seconds(0 if name == "stop" else 1),
                default=default,
                show_default=True,
                metavar="SECONDS",
                help=text,
            )
        )
    return made


def _count(option: str, name: str, text: str, least: int = 1) -> Callable[[Command], Command]:
    return click.option(
        f"--{option}",
        f"limit_{name}",
        type=click.IntRange(least),
        default=getattr(Limits(), name),
        show_default=True,
        help=text,
    )


def limit_options(command: Command) -> Command:
    """Give a command the options that `take_limits` reads."""
    return with_options(command, *_options())


def take_limits(values: dict[str, Any]) -> Limits:
    """Take the limits out of the values of a command's options."""
    given = {
        name.removeprefix("limit_"): values.pop(name)
        for name in list(values)
        if name.startswith("limit_")
    }
    scopes = [each.name for each in fields(Limit)]
    kinds: dict[str, Any] = {
        kind: Limit(**{s: given.pop(f"{kind}_{s}") for s in scopes}) for kind in _KINDS
    }
    rates = RateCaps(**{scope: given.pop(f"rate_{scope}") for scope in scopes})
    return Limits(**kinds, rates=rates, **given)


def raise_descriptor_limit(limits: Limits, connections: int) -> str | None:
    """Let this process have as many descriptors as it may; tell if that may be too few.

    A session has two, its control connection and its root, and a listener; a transfer one for
    each data connection, and its file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    available = soft
    with contextlib.suppress(OSError, ValueError):  # a sandbox may forbid it, macOS has its own
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        available = hard
    sessions = limits.sessions.in_all or 0
    transfers = min(sessions, limits.transfers.in_all or sessions)
    data = min(transfers * connections, limits.data_connections.in_all or transfers * connections)
    needed = 64 + 3 * sessions + transfers + data
    if available == resource.RLIM_INFINITY or needed <= available:
        return None
    return (
        f"this process may open {available} files, and {sessions} sessions that all move data "
        f"may need {needed}: raise the limit (ulimit -n, LimitNOFILE=) or lower --sessions"
    )
