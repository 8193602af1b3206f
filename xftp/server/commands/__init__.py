"""The commands of the server, one module for each kind; `TABLE` holds them all."""

from xftp.server.registry import Row

from . import access, channels, files, information, listings, parameters, transfers

TABLE: dict[str, Row] = {
    row.verb: row
    for module in (access, parameters, channels, transfers, files, listings, information)
    for row in module.ROWS
}
