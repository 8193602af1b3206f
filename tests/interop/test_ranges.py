"""`xftp get -n N` from servers without MULT: ranges over several sessions."""

from __future__ import annotations

import json

import pytest

from .programs import XFTP, Site
from .test_servers import COMPLETE, on

pytestmark = pytest.mark.interop

SIZE = 5_000_003


@on(COMPLETE)
def test_several_sessions(foreign_site: Site) -> None:
    data = foreign_site.give("a", SIZE)

    ended = foreign_site.run(*XFTP, "get", "-n", "3", "-v", "--json", f"{foreign_site.url}/a")

    assert (foreign_site.here / "a").read_bytes() == data
    report = json.loads(ended.output)
    assert (report["bytes"], len(report["connections"])) == (SIZE, 3)
    assert ended.errors.count("> RETR") == 3
    assert ended.errors.count("> REST") == 2
    assert not list(foreign_site.here.glob("a.xftp*"))


@on(COMPLETE)
def test_without_n_it_is_one(foreign_site: Site) -> None:
    foreign_site.give("a", SIZE)

    ended = foreign_site.run(*XFTP, "get", "-v", f"{foreign_site.url}/a")

    assert ended.errors.count("> RETR") == 1


@on(COMPLETE)
def test_what_was_cut_is_gone_on_with(foreign_site: Site) -> None:
    """What was begun is resumed over one session; the result is the same."""
    data = foreign_site.give("a", SIZE)
    (foreign_site.here / "a.xftp.part").write_bytes(data[:1_000_000])

    foreign_site.run(*XFTP, "get", "--resume", "-n", "3", f"{foreign_site.url}/a")

    assert (foreign_site.here / "a").read_bytes() == data
