"""Places for all, for an address and for a user; rates that are shared."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.server.limits import Lease, Limit, Limits, Quota, RateCaps, Rates, Shared, TooMany
from xftp.transport.ratelimit import RateLimit

from .support import codes, download, extended_port, multiple_ports, plain, until


def quota(
    in_all: int | None = None, per_address: int | None = None, per_user: int | None = None
) -> Quota:
    return Quota("things", Limit(in_all, per_address, per_user))


def taken(places: Quota, host: str, **options: object) -> bool:
    try:
        places.take(host, **options)  # type: ignore[arg-type]
    except TooMany:
        return False
    return True


def test_no_limit() -> None:
    places = quota()
    assert all(taken(places, "a") for _ in range(1000))
    assert places.available("a") is None


def test_limits_of_each_kind() -> None:
    places = quota(in_all=10, per_address=3, per_user=2)
    assert [taken(places, "a") for _ in range(4)] == [True, True, True, False]
    assert [taken(places, "b", user="u") for _ in range(3)] == [True, True, False]
    assert not taken(places, "c", user="u")
    assert taken(places, "c", user="v")
    assert (places.total, places.addresses, places.refused) == (6, 3, 3)


def test_release_counts_once() -> None:
    places = quota(per_address=1)
    lease = places.take("a", user="u")
    lease.release()
    lease.release()
    assert places.total == 0
    assert taken(places, "a", user="u")


def test_networks_count_as_one_address() -> None:
    places = quota(per_address=1)
    assert taken(places, "2001:db8::1")
    assert not taken(places, "2001:db8::2")
    assert taken(places, "2001:db8:0:1::1")
    assert taken(places, "192.0.2.1")
    assert taken(places, "192.0.2.2")


def test_one_address_never_takes_the_last_place_that_cannot_be_taken_back() -> None:
    places = quota(in_all=8)
    assert [taken(places, "a") for _ in range(8)].count(True) == 4
    assert taken(places, "b")
    assert [taken(places, "b") for _ in range(8)].count(True) == 1
    for newcomer in "cd":
        assert taken(places, newcomer)
    assert not taken(places, "e")  # now there are none
    assert quota(in_all=1).available("a") == 1


def test_reserve_of_several_is_cut_not_refused() -> None:
    places = quota(in_all=10)
    assert places.available("a") == 5
    places.take("a", count=5)
    assert places.available("a") == 0
    assert places.available("b") == 3


class _Holder:
    """Holds a place until it is asked to give it up."""

    def __init__(self, places: Quota, host: str, user: str | None = None) -> None:
        self.is_there = True
        self.is_busy = False
        self.lease: Lease = places.take(host, user, give_up=self.give_up)

    def give_up(self) -> bool:
        self.is_there = self.is_busy
        return not self.is_busy


def test_newcomers_get_the_places_of_the_largest() -> None:
    places = quota(in_all=10)
    many = [_Holder(places, "a", "u" if number < 2 else None) for number in range(8)]
    few = [_Holder(places, "b") for _ in range(2)]
    _Holder(places, "c")
    _Holder(places, "b")
    assert all(each.is_there for each in few)
    # Those who have not logged in go first, the oldest of them before the others.
    assert [each.is_there for each in many] == [True, True, False, False] + [True] * 4
    assert places.total == 10


def test_equals_do_not_displace_each_other() -> None:
    places = quota(in_all=4)
    holders = [_Holder(places, host) for host in "aabb"]
    with pytest.raises(TooMany):
        _Holder(places, "a")
    _Holder(places, "c")
    assert [each.is_there for each in holders].count(True) == 3
    with pytest.raises(TooMany):
        _Holder(places, "c")


def test_the_busy_are_left_alone() -> None:
    places = quota(in_all=3)
    holders = [_Holder(places, "a") for _ in range(3)]
    for each in holders:
        each.is_busy = True
    with pytest.raises(TooMany):
        _Holder(places, "b")
    holders[1].is_busy = False
    _Holder(places, "b")
    assert [each.is_there for each in holders] == [True, False, True]


def test_rates_are_shared_and_forgotten() -> None:
    rates = Rates(RateCaps(in_all=1000.0, per_address=100.0))
    a, again, b = (rates.limit(host, None, None) for host in ("a", "a", "b"))
    assert a is not None and again is not None and b is not None
    assert a.spend(100, 0.0) == pytest.approx(0.9)
    assert again.spend(100, 0.0) == pytest.approx(1.9)
    assert b.spend(100, 0.0) == pytest.approx(0.9)
    assert b.batch_bytes == RateLimit(100.0).batch_bytes
    del a, again
    fresh = rates.limit("a", None, None)
    assert fresh is not None
    assert fresh.spend(100, 0.0) == pytest.approx(0.9)


def test_no_rate_is_no_limit() -> None:
    own = RateLimit(5.0)
    assert Rates(RateCaps()).limit("a", "u", None) is None
    assert Rates(RateCaps()).limit("a", "u", own) is own


def test_passive_ports_limit_the_listeners() -> None:
    assert Shared(Limits(), range(5000, 5007)).listeners.limit.in_all == 7
    assert Shared(Limits(listeners=Limit(3)), range(5000, 5007)).listeners.limit.in_all == 3
    assert Shared(Limits()).listeners.limit.in_all is None


# -- with a server -----------------------------------------------------------------------------


def limited(**kinds: Limit) -> Limits:
    return Limits(**kinds)  # type: ignore[arg-type]


async def test_too_many_transfers(root: Path) -> None:
    limits = limited(transfers=Limit(per_user=1))
    async with (
        running_server(root, limits=limits) as server,
        raw_session(server) as first,
        raw_session(server) as second,
    ):
        data = await plain(first)
        first.send("STOR one")
        assert await codes(first, 1) == [150]
        await plain(second)
        assert (await second.command("STOR two")).code == 450
        await data.finish(b"abc")
        assert await codes(first, 1) == [226]
        assert (await download(second, "NLST"))[0] == [150, 226]


async def test_data_connections_are_cut_to_what_is_left(root: Path) -> None:
    limits = limited(data_connections=Limit(per_user=5))
    async with (
        running_server(root, limits=limits) as server,
        raw_session(server) as first,
        raw_session(server) as second,
    ):
        assert (await first.command("OPTS MULT Connections=3;")).code == 200
        assert len(multiple_ports((await first.command("MPSV")).text)[1]) == 3
        assert len(multiple_ports((await second.command("MPSV")).text)[1]) == 2
        assert (await first.command("EPSV")).code == 229  # the three are free again
        assert len(multiple_ports((await second.command("MPSV")).text)[1]) == 4
        third = await _logged_in(server.server_port)
        assert (await third.command("EPSV")).code == 425
        assert (await first.command("QUIT")).code == 221
        await until(lambda: server.session_count == 2)
        assert (await third.command("EPSV")).code == 229
        await third.close()


async def test_addresses_that_no_transfer_uses_hold_no_places(root: Path) -> None:
    limits = limited(data_connections=Limit(in_all=2))
    ports = "|".join(("IP4", "TCP", "127.0.0.1", "40001,40002"))
    async with (
        running_server(root, limits=limits, open_timeout_s=0.1) as server,
        raw_session(server) as first,
        raw_session(server) as second,
    ):
        assert (await first.command(f"MPRT {ports}")).code == 200
        assert (await second.command("EPSV")).code == 425
        await until(lambda: server.shared.data_connections.total == 0)
        assert (await second.command("EPSV")).code == 229
        assert (await first.command("NLST")).code == 425


async def _logged_in(port: int, host: str = "127.0.0.1") -> RawClient:
    client = await RawClient.connect(host, port)
    await client.log_in()
    return client


async def test_places_come_back_after_transfers(root: Path) -> None:
    limits = limited(
        data_connections=Limit(per_user=1), listeners=Limit(1), transfers=Limit(per_user=1)
    )
    (root / "file").write_bytes(b"abc")
    async with running_server(root, limits=limits) as server, raw_session(server) as client:
        for command, expected in (("RETR file", [150, 226]), ("RETR none", [550])):
            for _ in range(3):
                assert (await download(client, command))[0] == expected
        shared = server.shared
        places = (shared.data_connections, shared.listeners, shared.transfers)
        assert [each.total for each in places] == [0, 0, 0]


async def test_unused_listener_is_closed(root: Path) -> None:
    async with running_server(root, open_timeout_s=0.1) as server, raw_session(server) as client:
        assert (await client.command("EPSV")).code == 229
        await until(lambda: server.shared.listeners.total == 0)
        assert (await client.command("NLST")).code == 425


async def test_ports_are_not_exhausted_by_one_address(root: Path) -> None:
    ports = _free_ports(4)
    async with running_server(root, passive_ports=ports) as server:
        clients = [await _logged_in(server.server_port) for _ in range(5)]
        replies = [(await client.command("EPSV")).code for client in clients]
        assert replies == [229] * 4 + [425]
        reader, writer = await _from(server.server_port, "127.0.0.2")
        other = RawClient(reader, writer)
        assert (await other.reply()).code == 220
        await other.log_in()
        reply = await other.command("EPSV")
        assert reply.code == 229
        assert extended_port(reply.text) in ports
        for client in (*clients, other):
            await client.close()


def _free_ports(count: int) -> tuple[int, ...]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = tuple(each.getsockname()[1] for each in sockets)
    for each in sockets:
        each.close()
    return found


async def _from(port: int, source: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))


async def test_sessions_of_one_user(root: Path) -> None:
    limits = limited(sessions=Limit(per_user=1))
    async with running_server(root, limits=limits) as server, raw_session(server):
        client = await RawClient.connect("127.0.0.1", server.server_port)
        assert (await client.command("USER anonymous")).code == 331
        assert (await client.command("PASS x")).code == 421
        await client.close()


async def test_long_command_lines(root: Path) -> None:
    limits = Limits(command_line_bytes=600)
    async with running_server(root, limits=limits) as server, raw_session(server) as client:
        assert (await client.command("NOOP " + "x" * 595)).code == 200
        assert (await client.command("NOOP " + "x" * 596)).code == 500


async def test_full_server_takes_in_others(root: Path) -> None:
    """Who moves data stays, whoever else comes."""
    async with running_server(root, limits=limited(sessions=Limit(3))) as server:
        moving = await _logged_in(server.server_port)
        data = await plain(moving)
        moving.send("STOR file")
        assert await codes(moving, 1) == [150]
        idle = [await _logged_in(server.server_port) for _ in range(2)]
        reader, writer = await _from(server.server_port, "127.0.0.2")
        other = RawClient(reader, writer)
        assert (await other.reply()).code == 220
        assert (await idle[0].reply()).code == 421
        await data.finish(b"abc")
        assert await codes(moving, 1) == [226]
        for client in (moving, *idle, other):
            await client.close()
