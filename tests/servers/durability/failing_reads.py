"""A disk that fails to read: a library in C, loaded before the others, that gives EIO for a part of one file.

``FAILING_FILE`` is the path of the file, ``FAILING_FROM`` and ``FAILING_TO`` say which of its bytes cannot be read.
Mapped pages are not read by calls: one that fails is a SIGBUS (``durability/lost_pages``).
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd, off_t from, size_t count) {
    const char *file = getenv("FAILING_FILE"), *first = getenv("FAILING_FROM"), *end = getenv("FAILING_TO");
    char link[64], path[4096];
    if (!file || !first || !end || from < 0) return 0;
    if (from + (off_t)count <= atoll(first) || from >= atoll(end)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return !strcmp(path, file);
}

#define NEXT(type, name, ...) \
    static type (*next)(__VA_ARGS__); \
    if (!next) next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t pread(int fd, void *into, size_t count, off_t from) {
    NEXT(ssize_t, "pread", int, void *, size_t, off_t);
    if (fails(fd, from, count)) { errno = EIO; return -1; }
    return next(fd, into, count, from);
}

ssize_t pread64(int fd, void *into, size_t count, off_t from) {
    NEXT(ssize_t, "pread64", int, void *, size_t, off_t);
    if (fails(fd, from, count)) { errno = EIO; return -1; }
    return next(fd, into, count, from);
}

ssize_t read(int fd, void *into, size_t count) {
    NEXT(ssize_t, "read", int, void *, size_t);
    if (fails(fd, lseek(fd, 0, SEEK_CUR), count)) { errno = EIO; return -1; }
    return next(fd, into, count);
}

ssize_t sendfile(int to, int fd, off_t *from, size_t count) {
    NEXT(ssize_t, "sendfile", int, int, off_t *, size_t);
    if (fails(fd, from ? *from : lseek(fd, 0, SEEK_CUR), count)) { errno = EIO; return -1; }
    return next(to, fd, from, count);
}

ssize_t sendfile64(int to, int fd, off_t *from, size_t count) {
    NEXT(ssize_t, "sendfile64", int, int, off_t *, size_t);
    if (fails(fd, from ? *from : lseek(fd, 0, SEEK_CUR), count)) { errno = EIO; return -1; }
    return next(to, fd, from, count);
}
"""


def compiler() -> str | None:
    """The program that compiles C here."""
    return shutil.which("cc")


def library(folder: Path) -> Path:
    """The library, compiled."""
    (folder / "failing.c").write_text(SOURCE)
    made = folder / "failing.so"
    words = ["-shared", "-fPIC", "-O1", "-o", str(made), str(folder / "failing.c"), "-ldl"]
    subprocess.run([str(compiler()), *words], check=True, capture_output=True)
    return made


def surroundings(library: Path, file: Path, first: int, end: int) -> dict[str, str]:
    """The environment of a program for which a file cannot be read from a byte to another."""
    named = {"FAILING_FILE": str(file.resolve()), "FAILING_FROM": str(first), "FAILING_TO": str(end)}
    return {**os.environ, "LD_PRELOAD": str(library), **named}
