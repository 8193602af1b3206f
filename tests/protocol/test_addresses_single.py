"""EPRT, EPSV, PORT and PASV: the addresses of one data connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import ArgumentError, NetworkProtocolError, PeerError, XftpError
from xftp.protocol import addresses
from xftp.protocol.addresses import Endpoint

from .address_support import BAD_PORTS, V4, ports

ipv4_endpoints = st.builds(Endpoint, st.ip_addresses(v=4).map(str), ports)
endpoints = st.builds(Endpoint, st.ip_addresses().map(str), ports)


# -- EPRT and EPSV ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("|1|132.235.1.2|6275|", Endpoint("132.235.1.2", 6275)),  # RFC 2428 section 2
        ("|2|1080::8:800:200C:417A|5282|", Endpoint("1080::8:800:200c:417a", 5282)),
        ("!1!1.2.3.4!5!", Endpoint("1.2.3.4", 5)),
        ("~2~::1~65535~", Endpoint("::1", 65535)),
        ("x1x1.2.3.4x5x", Endpoint("1.2.3.4", 5)),
    ],
)
def test_eprt_is_read(argument: str, expected: Endpoint) -> None:
    assert addresses.parse_eprt(argument) == expected


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "|",
        "|1|1.2.3.4|5",
        "|1|1.2.3.4|5|6|",
        "|1|1.2.3.4|5|x",
        "1|1.2.3.4|5|",
        " 1 1.2.3.4 5 ",
        "\x7f1\x7f1.2.3.4\x7f5\x7f",
        "é1é1.2.3.4é5é",
        "||1.2.3.4|5|",
        "|+1|1.2.3.4|5|",
        "|\u0661|1.2.3.4|5|",
        "|IP4|1.2.3.4|5|",
        "|1|::1|5|",
        "|2|1.2.3.4|5|",
        "|2|fe80::1%1|5|",
        ".1.1.2.3.4.5.",
        ":2:::1:5:",
    ],
)
def test_a_malformed_eprt_is_an_argument_error(argument: str) -> None:
    with pytest.raises(ArgumentError):
        addresses.parse_eprt(argument)


@pytest.mark.parametrize("family", ["0", "3", "16", "65536", "9" * 5000])
def test_another_family_in_eprt_is_named_as_such(family: str) -> None:
    with pytest.raises(NetworkProtocolError, match=r"use [(]1,2[)]"):
        addresses.parse_eprt(f"|{family}|1.2.3.4|5|")


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (Endpoint("132.235.1.2", 6275), "|1|132.235.1.2|6275|"),
        (Endpoint("::1", 5282), "|2|::1|5282|"),
        (Endpoint("fe80::1%eth0", 5282), "|2|fe80::1|5282|"),
    ],
)
def test_eprt_is_written(endpoint: Endpoint, expected: str) -> None:
    assert addresses.format_eprt(endpoint) == expected


@pytest.mark.parametrize(
    ("argument", "expected"),
    [("", "any"), ("1", "ipv4"), ("2", "ipv6"), ("ALL", "all"), ("all", "all"), ("aLl", "all")],
)
def test_the_argument_of_epsv_is_read(argument: str, expected: str) -> None:
    assert addresses.parse_epsv_argument(argument) == expected


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("0", NetworkProtocolError),
        ("3", NetworkProtocolError),
        ("9" * 5000, NetworkProtocolError),
        ("-1", ArgumentError),
        ("+1", ArgumentError),
        (" 1", ArgumentError),
        ("1 ", ArgumentError),
        ("\u0661", ArgumentError),
        ("NONE", ArgumentError),
    ],
)
def test_another_argument_of_epsv_is_refused(argument: str, error: type[XftpError]) -> None:
    with pytest.raises(error):
        addresses.parse_epsv_argument(argument)


@pytest.mark.parametrize(
    "text",
    [
        "Entering Extended Passive Mode (|||6446|)",  # RFC 2428 section 3
        "Entering Extended Passive Mode (|||6446|).",
        "(!!!6446!)",
        "ok (really) (|||6446|)",
    ],
)
def test_the_reply_to_epsv_is_read(text: str) -> None:
    assert addresses.parse_epsv_reply(text) == 6446


@pytest.mark.parametrize(
    "text",
    [
        "|||6446|",
        "(||6446|)",
        "(|||6446)",
        "(|!|6446|)",
        "",
        "(   6446 )",
    ],
)
def test_a_malformed_reply_to_epsv_is_the_fault_of_the_peer(text: str) -> None:
    with pytest.raises(PeerError):
        addresses.parse_epsv_reply(text)


@pytest.mark.parametrize("port", BAD_PORTS)
def test_a_bad_port_is_refused(port: str) -> None:
    with pytest.raises(ArgumentError):
        addresses.parse_eprt(f"|1|1.2.3.4|{port}|")
    with pytest.raises(PeerError):
        addresses.parse_epsv_reply(f"(|||{port}|)")


# -- PORT and PASV ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("127,0,0,1,4,5", Endpoint("127.0.0.1", 1029)),
        ("255,255,255,255,255,255", Endpoint("255.255.255.255", 65535)),
        ("010,000,000,001,000,001", Endpoint("10.0.0.1", 1)),
    ],
)
def test_port_is_read(argument: str, expected: Endpoint) -> None:
    assert addresses.parse_port(argument) == expected


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "127,0,0,1,4",
        "127,0,0,1,4,5,6",
        "127,0,0,1,4,",
        "127,0,0,256,4,5",
        "127,0,0,1,256,5",
        "127,0,0,1,0,0",
        "127,0,0,1,4,+5",
        "127,0,0,1,4,\u0665",
        "127,0,0,1, 4,5",
        "127,0,0,1,4,5\n",
        "127,0,0,1,4,0005",
        "127.0.0.1,4,5",
    ],
)
def test_a_malformed_port_is_an_argument_error(argument: str) -> None:
    with pytest.raises(ArgumentError):
        addresses.parse_port(argument)


@pytest.mark.parametrize(
    "text",
    [
        "=127,0,0,1,4,5",
        "Entering Passive Mode (127,0,0,1,4,5).",
        "Entering Passive Mode. 127,0,0,1,4,5",
        "Entering Passive Mode 127,0,0,1,4,5, go ahead",
        "Passive mode 2 [127,0,0,1,4,5]",
    ],
)
def test_the_reply_to_pasv_is_read(text: str) -> None:
    assert addresses.parse_pasv_reply(text) == Endpoint("127.0.0.1", 1029)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Entering Passive Mode",
        "(127,0,0,1,4)",
        "(127,0,0,1,4,5,6)",
        "(1127,0,0,1,4,5)",
        "(127,0,0,1,4,5555)",
        "(127,0,0,256,4,5)",
        "(127,0,0,1,0,0)",
        "(127,0,0,1,4,\u0665)",
    ],
)
def test_a_malformed_reply_to_pasv_is_the_fault_of_the_peer(text: str) -> None:
    with pytest.raises(PeerError):
        addresses.parse_pasv_reply(text)


def test_the_reply_to_pasv_is_written() -> None:
    written = addresses.format_pasv_reply(Endpoint("127.0.0.1", 1029))
    assert written == "Entering Passive Mode (127,0,0,1,4,5)."


def test_port_cannot_carry_ipv6() -> None:
    with pytest.raises(NetworkProtocolError):
        addresses.format_port(Endpoint("::1", 5))


@pytest.mark.parametrize("port", [0, 65536, -1])
def test_no_form_is_written_with_a_port_out_of_range(port: int) -> None:
    with pytest.raises(ArgumentError):
        addresses.format_port(Endpoint(V4, port))
    with pytest.raises(ArgumentError):
        addresses.format_eprt(Endpoint(V4, port))
    with pytest.raises(ArgumentError):
        addresses.format_epsv_reply(port)


# -- properties -------------------------------------------------------------------------------


@given(endpoints)
def test_what_eprt_and_epsv_write_is_read_back(endpoint: Endpoint) -> None:
    assert addresses.parse_eprt(addresses.format_eprt(endpoint)) == endpoint
    written = addresses.format_epsv_reply(endpoint.port)
    assert addresses.parse_epsv_reply(written) == endpoint.port


@given(ipv4_endpoints)
def test_what_port_and_pasv_write_is_read_back(endpoint: Endpoint) -> None:
    assert addresses.parse_port(addresses.format_port(endpoint)) == endpoint
    assert addresses.parse_pasv_reply(addresses.format_pasv_reply(endpoint)) == endpoint
