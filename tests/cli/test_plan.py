"""`xftp plan`: the figures it prints, the values it refuses, the command it proposes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Client
from tuning import PROFILES, format_size, plan
from tuning.planning import DEFAULT_MAX_CONNECTIONS, DEFAULT_SIZE_BYTES
from xftp.cli.client import xftp_command
from xftp.cli.local_commands import plan_command
from xftp.cli.plan import Request, advice_lines, advise

GEO = ("--rate", "50mbit", "--rtt", "600ms")
OPTIONS = frozenset({"--rate", "--profile"})


def run(*arguments: str, command: click.Command = xftp_command) -> tuple[int, str]:
    done = CliRunner().invoke(command, arguments)
    return done.exit_code, done.output


def planned(*arguments: str) -> dict[str, Any]:
    status, said = run("plan", *arguments, "--json")
    assert status == 0, said
    values: dict[str, Any] = json.loads(said)
    return values


def ceilings(value: str | None) -> Callable[[str], str | None]:
    return {"net.core.rmem_max": value, "net.core.wmem_max": "16777216"}.get


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rate", "fast", "--rtt", "1s"], "'fast' is not a rate"),
        (["--rate", "0", "--rtt", "1s"], "zero"),
        (["--rate", "-5mbit", "--rtt", "1s"], "negative"),
        (["--rate", "", "--rtt", "1s"], "'' is not a rate"),
        (["--rate", "50", "--rtt", "1s"], "was 50M meant?"),
        (["--rate", "50mbit"], "needs --rtt"),
        (["--rtt", "600ms"], "needs --rate"),
        ([], "needs --rate"),
        (["--rate", "50mbit", "--rtt", "600"], "600ms or 600s"),
        (["--rate", "50mbit", "--rtt", "0s"], "not between"),
        (["--rate", "50mbit", "--rtt", "-1s"], "negative"),
        ([*GEO, "--loss", "2"], "more than half"),
        ([*GEO, "--loss", "-1"], "negative"),
        ([*GEO, "--loss", "much"], "is not a loss"),
        ([*GEO, "--size", "0"], "less than one byte"),
        ([*GEO, "--size", "big"], "is not a size"),
        ([*GEO, "--max-connections", "0"], "whole number from 1 upward"),
        ([*GEO, "--max-connections", "65"], "from 1 to 64"),
        (["--profile", "moon"], "choose from t1-geo"),
        (["--profile", "auto"], "a plan needs --rate and --rtt"),
        ([*GEO, "URL"], "unexpected extra argument"),
    ],
)
def test_bad_values_are_usage_errors(arguments: list[str], sentence: str) -> None:
    status, said = run("plan", *arguments)
    assert status == 2
    assert sentence in said


def test_the_json_is_the_plan_of_the_package() -> None:
    values = planned(*GEO, "--size", "50MB", "--max-connections", "4")
    expected = plan(50e6, 0.6, size_bytes=50_000_000, max_connections=4).as_json()
    assert {name: values[name] for name in expected} == json.loads(json.dumps(expected))
    assert set(values) - set(expected) == {
        "profile",
        "direction",
        "with_n_rented",
        "ceilings",
        "fitting_connections",
        "next",
    }
    assert {name: type(value) for name, value in values["ceilings"][0].items()} == {
        "name": str,
        "needed": int,
        "here": int,
        "command": type(values["ceilings"][0]["command"]),
    }


def test_the_defaults_are_those_that_the_help_names() -> None:
    values = planned(*GEO)
    assert values["size_bytes"] == DEFAULT_SIZE_BYTES
    words = " ".join(run("plan", "--help")[1].split())
    assert f"[default: {format_size(DEFAULT_SIZE_BYTES).replace(' ', '')}]" in words
    assert f"[default: {DEFAULT_MAX_CONNECTIONS}]" in words
    assert ", ".join(PROFILES) in words


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_gives_the_rate_of_downloads_and_the_rtt(name: str) -> None:
    values = planned("--profile", name)
    assert values["link"]["rate_bps"] == PROFILES[name].down_bps
    assert values["link"]["rtt_s"] == PROFILES[name].rtt_s
    assert (values["profile"], values["direction"]) == (name, "download")
    assert "downloads" in run("plan", "--profile", name)[1]


def test_options_go_before_the_profile() -> None:
    values = planned("--profile", "hts-geo", "--rate", "5mbit")
    assert values["link"]["rate_bps"] == 5e6
    assert values["link"]["rtt_s"] == 0.6
    assert "--rate 5Mbit/s" in values["next"]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--profile", "hts-geo"], "xftp get -n 2 --profile hts-geo URL"),
        (["--profile", "hts-geo", "--rtt", "1s"], "xftp get -n 3 --rate 50Mbit/s URL"),
        (["--rate", "1.536mbit", "--rtt", "560ms"], "xftp get -n 1 --rate 1.536Mbit/s URL"),
        (["--rate", "6.25MB/s", "--rtt", "600ms"], "xftp get -n 2 --rate 50Mbit/s URL"),
    ],
)
def test_the_next_command_is_one_that_get_takes(arguments: list[str], command: str) -> None:
    assert planned(*arguments)["next"] == command
    name, *words = command.replace("URL", "ftp://192.0.2.1/").split()
    assert name == "xftp"
    status, said = run(*words)
    assert (status, "is a directory" in said) == (2, True)  # only the URL is refused
    assert run("plan", *arguments)[1].endswith(f"Next: {command}\n")


def test_no_next_command_where_the_client_has_no_options_for_it() -> None:
    assert advise(Request(rate_bps=50e6, rtt_s=0.6), frozenset()).next_command is None
    status, said = run(*GEO, command=plan_command)
    assert (status, "Next:" in said) == (0, False)


@pytest.mark.parametrize(
    ("here", "command"),
    [
        ("7500000", None),
        ("16777216", None),
        ("212992", "sysctl -w net.core.rmem_max=7500000"),
        (None, "sysctl -w net.core.rmem_max=7500000"),
    ],
)
def test_the_command_that_raises_a_ceiling(here: str | None, command: str | None) -> None:
    advice = advise(Request(rate_bps=50e6, rtt_s=0.6), OPTIONS, ceilings(here))
    receive, send = advice.ceilings
    assert (receive.name, receive.needed, receive.command) == (
        "net.core.rmem_max",
        7_500_000,
        command,
    )
    assert send.command is None
    said = "\n".join(advice_lines(advice))
    assert ("as root:" in said) == (command is not None)
    assert command is None or command in said
    assert ("unknown here" in said) == (here is None)


def test_loss_shows_what_an_algorithm_for_rented_links_would_do() -> None:
    values = planned(*GEO, "--loss", "0.1%")
    assert values["connections"] == 8
    limit, rented = values["at_limit"]["total_s"], values["with_n_rented"]["total_s"]
    assert limit <= rented < values["with_n"]["total_s"] < values["untuned"]["total_s"]
    said = run("plan", *GEO, "--loss", "0.1%")[1]
    assert "8, the most allowed; this loss would occupy 20" in said
    assert "8 connections, tuned, xftp_rented" in said
    assert planned(*GEO)["with_n_rented"] is None


def test_more_connections_than_servers_allow() -> None:
    arguments = (*GEO, "--loss", "1%", "--max-connections", "64")
    assert "servers usually allow 8" in run("plan", *arguments)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        GEO,
        ("--profile", "lan"),
        ("--profile", "t1-geo", "--loss", "10%", "--size", "1TB"),
        ("--rate", "10Tbit", "--rtt", "3600s", "--size", "1TB"),
        ("--rate", "10Gbit", "--rtt", "10s", "--loss", "1%", "--max-connections", "64"),
        ("--rate", "1kbit", "--rtt", "1us", "--size", "1"),
    ],
)
def test_a_pipe_gets_80_columns_and_no_colours(xftp: Client, arguments: tuple[str, ...]) -> None:
    said = xftp("plan", *arguments).stdout.decode()
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) <= 80
    for word in ("connections", "buffers", "initial window", "unsent limit", "pacing"):
        assert f"  {word}  " in said
    assert "1 connection as Linux does it" in said
    assert "the link full from the first byte" in said


def test_nothing_but_the_sentence_for_bad_values_of_a_process(xftp: Client) -> None:
    done = xftp("plan", "--rate", "fast", "--rtt", "1s", expect=2)
    assert done.stdout == b""
    said = done.stderr.decode().splitlines()
    assert said[0].startswith("xftp: ")
    assert said[1] == "Try 'xftp plan --help'."
