"""Where the data connections of a session's next transfer come from: PASV, PORT and their kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from xftp.errors import DataConnectionError
from xftp.protocol.addresses import Endpoint
from xftp.transport.active import ActiveChannel
from xftp.transport.channels import DataChannel
from xftp.transport.sockets import Tuning
from xftp.transport.tls import DataTls

from .control import ControlConnection
from .limits import Lease, Shared, TooMany

_UNDIALLED = 10
"""So many times as long addresses wait for a transfer: no port is open for them meanwhile, and what
the client has sent behind them may take its time, such as the hashes of a series."""


class DataConnections:
    """Prepared by one command, taken by the transfer that follows; each holds its places.

    What no transfer takes in `open_timeout_s` seconds is closed, and its places are free; what is
    only to be dialled holds them longer.
    """

    def __init__(self, control: ControlConnection, shared: Shared, open_timeout_s: float) -> None:
        self.framed = False
        """Whether files go over them as records."""
        self._control = control
        self._shared = shared
        self._open_timeout_s = open_timeout_s
        self._channel: DataChannel | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._endpoints: tuple[Endpoint, ...] = ()
        self._places: list[Lease] = []
        self._places_in_use: list[Lease] = []

    def reserve(self, wanted: int, user: str | None, *, listens: bool) -> int:
        """Take places for the data connections of the next transfer; give how many there are.

        user: whom they are counted for; listens: whether a listener waits for them, which ends if
        nothing uses it for too long. What was there before is dropped. Raises DataConnectionError
        (425) without any place.
        """
        self.drop()
        host, shared = self._control.peer_host, self._shared
        available = shared.data_connections.available(host, user)
        count = wanted if available is None else max(1, min(wanted, available))
        try:
            places = [shared.data_connections.take(host, user, count=count)]
            self._places = places
            if listens:
                places.append(shared.listeners.take(host, user, give_up=self.drop))
        except TooMany as error:
            self.drop()
            raise DataConnectionError(str(error)) from error
        return count

    def offer(self, channel: DataChannel, *, framed: bool) -> None:
        """Let the next transfer have a channel that waits already, after `reserve`."""
        self._channel = channel
        self.framed = framed
        self._wait(self._open_timeout_s)

    def dial_later(self, endpoints: tuple[Endpoint, ...], *, framed: bool) -> None:
        """Let the next transfer dial these addresses, after `reserve`."""
        self._endpoints = endpoints
        self.framed = framed
        self._wait(_UNDIALLED * self._open_timeout_s)

    def take(
        self, tuning: Callable[[int], Tuning | None], *, replaces: bool, tls: DataTls | None = None
    ) -> DataChannel:
        """Give the data connections to a transfer. Raises DataConnectionError without any.

        tuning: the setting of each socket, given how many are dialled; replaces: whether a lost
        one of several is dialled anew; tls: what protects those that are dialled.
        """
        channel, self._channel = self._channel, None
        endpoints, self._endpoints = self._endpoints, ()
        self._places_in_use, self._places = self._places, []
        self._stop_waiting()
        if channel is not None:
            return channel
        if not endpoints:
            raise DataConnectionError("Use PASV, EPSV, MPSV, PORT, EPRT or MPRT first.")
        dialled = ActiveChannel(
            endpoints,
            local_host=self._control.bound_host,
            tuning=tuning(len(endpoints)),
            tls=tls,
            timeout_s=self._open_timeout_s,
        )
        dialled.replaces = self.framed and replaces
        return dialled

    def give_back_taken(self) -> None:
        """Give back the places of the connections that a transfer had."""
        for place in self._places_in_use:
            place.release()
        self._places_in_use = []

    def drop(self) -> bool:
        """Close what no transfer took; tell whether anything waited."""
        channel, self._channel, self._endpoints = self._channel, None, ()
        places, self._places = self._places, []
        for place in places:
            place.release()
        self._stop_waiting()
        if channel is not None:
            channel.close()
        return channel is not None

    def _wait(self, timeout_s: float) -> None:
        """Wait for a transfer, but not for ever."""
        self._expiry = asyncio.get_running_loop().call_later(timeout_s, self.drop)

    def _stop_waiting(self) -> None:
        """Wait no longer for a transfer to take the data connections."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
