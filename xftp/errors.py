"""One tree of errors: every leaf knows its FTP reply code and the exit status of `xftp`.

Reply codes are those of RFC 959 section 4.2, with 522 from RFC 2428, those of TLS from RFC 2228 and
RFC 4217, and 554 from RFC 1123 section 4.1.3.4 (restart) in its usual reading. Exit statuses:
1 transfer failed, 2 usage, 3 could not connect or log in, 4 a file problem on this side.
"""

from __future__ import annotations

import errno
import os
from typing import ClassVar


class XftpError(Exception):
    """The base of every error this package raises on purpose.

    The message is one sentence for a person, without a final full stop.
    """

    reply_code: ClassVar[int] = 451
    """The FTP reply that a server gives to its peer."""

    exit_code: ClassVar[int] = 1
    """The exit status of a command that ends with this error."""


# -- what was asked is wrong ------------------------------------------------------------------


class ArgumentError(XftpError):
    """An argument does not follow its grammar."""

    reply_code = 501
    exit_code = 2


class CommandError(XftpError):
    """A command is not understood, or takes no argument and got one."""

    reply_code = 500


class SequenceError(XftpError):
    """A command needs another one before it."""

    reply_code = 503


class ParameterError(XftpError):
    """A parameter is well formed, but this side does not implement it."""

    reply_code = 504


class NetworkProtocolError(XftpError):
    """The network protocol of an address is not one that can be used here (RFC 2428 section 2)."""

    reply_code = 522


class PolicyError(XftpError):
    """The operator does not want that (RFC 2228 section 5)."""

    reply_code = 534


class ProtectionError(XftpError):
    """A level of protection that the mechanism does not have (RFC 2228 section 5)."""

    reply_code = 536


class NotLoggedInError(XftpError):
    """The command needs a login."""

    reply_code = 530
    exit_code = 3


# -- the network ------------------------------------------------------------------------------


class ConnectError(XftpError):
    """The control connection could not be made, or was lost."""

    reply_code = 421
    exit_code = 3


class DataConnectionError(XftpError):
    """No data connection could be opened."""

    reply_code = 425


class ClearDataError(DataConnectionError):
    """Data connections have to be protected, and PROT P was not given (RFC 4217 section 10)."""

    reply_code = 521


class DataTlsError(DataConnectionError):
    """TLS was not agreed on for a data connection, or not as it should (RFC 4217 section 10)."""

    reply_code = 522


class TransferAborted(XftpError):
    """The data connections ended before the file was complete, or the peer asked to stop."""

    reply_code = 426


class TuningRefused(XftpError):
    """Sockets could not be set as asked, and the user wants no transfer then."""


class RecordError(XftpError):
    """A record contradicts what is known of the file."""

    reply_code = 451


class VerifyError(XftpError):
    """What arrived is not what was sent, by the hashes of both ends."""


# -- files on this side -----------------------------------------------------------------------


class FileError(XftpError):
    """A file or directory on this side cannot be used as asked."""

    reply_code = 550
    exit_code = 4


class FileBusyError(FileError):
    """Another transfer is writing the same file."""

    reply_code = 450


class LocalFileError(FileError):
    """Reading or writing failed half-way (an I/O error)."""

    reply_code = 451


class NoSpaceError(FileError):
    """The disk or the quota is full."""

    reply_code = 452


class TooLargeError(FileError):
    """The file is larger than the protocol or the file system can hold."""

    reply_code = 552


class StorageError(FileError):
    """The account may not keep so much (RFC 959 section 4.2.2: exceeded storage allocation)."""

    reply_code = 552


class FileNameError(FileError):
    """The name is not allowed."""

    reply_code = 553


class RestartError(FileError):
    """The restart offset lies beyond the end of the file."""

    reply_code = 554


_BY_ERRNO: dict[int, type[FileError]] = {
    errno.ENOSPC: NoSpaceError,
    errno.EDQUOT: NoSpaceError,
    errno.EFBIG: TooLargeError,
    errno.ENAMETOOLONG: FileNameError,
    errno.EILSEQ: FileNameError,
    errno.EINVAL: FileNameError,
    errno.EIO: LocalFileError,
    errno.EAGAIN: FileBusyError,
    errno.ETXTBSY: FileBusyError,
    errno.EBUSY: FileBusyError,
}


def file_error(error: OSError, name: str) -> FileError:
    """Translate an `OSError` of a file operation into the error that is reported.

    name: what the user calls the file; the path that the system saw is not shown.
    """
    kind = _BY_ERRNO.get(error.errno or 0, FileError)
    return kind(f"{name}: {system_reason(error)}")


def system_reason(error: OSError) -> str:
    """Say why in the system's words: libraries add addresses and paths of their own.

    The numbers of getaddrinfo(3) are negative, and mean nothing to strerror(3).
    """
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)


# -- what the other side said -----------------------------------------------------------------


class PeerError(XftpError):
    """The peer broke the protocol: a malformed, endless or unexpected reply."""


class ReplyError(XftpError):
    """The server refused.

    code: its reply code, 400 to 599; text: the reply's text, without the code.
    """

    def __init__(self, code: int, text: str, command: str = "") -> None:
        said = f"the server answered {code} {text}".rstrip()
        super().__init__(f"{command}: {said}" if command else said)
        self.code = code
        self.text = text


class LoginError(ReplyError):
    """The server did not accept the user or the password."""

    exit_code = 3
