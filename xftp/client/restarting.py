"""Where the next transfer starts: REST."""

from __future__ import annotations

from xftp.protocol.commands import Command
from xftp.protocol.replies import Reply

from .dialogue import Dialogue
from .flights import Pace


def restart_commands(dialogue: Dialogue, start: int) -> list[Command]:
    """Give the REST that may go ahead of the data connections; none if it has to go behind.

    Only servers of our own kind keep it until the transfer, whatever comes in between.
    """
    return [Command("REST", str(start))] if start and dialogue.pace is Pace.ALL else []


async def restart(dialogue: Dialogue, start: int, reply: Reply | None = None) -> int:
    """Ask that the next transfer starts at byte `start`; give where it will start.

    reply: that to `restart_commands`, if there were any.
    """
    if not start:
        return 0
    reply = reply or await dialogue.ask("REST", str(start))
    if reply.is_intermediate:
        return start
    dialogue.notice(f"the server does not restart at {start}, starting over")
    return 0
