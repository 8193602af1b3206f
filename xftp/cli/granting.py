"""The options of `xftpd` for its data sockets: how they are set, and what clients may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .params import Command, buffer_size, initial_window, link_rate, with_options
from .settings import tuning_options

if TYPE_CHECKING:
    from .tuning import DaemonTuning


def granting_options(command: Command) -> Command:
    """Add the options that `take_tuner` reads."""
    command = with_options(
        command,
        click.option(
            "--allow-cc",
            "allowed_algorithms",
            metavar="NAME",
            multiple=True,
            help="A congestion control that clients may ask for [default: all that there are].",
        ),
        click.option(
            "--max-buffer",
            metavar="BYTES",
            default="64M",
            show_default=True,
            callback=buffer_size,
            help="The largest socket buffer that clients may ask for.",
        ),
        click.option(
            "--max-initial-window",
            metavar="SEGMENTS",
            default="1000",
            show_default=True,
            callback=initial_window,
            help="The largest initial window that clients may ask for.",
        ),
        click.option(
            "--max-rate",
            metavar="RATE",
            callback=link_rate,
            help="The highest rate in bits/s that clients may ask for, as 50mbit [default: any].",
        ),
    )
    return tuning_options(command)


def take_tuner(values: dict[str, Any]) -> DaemonTuning:
    """Make what sets the data sockets; its options are taken out of the values of a command's."""
    from .tuning import DaemonTuning, Limits, Wish

    limits = Limits(
        algorithms=values.pop("allowed_algorithms"),
        buffer_bytes=values.pop("max_buffer"),
        initial_window_segments=values.pop("max_initial_window"),
        rate_bps=values.pop("max_rate"),
    )
    values["rate_bps"] = values.pop("link_rate_bps")
    wish = Wish(**{name: values.pop(name) for name in Wish.__dataclass_fields__})
    return DaemonTuning(wish, limits)
