"""The commands of the server, one module for each kind; `TABLE` holds them all."""

from xftp.server.registry import Row

from . import (
    access,
    channels,
    files,
    hashes,
    information,
    listings,
    parameters,
    parts,
    security,
    series,
    transfers,
)

TABLE: dict[str, Row] = {
    row.verb: row
    for module in (
        access,
        security,
        parameters,
        channels,
        transfers,
        parts,
        series,
        files,
        hashes,
        listings,
        information,
    )
    for row in module.ROWS
}
