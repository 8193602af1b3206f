"""Arguments and replies: addresses, options, series, hashes, reports, listings.

Each reader raises the errors that it declares and no other; what it takes can be written, and is
read as the same.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math

from tests.fuzz.pieces import as_lines, as_text
from xftp.client.listing import parse_list, parse_mlst
from xftp.errors import ArgumentError, FileNameError, NetworkProtocolError, PeerError
from xftp.protocol import addresses, hashes, listings, options, reports, series
from xftp.protocol.addresses import Endpoint
from xftp.protocol.replies import Reply

_MOST_CONNECTIONS = 10**9


def multiple_addresses(data: bytes) -> None:
    """MPRT and the reply to MPSV."""
    text = as_text(data)
    with contextlib.suppress(ArgumentError, NetworkProtocolError):
        found = addresses.parse_mprt(text)
        assert 1 <= len(found) <= len(text)
        _check_endpoints(*found)
        assert addresses.parse_mprt(addresses.format_mprt(found)) == found
        assert addresses.parse_mpsv_reply(addresses.format_mpsv_reply(found)) == found
    with contextlib.suppress(PeerError):
        _check_endpoints(*addresses.parse_mpsv_reply(text))


def single_addresses(data: bytes) -> None:
    """EPRT, EPSV, PORT, and the replies to EPSV and PASV."""
    text = as_text(data)
    with contextlib.suppress(ArgumentError, NetworkProtocolError):
        found = addresses.parse_eprt(text)
        _check_endpoints(found)
        assert addresses.parse_eprt(addresses.format_eprt(found)) == found
    with contextlib.suppress(ArgumentError, NetworkProtocolError):
        assert addresses.parse_epsv_argument(text) in ("any", "ipv4", "ipv6", "all")
    with contextlib.suppress(ArgumentError):
        found = addresses.parse_port(text)
        _check_endpoints(found)
        assert addresses.parse_port(addresses.format_port(found)) == found
    with contextlib.suppress(PeerError):
        port = addresses.parse_epsv_reply(text)
        assert addresses.parse_epsv_reply(addresses.format_epsv_reply(port)) == port
    with contextlib.suppress(PeerError):
        found = addresses.parse_pasv_reply(text)
        _check_endpoints(found)
        assert addresses.parse_pasv_reply(addresses.format_pasv_reply(found)) == found


def _check_endpoints(*endpoints: Endpoint) -> None:
    for endpoint in endpoints:
        assert 1 <= endpoint.port <= addresses.MAX_PORT
        assert (
            str(ipaddress.ip_address(endpoint.host)) == endpoint.host and "%" not in endpoint.host
        )


def mult_options(data: bytes) -> None:
    """OPTS, OPTS MULT, FEAT, and the reply to MULT."""
    text = as_text(data)
    with contextlib.suppress(ArgumentError):
        feature, _ = options.parse_opts(text)
        assert feature == feature.upper() and " " not in feature
    with contextlib.suppress(ArgumentError):
        found, unknown = options.parse_mult_options(text)
        assert options.parse_mult_options(options.format_mult_options(found)) == (found, ())
        assert len(unknown) <= len(text)
    limit = options.parse_mult_reply(text)
    assert limit is None or 0 <= limit < _MOST_CONNECTIONS
    for name, parameters in options.parse_feat(as_lines(data)).items():
        assert name and name == name.upper()
        hashes.parse_hash_feature(parameters)


def series_lines(data: bytes) -> None:
    """SERI, the facts in its reply, and the failures in that to MSTR."""
    text = as_text(data)
    with contextlib.suppress(ArgumentError):
        way, file = series.parse_argument(text)
        assert file.path and (way == "RETR" or file.size is not None)
        _check_series_file(way, file)
    with contextlib.suppress(ArgumentError):
        _check_series_file("RETR", series.parse_facts(text, "path"))
    count = len(data) % 64
    with contextlib.suppress(PeerError):
        failures = series.parse_failures(as_lines(data), count)
        assert all(0 <= index < count for index in failures)
        assert all(400 <= code <= 599 for code, _ in failures.values())


def _check_series_file(way: series.Way, file: series.SeriesFile) -> None:
    assert file.size is None or 0 <= file.size < 2**63
    if file.modified is not None:
        assert math.isfinite(file.modified)
        file = series.SeriesFile(
            file.path, file.size, math.floor(file.modified), file.algorithm, file.digest
        )
    assert series.parse_argument(series.format_argument(way, file)) == (way, file)


def hash_lines(data: bytes) -> None:
    """RANG, HASH, XCRC and the like: arguments and replies."""
    text = as_text(data)
    with contextlib.suppress(ArgumentError):
        wanted = hashes.parse_rang(text)
        assert wanted is None or (wanted.start >= 0 and wanted.size > 0)
        assert hashes.parse_rang(hashes.format_rang(wanted)) == wanted
    with contextlib.suppress(ArgumentError):
        _, start, end = hashes.parse_x_argument(text)
        assert start >= 0 and (end is None or start <= end)
    with contextlib.suppress(PeerError):
        found = hashes.parse_hash_reply(text)
        assert found.first >= 0 and int(found.digest[:64], 16) >= 0
    for algorithm, bits in hashes.DIGEST_BITS.items():
        with contextlib.suppress(PeerError):
            assert len(hashes.parse_x_reply(text, algorithm)) == bits // 4


def report_lines(data: bytes) -> None:
    """The reply to SITE REPORT."""
    with contextlib.suppress(PeerError):
        found = reports.parse_report(as_lines(data))
        assert len(found.connections) <= reports.MAX_CONNECTIONS
        assert reports.parse_report(reports.format_report(found)) == found


def listing_lines(data: bytes) -> None:
    """MLSD, MLST, LIST of Unix and of Windows, and times."""
    lines = as_lines(data)
    for line in lines:
        with contextlib.suppress(PeerError):
            _check_entry(listings.parse_mlsx_line(line))
        with contextlib.suppress(ArgumentError):
            _check_time(listings.parse_time_val(line))
    for entry in parse_list(lines):
        assert entry.name not in (".", "..")
        _check_entry(entry)
    with contextlib.suppress(PeerError):
        entry = parse_mlst(Reply(250, tuple(lines)))
        assert entry is None or entry.name


def _check_entry(entry: listings.Entry) -> None:
    assert entry.name and (entry.size is None or entry.size >= 0)
    if entry.modified is not None:
        _check_time(entry.modified)
    with contextlib.suppress(ArgumentError, FileNameError):  # a fact that only others send
        line = listings.format_mlsx_line(entry.facts, entry.name)
        again = listings.parse_mlsx_line(line)
        assert (again.name, again.facts) == (entry.name, entry.facts)


def _check_time(unix_time: float) -> None:
    assert math.isfinite(unix_time)
    assert listings.parse_time_val(listings.format_time_val(unix_time)) == math.floor(unix_time)
