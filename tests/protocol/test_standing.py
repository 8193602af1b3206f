"""What is said of the standing port: in greeting, FEAT, MPSV and on the connections."""

from __future__ import annotations

import pytest

from xftp.errors import ArgumentError
from xftp.protocol import standing

TOKEN = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"


def test_tokens_differ_and_can_be_read() -> None:
    tokens = {standing.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {standing.parse_token(token) for token in tokens} == tokens


@pytest.mark.parametrize("text", ["", "4", TOKEN[1:], TOKEN + "0", TOKEN.upper(), "g" + TOKEN[1:]])
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(ArgumentError):
        standing.parse_token(text)


def test_a_connection_begins_with_its_token() -> None:
    call = standing.format_call(TOKEN)
    assert call == b"XFTP 0f1e2d3c4b5a69788796a5b4c3d2e1f0\r\n"
    assert len(call) == standing.CALL_BYTES
    assert standing.parse_call(call) == TOKEN


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:2120\r\n",
        b"XFTP 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n\n",
        b"XFTP 0F1E2D3C4B5A69788796A5B4C3D2E1F0\r\n",
        b"XFTP 0f1e2d3c4b5a69788796a5b4c3d2e1f0\r\n\0\0\0\0",
    ],
)
def test_what_is_no_call(data: bytes) -> None:
    assert standing.parse_call(data) is None


def test_a_greeting_tells_the_port() -> None:
    greeting = standing.format_greeting("XFTP server ready.", 2120)
    assert greeting == "XFTP server ready. Data port 2120."
    assert standing.port_of_greeting(greeting) == 2120
    assert standing.format_greeting("XFTP server ready.", None) == "XFTP server ready."


@pytest.mark.parametrize(
    "greeting",
    [
        "",
        "XFTP server ready.",
        "XFTP Data port .",
        "XFTP Data port 0.",
        "XFTP Data port 65536.",
        "XFTP Data port 123456.",
        "XFTP Data port 2120. Welcome.",
    ],
)
def test_greetings_without_a_port(greeting: str) -> None:
    assert standing.port_of_greeting(greeting) is None


def test_feat_tells_the_port() -> None:
    name, _, parameters = standing.format_feature(2120).partition(" ")
    assert (name, parameters) == ("MPSV", "Port=2120;")
    assert standing.port_of_feature(parameters) == 2120
    assert standing.port_of_feature("Colour=red;Port=65535;") == 65535


@pytest.mark.parametrize("parameters", ["", "Port;", "Port=0;", "Port=70000;", "Report=21;"])
def test_features_without_a_port(parameters: str) -> None:
    assert standing.port_of_feature(parameters) is None
