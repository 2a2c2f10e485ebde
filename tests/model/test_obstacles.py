"""Errors of the system in words."""

import errno
import gzip
import os
import socket

import pytest

from streamgauge.model.mistake import obstacle


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOENT, "there is no such file or folder"),
        (errno.EACCES, "this user has no permission"),
        (errno.EPERM, "this user has no permission"),
        (errno.EISDIR, "it is a folder, but a file is needed"),
        (errno.ENOTDIR, "a component of this path is a file"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EADDRINUSE, "another program already uses this port: name another one"),
        (errno.ECONNREFUSED, "no server is listening there"),
        (errno.ETIMEDOUT, "there was no response in time"),
        (errno.EXDEV, "invalid cross-device link"),
    ],
)
def test_a_code_of_the_system_is_words(code, words):
    said = obstacle(OSError(code, os.strerror(code), "file"))
    assert said.startswith(words)
    assert "Errno" not in said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "there is no host with that name"),
        (UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"), "not UTF-8 text from byte 1 on: save it"),
        (gzip.BadGzipFile("Not a gzipped file (b'no')"), "not a complete gzip file"),
        (EOFError("Compressed file ended"), "not a complete gzip file"),
        (TimeoutError(), "there was no response in time"),
        (ValueError("of ours"), "of ours"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_other_errors(error, words):
    assert obstacle(error).startswith(words)


def test_an_error_that_a_library_made_of_one_of_the_system():
    error = RuntimeError("[Errno 111] Connection refused")
    error.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    assert obstacle(error).startswith("no server is listening there")
    assert obstacle(RuntimeError("[Errno 111] Connection refused")) == "Connection refused"
