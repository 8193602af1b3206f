"""Transfers of records that outlive their connections, where both ends agreed to that.

A connection that breaks, ends or shows no sign of life is given up. What it was to carry goes over
the others, and the side that dials makes a new one. The transfer ends when everything is there, not
when the connections end, and fails when nothing moves for too long. Without the agreement the loss
of a connection that carried something is the end, as in appendix B.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from xftp.errors import TransferAborted

from .channels import DataChannel
from .connection import DataConnection
from .ratelimit import RateLimit
from .sockets import probe_when_idle
from .transfer import Progress, Transfer

logger = logging.getLogger(__name__)

_ROOM_AFTER_S = 1.0
"""A connection on which something is expected, and that was heard of within this time, is not
given up for a new one."""

_KEEPALIVE_RTTS = 8.0


class LastingTransfer(Transfer):
    """A transfer of records, whose connections may be lost and replaced."""

    framed = True

    def __init__(
        self,
        channel: DataChannel,
        *,
        limit: RateLimit | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(channel, limit=limit, progress=progress)
        self.lost_connections = 0
        """Connections given up so far."""
        self._suspects: set[DataConnection] = set()
        self._whole_at: float | None = None
        self._is_confirmed = False
        self._losses_in_a_row = 0
        self._last_reason = ""

    @property
    def lasts(self) -> bool:
        """Whether a lost connection is replaced instead of ending the transfer."""
        return self._channel.replaces

    @property
    def is_whole(self) -> bool:
        """Whether every record is known to have arrived."""
        return self._whole_at is not None

    def confirm(self) -> None:
        self._is_confirmed = True
        self._guard(self._check_whole)
        if not self._outcome.done():
            self._watch_for_stall()

    async def run(self) -> None:
        await super().run()
        if self._whole_at is not None:
            self.seconds = self._whole_at - self._started_at

    # -- for subclasses ------------------------------------------------------------------------

    def _check_whole(self) -> None:
        """See whether the peer's positive reply ends the transfer."""
        raise NotImplementedError

    def _let_go(self, connection: DataConnection) -> None:
        """Give what a lost connection was to carry to the others."""
        raise NotImplementedError

    def _expects(self, connection: DataConnection) -> bool:
        """Tell whether the peer owes something on a connection, so that it should not be quiet."""
        raise NotImplementedError

    def _whole(self) -> None:
        """Note that every record has arrived; the transfer ends, unless the peer has to say so."""
        if self._whole_at is None:
            self._whole_at = time.monotonic()
            self.whole.set()
        if self._is_confirmed or not self.lasts or self.confirmation_timeout_s is None:
            self._done()

    def _welcome(self, connection: DataConnection) -> None:
        """Begin with a connection; the first of the dead ones makes place for it."""
        connection.moved_at = self._loop.time()
        if not self.lasts:
            return
        endurance = self._channel.endurance
        state = connection.state()
        rtt_s = state.rtt_s if state else 0.0
        idle_s = max(endurance.keepalive_s, _KEEPALIVE_RTTS * rtt_s)
        try:
            probe_when_idle(connection.sock, idle_s, endurance.probes)
        except OSError as error:  # it broke already, which will be seen
            logger.debug("connection %d cannot be probed: %s", connection.number, error)
        if self._suspects and self._channel.alive > self._channel.limit:
            self._lose(min(self._suspects, key=_moved_at), "shows no sign of life")

    def _heard(self, connection: DataConnection) -> None:
        """Note a sign of life of the peer on a connection."""
        connection.moved_at = self._moved_at = self._loop.time()
        self._suspects.discard(connection)

    def _gained(self) -> None:
        """Note that the transfer is nearer to its end."""
        self._losses_in_a_row = 0
        self._channel.gained()

    def _broken(self, connection: DataConnection, error: OSError) -> None:
        if self.lasts:
            self._lose(connection, error.strerror or str(error))
        else:
            super()._broken(connection, error)

    def _lose(self, connection: DataConnection, reason: str) -> None:
        """Give a connection up. Without a gain for too long this ends the transfer."""
        if not connection.is_open:
            return
        if not self.is_whole:
            logger.info("data connection %d lost: %s", connection.number, reason)
        self._let_go(connection)
        self._suspects.discard(connection)
        self._stop_reading(connection)
        self._loop.remove_writer(connection.fileno())
        if connection.at_end:
            connection.close()
        else:
            connection.reset()
        if self.is_whole:
            return  # the peer parts with what is not needed any more
        self.lost_connections += 1
        self._losses_in_a_row += 1
        self._last_reason = reason
        most = self._channel.endurance.losses_per_gain * self._channel.limit
        if self._losses_in_a_row > most:
            self._fail(TransferAborted(f"data connections break again and again: {reason}"))

    def _suspect_all(self) -> None:
        """Presume that every connection is dead: nothing was heard on any of them."""
        self._suspects = {each for each in self._connections if each.is_open}

    def _look(self) -> None:
        if self.lasts:
            self._channel.replenish(self._channel.alive - len(self._suspects))

    def _make_room(self) -> bool:
        """Give up the connection that was silent for longest: the peer lost one, perhaps it.

        Its reset may have been lost on the way. One that only rests, because fewer are fed than
        there are, is as quiet as a dead one: it is given up only where no other can be meant.
        """
        alive = [each for each in self._connections if each.is_open] if self.lasts else []
        owing = [each for each in alive if self._expects(each)]
        idle_limit_s = max(
            _ROOM_AFTER_S, self._channel.endurance.idle_limit_s(longest_rtt_s(alive))
        )
        for candidates, quiet_s in ((owing, _ROOM_AFTER_S), (alive, idle_limit_s)):
            quietest = min(candidates, key=_moved_at, default=None)
            if quietest is not None and self._loop.time() - quietest.moved_at >= quiet_s:
                self._lose(quietest, "another came in its place")
                return True
        return False

    def _end_connections(self) -> None:
        if self.lasts and not self._is_confirmed:
            self._channel.keep(self._connections)
        else:
            super()._end_connections()

    @property
    def _stall_limit_s(self) -> float:
        if self.is_whole and self.confirmation_timeout_s is not None:
            return max(self.stall_timeout_s, self.confirmation_timeout_s)
        if self._is_confirmed:  # nothing is on its way any more but what a proxy still holds
            return min(self.stall_timeout_s, self._channel.endurance.idle_s)
        return self.stall_timeout_s

    def _stall_error(self, limit_s: float) -> TransferAborted:
        if self.is_whole:
            return TransferAborted(f"all data has moved, but no reply came for {limit_s:g} s")
        error = super()._stall_error(limit_s)
        if self.lost_connections:
            return TransferAborted(f"{error}, after a data connection broke: {self._last_reason}")
        return error


def longest_rtt_s(connections: Iterable[DataConnection]) -> float:
    """Give the longest of the smoothed round-trip times; 0 where none is known."""
    states = [state for each in connections if (state := each.state())]
    return max((state.rtt_s for state in states), default=0.0)


def _moved_at(connection: DataConnection) -> float:
    return connection.moved_at
