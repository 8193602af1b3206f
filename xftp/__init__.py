"""XFTP: FTP that moves one file over several data connections (Allman 1997, appendix B).

    async with xftp.connect("ftp://host/", connections=8) as session:
        await session.get("file")

Names are imported when they are first used, so that `import xftp.protocol` needs nothing but the
standard library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from xftp.client.existing import ExistsError
    from xftp.client.options import Options
    from xftp.client.progress import Progress
    from xftp.client.session import Session, connect, open_session
    from xftp.client.tls import TlsError, TlsOptions
    from xftp.client.url import FtpUrl, parse_url
    from xftp.errors import XftpError
    from xftp.protocol.listings import Entry
    from xftp.transport.report import TransferReport

__all__ = [
    "Entry",
    "ExistsError",
    "FtpUrl",
    "Options",
    "Progress",
    "Session",
    "TlsError",
    "TlsOptions",
    "TransferReport",
    "XftpError",
    "__version__",
    "connect",
    "open_session",
    "parse_url",
]

_HOMES = {
    "Entry": "xftp.protocol.listings",
    "ExistsError": "xftp.client.existing",
    "FtpUrl": "xftp.client.url",
    "Options": "xftp.client.options",
    "Progress": "xftp.client.progress",
    "Session": "xftp.client.session",
    "TlsError": "xftp.client.tls",
    "TlsOptions": "xftp.client.tls",
    "TransferReport": "xftp.transport.report",
    "XftpError": "xftp.errors",
    "connect": "xftp.client.session",
    "open_session": "xftp.client.session",
    "parse_url": "xftp.client.url",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
