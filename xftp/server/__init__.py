"""The FTP server: sessions, commands, accounts, and the files they may reach."""

from .server import Server
from .settings import Account, Settings

__all__ = ["Account", "Server", "Settings"]
