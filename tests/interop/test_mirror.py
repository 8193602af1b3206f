"""`xftp mirror` with servers of others, which know neither MULT nor, some of them, MLSD."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .programs import XFTP, Site
from .test_servers import OVER_IPV4, on

pytestmark = pytest.mark.interop

WHEN = 1_500_000_000
FILES = {
    "one": b"1",
    "empty": b"",
    "two words": b"2",
    "d/e/deep": b"deep" * 10_000,
    "d/ä": b"UTF-8",
    **{f"many/{number}": b"%d" % number for number in range(8)},
}


def fill(root: Path) -> None:
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WHEN, WHEN))


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def mirror(site: Site, *arguments: str) -> dict[str, int]:
    """Run it; give the numbers of its summary."""
    done = site.run(*XFTP, "mirror", "--json", *arguments)
    summary: dict[str, int] = json.loads(done.output.splitlines()[-1])["summary"]
    assert summary["failed"] == 0
    return summary


@on(OVER_IPV4)
def test_down(foreign_site: Site) -> None:
    fill(foreign_site.there / "source")
    url = f"{foreign_site.url}/source"

    assert mirror(foreign_site, url, "copy")["moved"] == len(FILES)
    assert files(foreign_site.here / "copy") == FILES

    assert mirror(foreign_site, url, "copy")["moved"] == 0
    (foreign_site.here / "copy" / "d" / "more").touch()
    again = mirror(foreign_site, "--delete", url, "copy")
    assert (again["moved"], again["removed"]) == (0, 1)


@on(OVER_IPV4)
def test_up(foreign_site: Site) -> None:
    fill(foreign_site.here / "source")
    url = f"{foreign_site.url}/copy"

    assert mirror(foreign_site, "source", url)["moved"] == len(FILES)
    assert files(foreign_site.there / "copy") == FILES

    assert mirror(foreign_site, "source", url)["moved"] == 0
    (foreign_site.here / "source" / "d" / "ä").unlink()
    (foreign_site.here / "source" / "one").write_bytes(b"another")
    again = mirror(foreign_site, "--delete", "source", url)
    assert (again["moved"], again["removed"]) == (1, 1)
    assert files(foreign_site.there / "copy") == files(foreign_site.here / "source")


@on(OVER_IPV4)
def test_a_source_that_is_missing_deletes_nothing(foreign_site: Site) -> None:
    """LIST of some servers does not tell a directory that is missing from an empty one."""
    fill(foreign_site.here / "mine")

    ended = foreign_site.run(
        *XFTP, "mirror", "--delete", f"{foreign_site.url}/none", "mine", check=False
    )

    assert ended.code == 1
    assert files(foreign_site.here / "mine") == FILES
