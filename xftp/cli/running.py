"""From a command to an exit status: the event loop, signals, errors."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import click

from xftp.errors import FileError, XftpError

from . import descriptors
from .terminal import Interrupted, complain, say

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_FULL = (errno.ENOSPC, errno.EDQUOT)


def run(
    work: Callable[[], Coroutine[Any, Any, int]],
    signals: Sequence[signal.Signals] = ENDING_SIGNALS,
) -> int:
    """Run a command's coroutine to its exit status; `signals` cancel it.

    Raises Interrupted, and whatever the coroutine raises.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(interruptible(work(), signals))


async def interruptible(work: Coroutine[Any, Any, int], signals: Sequence[signal.Signals]) -> int:
    """Await `work`; the first of `signals` cancels it, and Interrupted is raised when it has ended.

    A second signal does what it does to any program, for the impatient.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    received: list[int] = []
    previous = {each: signal.getsignal(each) for each in signals}

    def end(signal_number: int) -> None:
        received.append(signal_number)
        for each in signals:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        task.cancel()

    for each in signals:
        loop.add_signal_handler(each, end, each)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0]) from None
        task.cancel()
        raise
    finally:
        for each, handler in previous.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler)


def command_line(command: click.Command, program: str) -> int:
    """Run a command with the arguments of the process; give its exit status.

    What is wrong with them is said in a sentence, with where to look. Raises what it raises else.
    """
    try:
        status = command.main(prog_name=program, standalone_mode=False)
    except click.UsageError as error:
        complain(error.format_message(), program)
        if error.ctx is not None:
            say(f"Try '{error.ctx.command_path} --help'.")
        return error.exit_code
    return status if isinstance(status, int) else 0


def guarded(command: Callable[[], int], program: str = "xftp") -> int:
    """Run a whole command line; every error becomes one sentence and an exit status."""
    try:
        status = command()
        sys.stdout.flush()
    except XftpError as error:
        complain(error, program)
        status = error.exit_code
    except Interrupted as error:
        status = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        status = 128 + signal.SIGINT
    except BrokenPipeError:
        _abandon_stdout()
        status = 1
    except OSError as error:
        is_shut = error.errno == errno.EBADF and 1 in descriptors.closed
        if error.errno not in _FULL and not is_shut:
            raise
        # Of files it is told elsewhere: this is where the output goes.
        complain(f"standard output: {'is closed' if is_shut else error.strerror}", program)
        _abandon_stdout()
        status = FileError.exit_code
    except click.ClickException as error:
        complain(error.format_message(), program)
        status = error.exit_code
    return status


def _abandon_stdout() -> None:
    """Keep the interpreter from complaining, at its end, that nobody reads standard output."""
    with contextlib.suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Give uvloop's event loop where it is installed, None for the one of asyncio."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
