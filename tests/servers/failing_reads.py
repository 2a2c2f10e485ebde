"""A disk that fails to read: a library in C, loaded before the others, that gives EIO for a part of one file.

``FAILING_FILE`` is the path of the file, ``FAILING_FROM`` and ``FAILING_TO`` say which of its bytes cannot be read.
Mapped pages are not read by calls: one that fails is a SIGBUS (``servers/durability``). The library asks for its
environment at each call, so commands are forks of one program, ``FORKING``, that has imported them once.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


FORKING: Final = """
import json, os, sys
import streamgauge.cli.broker, streamgauge.cli.fragments
from streamgauge.cli.main import main

for line in sys.stdin:
    asked = json.loads(line)
    if not (child := os.fork()):
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        for stream, file in enumerate((os.devnull, asked["out"], asked["err"])):
            os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), stream)
        sys.argv = ["streamgauge", *asked["words"]]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A program that does each command of its input, a line of JSON, in a process of its own, and prints the exit code."""


class FailingPrograms:
    """Commands in processes for which a part of a file cannot be read."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process, self._folder = process, folder

    def run(self, file: Path, first: int, end: int, words: Sequence[str]) -> tuple[int, str, str]:
        """A command beside a file that cannot be read from a byte to another: exit code, output, complaints."""
        named = {"FAILING_FILE": str(file.resolve()), "FAILING_FROM": str(first), "FAILING_TO": str(end)}
        out, err = self._folder / "out", self._folder / "err"
        for item in (out, err):
            item.unlink(missing_ok=True)
        places = {"folder": str(file.parent), "out": str(out), "err": str(err)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"words": list(words), "environment": named, **places}) + "\n")
        self._process.stdin.flush()
        output = self._process.stdout.readline()
        assert output, "the program that forks has ended"
        return int(output), out.read_text(), err.read_text()


@contextmanager
def failing_programs(folder: Path) -> Iterator[FailingPrograms]:
    """Commands under the library, which is compiled into a folder."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKING],
        env={**os.environ, "LD_PRELOAD": str(library(folder))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield FailingPrograms(process, folder)
