"""Errors in words for people: mistakes of users, and obstacles of the system (files, sockets, text not in UTF-8)."""

import errno
import gzip
import socket
from contextlib import ContextDecorator
from types import TracebackType
from typing import Final

_WORDS: Final = {
    errno.ENOENT: "there is no such file or folder",
    errno.EACCES: "this user has no permission for that: change the permissions, or name another place",
    errno.EPERM: "this user has no permission for that: change the permissions, or name another place",
    errno.EISDIR: "it is a folder, but a file is needed: name a file in it",
    errno.ENOTDIR: "a component of this path is a file, not a folder",
    errno.EEXIST: "it already exists: remove it, or name another place",
    errno.ENOTEMPTY: "the folder is not empty: remove what is in it, or name another place",
    errno.ENOSPC: "the disk is full: free some space and try again",
    errno.EDQUOT: "the disk quota is used up: free some space and try again",
    errno.EFBIG: "the file has reached the size limit: raise it (ulimit -f)",
    errno.EROFS: "the file system is read-only: name another place",
    errno.EIO: "the disk reports an error: see the system's log",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.ENAMETOOLONG: "the name is too long: name a shorter one",
    errno.ELOOP: "its symbolic links form a cycle",
    errno.ENOMEM: "there is not enough memory: free some, or use smaller data",
    errno.ENOEXEC: "the system cannot run this file: is it a program?",
    errno.EADDRINUSE: "another program already uses this port: name another one",
    errno.EADDRNOTAVAIL: "this machine does not have that address: name another one",
    errno.ECONNREFUSED: "no server is listening there: is it running, and is the port right?",
    errno.ECONNRESET: "the other side closed the connection",
    errno.EPIPE: "the other side closed the connection",
    errno.ETIMEDOUT: "there was no response in time",
    errno.EHOSTUNREACH: "the host cannot be reached",
    errno.ENETUNREACH: "the network cannot be reached",
}


def obstacle(error: BaseException) -> str:
    """The sentence for a system error, with a remedy; the text of any other error.

    ``obstacle(FileNotFoundError(errno.ENOENT, ...))`` is ``"there is no such file or folder"``.
    """
    match error:
        case UnicodeDecodeError():
            return f"not UTF-8 text from byte {error.start:,} on: save it as UTF-8"
        case socket.gaierror():
            return "there is no host with that name"
        case gzip.BadGzipFile() | EOFError():
            return "not a complete gzip file: it is cut off, or its name ends in .gz by mistake"
        case TimeoutError():
            return _WORDS[errno.ETIMEDOUT]
        case OSError() if error.errno in _WORDS:
            return _WORDS[error.errno]
        # The system's words begin with a capital letter, and stand in the middle of our sentence.
        case OSError() if error.strerror:
            return error.strerror[:1].lower() + error.strerror[1:]
    # Libraries wrap system errors in their own and print them as ``[Errno 2] ...``, which is no sentence.
    behind = error.__cause__ or error.__context__
    if isinstance(behind, OSError) or str(error).startswith("[Errno"):
        return obstacle(behind) if behind is not None else str(error).partition("] ")[2]
    return str(error) or type(error).__name__


class MistakeError(Exception):
    """A mistake of the user; the message is one sentence with what is wrong, where, and what to do.

    The command line prints it and exits with code 2; any other error there is a fault of the program.
    """


class PlainMistakes(ContextDecorator):
    """The border of the Python interface: a MistakeError is raised without the frames and causes behind it.

    Its sentence is for the user; 50 lines of internal calls above it would look like a fault of the program.
    """

    def __enter__(self) -> None:
        """Enter without preparation; all work is in ``__exit__``."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Raise a mistake again without its traceback; other errors keep theirs."""
        if isinstance(error, MistakeError):
            raise error.with_traceback(None) from None


plain_mistakes = PlainMistakes()
