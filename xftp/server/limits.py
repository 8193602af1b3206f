"""How much of the server there is for all, for one address and for one user.

A place is taken before something begins and given back when it ends. When all places are taken,
one held by the address that has the most goes to a newcomer that has fewer: so that no address,
however many connections it makes, keeps another out. Where nothing can be taken back, as from a
running transfer, an address gets a further place only while more are free than it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from xftp.errors import XftpError
from xftp.transport.ports import PassivePorts
from xftp.transport.ratelimit import RateLimit

from .guessing import address_block
from .storage import Usages
from .threads import FairThreads
from .watch import Watch

if TYPE_CHECKING:
    from .standing import StandingPort


class TooMany(XftpError):
    """There are as many as there may be; another time there may be room: 450."""

    reply_code = 450


@dataclass(frozen=True, slots=True)
class Limit:
    """How many of one kind there may be at once; None: any number."""

    in_all: int | None = None
    """In the whole server."""

    per_address: int | None = None
    """Of one IPv4 address, or of one /64 network of IPv6 addresses."""

    per_user: int | None = None
    """Of one user; `anonymous` is one."""


@dataclass(frozen=True, slots=True)
class RateCaps:
    """Bytes per second of all transfers together; None: as fast as the line."""

    in_all: float | None = None
    """Of the whole server."""

    per_address: float | None = None
    """Of one address."""

    per_user: float | None = None
    """Of one user; a rate of the account itself holds beside it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The operator's limits."""

    sessions: Limit = Limit(500, 50)
    """Control connections, logged in or not."""

    transfers: Limit = Limit()
    """Commands that move data at the same time: files and listings."""

    data_connections: Limit = Limit()
    """Data connections that may be made, open ones and those that a listener waits for."""

    listeners: Limit = Limit()
    """Ports that wait for data connections."""

    rates: RateCaps = field(default_factory=RateCaps)
    """What the transfers may move."""

    listing_entries: int = 10_000
    """Entries of a directory that one request looks at; a larger one is refused."""

    command_line_bytes: int = 8192
    """The longest command line: two paths of PATH_MAX (4096) bytes."""


class Lease:
    """Places that are taken. `release` gives them back and may be called again."""

    __slots__ = ("_quota", "address", "count", "give_up", "user")

    def __init__(
        self,
        quota: Quota,
        address: str,
        user: str | None,
        count: int,
        give_up: Callable[[], bool] | None,
    ) -> None:
        self._quota = quota
        self.address = address
        self.user = user
        self.count = count
        self.give_up = give_up

    def assign(self, user: str | None) -> None:
        """Count the places as those of `user` from now on. Raises TooMany."""
        self._quota.reassign(self, user)

    def release(self) -> None:
        """Give the places back."""
        self._quota.give_back(self)


class Quota:
    """The places of one kind. what: what they are, in the plural, for the reply."""

    def __init__(self, what: str, limit: Limit) -> None:
        self.limit = limit
        self.refused = 0
        """How often there was no place."""
        self._what = what
        self._leases: dict[Lease, None] = {}  # in the order in which they were taken
        self._by_address: Counter[str] = Counter()
        self._by_user: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Places that are taken."""
        return self._by_address.total()

    @property
    def addresses(self) -> int:
        """Addresses that hold a place."""
        return len(self._by_address)

    def available(self, host: str, user: str | None = None) -> int | None:
        """Tell how many places `host` may take now without anything taken back; None: any."""
        address = address_block(host)
        bounds = [
            (self.limit.per_address, self._by_address[address]),
            (self.limit.per_user, self._by_user[user] if user is not None else 0),
            (self.limit.in_all, self.total),
        ]
        left = [limit - taken for limit, taken in bounds if limit is not None]
        if self.limit.in_all is not None and self.limit.per_address is None:
            held = self._by_address[address]
            # Each further place needs more free ones than it holds, the first one only a free one.
            left.append((self.limit.in_all - self.total - held + 1) // 2)
        return max(0, min(left)) if left else None

    def take(
        self,
        host: str,
        user: str | None = None,
        *,
        count: int = 1,
        give_up: Callable[[], bool] | None = None,
    ) -> Lease:
        """Take `count` places for the address `host`. Raises TooMany.

        give_up: asked to end what the places are taken for, to make room for another address;
        gives whether it did. Without it they are held until they are released.
        """
        address = address_block(host)
        try:
            if give_up is None:
                available = self.available(host, user)
                if available is not None and available < count:
                    raise TooMany(f"Too many {self._what}, try again later")
            else:
                self._check(self.limit.per_address, self._by_address[address] + count)
                if user is not None:
                    self._check(self.limit.per_user, self._by_user[user] + count)
                if self.limit.in_all is not None and self.total + count > self.limit.in_all:
                    self._make_room(address, self.total + count - self.limit.in_all)
        except TooMany:
            self.refused += 1
            raise
        lease = Lease(self, address, user, count, give_up)
        self._leases[lease] = None
        self._count(lease, count)
        return lease

    def give_back(self, lease: Lease) -> None:
        """Count the places of a lease no more."""
        if lease in self._leases:
            del self._leases[lease]
            self._count(lease, -lease.count)

    def reassign(self, lease: Lease, user: str | None) -> None:
        """Count a lease as one of `user`. Raises TooMany."""
        if user is not None and user != lease.user:
            self._check(self.limit.per_user, self._by_user[user] + lease.count)
        if lease in self._leases:
            self._count(lease, -lease.count)
            lease.user = user
            self._count(lease, lease.count)

    def _check(self, limit: int | None, count: int) -> None:
        if limit is not None and count > limit:
            raise TooMany(f"Too many {self._what}, try again later")

    def _count(self, lease: Lease, change: int) -> None:
        for counter, key in ((self._by_address, lease.address), (self._by_user, lease.user)):
            if key is not None:
                counter[key] += change
                if not counter[key]:
                    del counter[key]

    def _make_room(self, newcomer: str, places: int) -> None:
        """Take places back from those who hold the most. Raises TooMany."""
        least = self._by_address[newcomer] + 2  # with fewer, they would only change places
        for address, held in self._by_address.most_common():
            if places <= 0 or held < least:
                break
            places -= self._take_back(address, places)
        if places > 0:
            raise TooMany(f"Too many {self._what}, try again later")

    def _take_back(self, address: str, places: int) -> int:
        """Take up to `places` from one address: who has not logged in first, then the oldest."""
        leases = [lease for lease in self._leases if lease.address == address]
        taken = 0
        for lease in sorted(leases, key=lambda lease: lease.user is not None):
            if taken >= places:
                break
            if lease.give_up is not None and lease.give_up():
                lease.release()
                taken += lease.count
        return taken


class SharedLimit(RateLimit):
    """Several limits on one transfer: each accounts for every byte, the slowest decides."""

    def __init__(self, limits: tuple[RateLimit, ...]) -> None:
        self._limits = limits

    @property
    def batch_bytes(self) -> int:
        return min(limit.batch_bytes for limit in self._limits)

    def spend(self, size: int, now: float) -> float:
        return max(limit.spend(size, now) for limit in self._limits)


class Rates:
    """The limits on rates that transfers share."""

    def __init__(self, caps: RateCaps) -> None:
        self._caps = caps
        self._in_all = None if caps.in_all is None else RateLimit(caps.in_all)
        self._shared: WeakValueDictionary[tuple[str, str], RateLimit] = WeakValueDictionary()

    def limit(self, host: str, user: str | None, own: RateLimit | None) -> RateLimit | None:
        """Give what limits a transfer of `user` from `host`; own: the limit of the account."""
        limits = [
            own,
            self._in_all,
            self._one(("address", address_block(host)), self._caps.per_address),
            self._one(("user", user or ""), self._caps.per_user),
        ]
        present = tuple(limit for limit in limits if limit is not None)
        if len(present) <= 1:
            return present[0] if present else None
        return SharedLimit(present)

    def _one(self, key: tuple[str, str], rate_bytes_per_s: float | None) -> RateLimit | None:
        """Give the limit that everything with this key shares, as long as anything has it."""
        if rate_bytes_per_s is None:
            return None
        limit = self._shared.get(key)
        if limit is None:
            limit = self._shared[key] = RateLimit(rate_bytes_per_s)
        return limit


class Shared:
    """What the sessions of one server have in common."""

    def __init__(self, limits: Limits, passive_ports: Sequence[int] = ()) -> None:
        """Share out what `limits` allow. passive_ports: those there are; none: any free ones."""
        listeners = limits.listeners
        if passive_ports:
            in_all = min(len(passive_ports), listeners.in_all or len(passive_ports))
            listeners = replace(listeners, in_all=in_all)
        self.sessions = Quota("sessions", limits.sessions)
        self.transfers = Quota("transfers", limits.transfers)
        self.data_connections = Quota("data connections", limits.data_connections)
        self.listeners = Quota("listeners for data connections", listeners)
        self.rates = Rates(limits.rates)
        self.watch = Watch()
        self.ports = PassivePorts(passive_ports)
        self.standing_port: StandingPort | None = None
        """Where the data connections of all sessions may come; None: nowhere."""
        self.threads = FairThreads()
        self.usages = Usages()
        """What is kept beneath the homes of accounts that may not keep all that they like."""
