"""A disk that fails to write: a library in C, loaded before the others, switched by files while a server runs.

``FAILING_FOLDER`` is where the disk fails. While ``SWITCH.sync`` is there, synchronising gives EIO, as a disk does that
loses what it was given; while ``SWITCH.write`` is there, writing gives EROFS, as a file system does that the kernel has
remounted read-only with files open on it (which no remount by hand does).
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.servers.failing_reads import compiler

SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static int on(const char *fault) {
    const char *name = getenv("FAILING_SWITCH");
    char path[4096];
    if (!name) return 0;
    snprintf(path, sizeof path, "%s.%s", name, fault);
    int before = errno, found = !access(path, F_OK);
    errno = before;
    return found;
}

static int inside(const char *path) {
    const char *folder = getenv("FAILING_FOLDER");
    return folder && !strncmp(path, folder, strlen(folder));
}

static int of(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

#define NEXT(type, name, ...) \
    static type (*next)(__VA_ARGS__); \
    if (!next) next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define FAIL(fault, code, fd) if (on(fault) && of(fd)) { errno = code; return -1; }

int fsync(int fd) { NEXT(int, "fsync", int); FAIL("sync", EIO, fd) FAIL("write", EROFS, fd) return next(fd); }
int fdatasync(int fd) { NEXT(int, "fdatasync", int); FAIL("sync", EIO, fd) FAIL("write", EROFS, fd) return next(fd); }
ssize_t write(int fd, const void *data, size_t count) {
    NEXT(ssize_t, "write", int, const void *, size_t); FAIL("write", EROFS, fd) return next(fd, data, count);
}
ssize_t pwrite(int fd, const void *data, size_t count, off_t at) {
    NEXT(ssize_t, "pwrite", int, const void *, size_t, off_t); FAIL("write", EROFS, fd)
    return next(fd, data, count, at);
}
ssize_t pwrite64(int fd, const void *data, size_t count, off_t at) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off_t); FAIL("write", EROFS, fd)
    return next(fd, data, count, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    NEXT(ssize_t, "pwritev", int, const struct iovec *, int, off_t); FAIL("write", EROFS, fd)
    return next(fd, parts, count, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int); FAIL("write", EROFS, fd) return next(fd, parts, count);
}
int ftruncate(int fd, off_t size) {
    NEXT(int, "ftruncate", int, off_t); FAIL("write", EROFS, fd) return next(fd, size);
}
int ftruncate64(int fd, off_t size) {
    NEXT(int, "ftruncate64", int, off_t); FAIL("write", EROFS, fd) return next(fd, size);
}

static int opens(const char *path, int flags) {
    return on("write") && inside(path) && (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC));
}

#define OPEN(name) int name(const char *path, int flags, ...) { \
    NEXT(int, #name, const char *, int, ...); \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
    if (opens(path, flags)) { errno = EROFS; return -1; } \
    return next(path, flags, mode); \
}
OPEN(open)
OPEN(open64)
"""


class FailingDisk:
    """Switches the faults of programs that were started with ``environment``."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        (scratch / "failing.c").write_text(SOURCE)
        made, self._switch = scratch / "failing.so", scratch / "switch"
        words = ["-shared", "-fPIC", "-O1", "-o", str(made), str(scratch / "failing.c"), "-ldl"]
        subprocess.run([str(compiler()), *words], check=True, capture_output=True)
        named = {"FAILING_FOLDER": str(folder.resolve()), "FAILING_SWITCH": str(self._switch)}
        self.environment = {"LD_PRELOAD": str(made), **named}

    @contextmanager
    def fails(self, fault: str) -> Iterator[None]:
        """A time in which the disk has a fault."""
        file = self._switch.with_name(f"{self._switch.name}.{fault}")
        file.touch()
        try:
            yield
        finally:
            file.unlink()
