"""MPRT and MPSV, and what no parser of an address may do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError, NetworkProtocolError, PeerError, XftpError
from xftp.protocol import addresses
from xftp.protocol.addresses import Endpoint

from .address_support import BAD_PORTS, V4, ports

endpoint_lists = st.tuples(st.ip_addresses().map(str), st.lists(ports, min_size=1)).map(
    lambda host_ports: tuple(Endpoint(host_ports[0], port) for port in host_ports[1])
)


def on(host: str, *numbers: int) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(host, number) for number in numbers)


def test_an_endpoint_knows_its_family() -> None:
    assert Endpoint("::1", 1).is_ipv6
    assert not Endpoint("127.0.0.1", 1).is_ipv6


# -- MPRT and MPSV ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("IP4|TCP|132.235.34.34|2345,6789,1212", on(V4, 2345, 6789, 1212)),  # Allman B.2.2
        ("ip4|tcp|132.235.34.34|2345", on(V4, 2345)),
        ("IP4|TCP|132.235.34.34|21,21,21", on(V4, 21, 21, 21)),
        ("IP4|TCP|132.235.34.34|1,65535", on(V4, 1, 65535)),
        ("IP6|TCP|::1|5,6", on("::1", 5, 6)),
        ("IP6|TCP|2001:DB8:0:0::1|5", on("2001:db8::1", 5)),
    ],
)
def test_mprt_is_read(argument: str, expected: tuple[Endpoint, ...]) -> None:
    assert addresses.parse_mprt(argument) == expected


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "|||",
        "|TCP|1.2.3.4|5",
        "IP4||1.2.3.4|5",
        "IP 4|TCP|1.2.3.4|5",
        "IP4|TCP|1.2.3.4",
        "IP4|TCP|1.2.3.4|5|",
        "|IP4|TCP|1.2.3.4|5|",
        "IP4|TCP|1.2.3.4|5,",
        "IP4|TCP|1.2.3.4|,5",
        "IP4|TCP|1.2.3.4|5,,6",
        "IP4|TCP|1.2.3.4|5,65536",
        "IP4|TCP|1.2.3|5",
        "IP4|TCP|1.2.3.256|5",
        "IP4|TCP|\u0661.2.3.4|5",
        "IP4|TCP| 1.2.3.4|5",
        "IP4|TCP|1.2.3.4\n|5",
        "IP4|TCP||5",
        "IP4|TCP|localhost|5",
        "IP4|TCP|::1|5",
        "IP6|TCP|1.2.3.4|5",
        "IP6|TCP|fe80::1%eth0|5",
        "IP6|TCP|[::1]|5",
    ],
)
def test_a_malformed_mprt_is_an_argument_error(argument: str) -> None:
    with pytest.raises(ArgumentError):
        addresses.parse_mprt(argument)


@pytest.mark.parametrize(
    "argument",
    [
        "IPX|TCP|1.2.3.4|5",
        "IP5|TCP|1.2.3.4|5",
        "1|TCP|1.2.3.4|5",
        "IP4|UDP|1.2.3.4|5",
        "IP4|SCTP|1.2.3.4|5",
        "DECNET|NSP|node 7|object",
    ],
)
def test_another_protocol_in_mprt_is_named_as_such(argument: str) -> None:
    with pytest.raises(NetworkProtocolError, match=r"use [(]"):
        addresses.parse_mprt(argument)


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        (on(V4, 2345, 6789, 1212), "IP4|TCP|132.235.34.34|2345,6789,1212"),  # Allman B.2.2
        (on("::1", 5), "IP6|TCP|::1|5"),
        (on("fe80::1%eth0", 5, 5), "IP6|TCP|fe80::1|5,5"),
    ],
)
def test_mprt_is_written(endpoints: tuple[Endpoint, ...], expected: str) -> None:
    assert addresses.format_mprt(endpoints) == expected


@pytest.mark.parametrize(
    "endpoints",
    [
        (),
        on(V4, 0),
        on(V4, 65536),
        on(V4, 5, -1),
        on("localhost", 5),
        on("1.2.3.4|5", 5),
        on("", 5),
        on(V4, 5) + on("1.2.3.4", 5),
        on(V4, 5) + on("::1", 5),
    ],
)
def test_what_mprt_cannot_carry_is_not_written(endpoints: tuple[Endpoint, ...]) -> None:
    with pytest.raises(ArgumentError):
        addresses.format_mprt(endpoints)


@pytest.mark.parametrize(
    "text",
    [
        "(IP4|TCP|132.235.34.34|3434,7865,9934) Entering passive mode.",  # Allman B.2.3
        "Entering multiple passive mode (IP4|TCP|132.235.34.34|3434,7865,9934)",
        "Well (yes), (IP4|TCP|132.235.34.34|3434,7865,9934)(!)",
        "((IP4|TCP|132.235.34.34|3434,7865,9934))",
        "Several lines\n(ip4|tcp|132.235.34.34|3434,7865,9934)\nof words",
    ],
)
def test_the_reply_to_mpsv_is_read(text: str) -> None:
    assert addresses.parse_mpsv_reply(text) == on(V4, 3434, 7865, 9934)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Entering passive mode.",
        "()",
        "IP4|TCP|132.235.34.34|3434",
        "(IP4|TCP|132.235.34.34|3434",
        "IP4|TCP|132.235.34.34|3434)",
        "(IP4|TCP|132.235.34.34|3434,0)",
        "(IP4|TCP|132.235.34.34|3434|)",
        "(IP4|UDP|132.235.34.34|3434)",
        "(IPX|TCP|132.235.34.34|3434)",
        "(|||6446|)",
        "(" * 20000,
        "(|" * 20000,
    ],
)
def test_a_malformed_reply_to_mpsv_is_the_fault_of_the_peer(text: str) -> None:
    with pytest.raises(PeerError):
        addresses.parse_mpsv_reply(text)


def test_the_reply_to_mpsv_is_written() -> None:
    assert (
        addresses.format_mpsv_reply(on(V4, 3434, 7865, 9934))
        == "(IP4|TCP|132.235.34.34|3434,7865,9934) Entering passive mode."  # Allman B.2.3
    )


@pytest.mark.parametrize("port", BAD_PORTS)
def test_a_bad_port_is_refused_among_good_ones(port: str) -> None:
    for ports_text in (port, f"{port},7", f"7,{port}", f"7,{port},8"):
        with pytest.raises(ArgumentError):
            addresses.parse_mprt(f"IP4|TCP|1.2.3.4|{ports_text}")
        with pytest.raises(PeerError):
            addresses.parse_mpsv_reply(f"(IP4|TCP|1.2.3.4|{ports_text})")


# -- properties -------------------------------------------------------------------------------


@given(endpoint_lists)
def test_what_mprt_and_mpsv_write_is_read_back(listed: tuple[Endpoint, ...]) -> None:
    assert addresses.parse_mprt(addresses.format_mprt(listed)) == listed
    assert addresses.parse_mpsv_reply(addresses.format_mpsv_reply(listed)) == listed


wild = st.one_of(
    st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.text(alphabet="()|,.:%0123456789IPTC\u0665 \n"),
    st.builds("IP{}|TCP|{}|{}".format, st.sampled_from("46"), st.text(), st.text()),
    st.builds("|{}|{}|{}|".format, st.sampled_from("12"), st.text(), st.text()),
)


@pytest.mark.parametrize(
    ("parse", "allowed"),
    [
        (addresses.parse_mprt, (ArgumentError, NetworkProtocolError)),
        (addresses.parse_eprt, (ArgumentError, NetworkProtocolError)),
        (addresses.parse_epsv_argument, (ArgumentError, NetworkProtocolError)),
        (addresses.parse_port, (ArgumentError,)),
        (addresses.parse_mpsv_reply, (PeerError,)),
        (addresses.parse_epsv_reply, (PeerError,)),
        (addresses.parse_pasv_reply, (PeerError,)),
    ],
)
@given(text=wild)
def test_nothing_but_our_own_errors_comes_out(
    parse: Callable[[str], object], allowed: tuple[type[XftpError], ...], text: str
) -> None:
    try:
        parse(text)
    except XftpError as error:
        assert type(error) in allowed
