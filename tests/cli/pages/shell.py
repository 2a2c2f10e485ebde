"""Blocks run as a reader would run them: commands in this process, servers beside it, Python in one session.

A line `streamgauge ...` of nothing but words is called in this process. A command that goes on until Ctrl-C (a server,
a live query) is a program: it is ready with its first line, and must end well when the page does. A block with anything
else in it is given to `sh -e` whole. A command exits with 0 unless its comment says ``exit code N``.
"""

import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.cli.pages.markdown import Block

ENDLESS: Final = re.compile(
    r"(?:streamgauge (?:(?:engine|fragments|broker) (?:serve|bridge)|watch|subscribe|docs|ui)|python -m http\.server"
    r"|mosquitto|streamgauge query .*mqtt://)\b"
)
BOUNDED: Final = re.compile(r"--(?:once|limit|feed-for|path)\b")
"""Commands that go on until Ctrl-C, and options by which they do not."""

TALKS: Final = re.compile(r"streamgauge (?:watch|subscribe)\b")
"""Of these those that print answers."""

CLIENTS: Final = re.compile(r"streamgauge (?:watch|subscribe|query)\b")
"""Of these those whose readiness no line tells."""

OTHERS: Final = ("anyio", "hypothesispytest", "randomly", "schemathesis", "xdist")
"""Plugins of pytest that the suite has and a reader has not; they take longer to load than the tests of a page."""

READY_S: Final = 60.0
LONG_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Line:
    """A command with its comment taken off, and the exit code that it should have."""

    text: str
    code: int

    @property
    def plain(self) -> bool:
        """Whether it is a command of ours without anything that a shell would have to do."""
        return self.text.startswith("streamgauge ") and not re.search(r"[|&;<>$`*~]", re.sub(r"'[^']*'", "", self.text))

    @property
    def endless(self) -> bool:
        """Whether it goes on until Ctrl-C."""
        return bool(ENDLESS.match(self.text)) and not BOUNDED.search(self.text)

    @property
    def simple(self) -> bool:
        """Whether `sh` is not needed for it."""
        return self.plain or self.endless or bool(re.match(r"(?:cd|export) [^$&|;]+$", self.text))


def lines_of(text: str) -> list[Line]:
    """The commands of a block, one each line of it; a line that ends with a backslash goes on."""
    joined = text.replace("\\\n", " ")
    return [item for item in map(_line, joined.splitlines()) if item.text]


def _line(text: str) -> Line:
    command, comment = _split(text)
    code = re.search(r"exit code (\d+)", comment)
    return Line(command.strip(), int(code[1]) if code else 0)


def _split(text: str) -> tuple[str, str]:
    """A line and its comment: a # that no quotes hold and that begins a word."""
    quote = ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (at == 0 or text[at - 1].isspace()):
            return text[:at], text[at:]
    return text, ""


def console(text: str) -> list[tuple[str, str]]:
    """Each command of a block of `$ command` lines with the output that is shown below it."""
    results: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            results.append((line[2:], ""))
        else:
            command, shown = results.pop()
            results.append((command, shown + line))
    return results


def same(shown: str, said: str) -> bool:
    """Whether output is as shown: the lines follow each other, ``...`` stands for any text, spaces count as one."""
    pattern = ".*".join(r"\s+".join(map(re.escape, part.split())) for part in shown.split("..."))
    return re.search(pattern, said, re.S) is not None


def _listens(said: str) -> bool:
    """Whether a server that has printed its address takes connections there: it prints other lines before."""
    address = re.search(r"http://([\w.]+):(\d+)", said)
    if address is None:
        return False
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((address[1], int(address[2]))) == 0


@dataclass
class Program:
    """A command that goes on: its process, and the file that has what it prints."""

    line: Line
    process: "subprocess.Popen[bytes]"
    out: Path
    err: Path

    @property
    def said(self) -> str:
        """What it has printed, on standard output and standard error."""
        return self.out.read_text() + self.err.read_text()

    def is_ready(self) -> bool:
        """Whether a server serves, and a broker knows its subscriber by name; other clients need not be waited for."""
        named = re.match(r"streamgauge subscribe (\w+) .*--as (\w+)", self.line.text)
        if named:
            return named[2] in _subscribers(named[1])
        if " serve " in f"{self.line.text} ":
            return _listens(self.said)
        return bool(self.said) or CLIENTS.match(self.line.text) is not None

    def has_talked(self) -> bool:
        """Whether it has printed an answer, if it is one to do so."""
        return bool(self.out.read_text()) or not TALKS.match(self.line.text)


@dataclass
class Shell:
    """What a reader has open: a folder, an environment, a session of Python, programs that go on."""

    folder: Path
    home: Path
    environment: dict[str, str]
    said: str = ""
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    programs: list[Program] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Run a block; AssertionError says which command was otherwise than the page says."""
        if block.language == "python":
            with self._as_reader() as said:
                exec(compile("\n" * block.line + block.text, block.page, "exec"), self.names)
            self.said = said()
        elif block.language == "console":
            for command, shown in console(block.text):
                self._commands(Block(block.page, block.line, "sh", command))
                assert same(shown, self.said), f"{block.place}: {command}shows\n{shown}\nbut prints\n{self.said}"
        else:
            self._commands(block)
        for program in self.programs:
            _wait(program.has_talked, program, block)

    def _commands(self, block: Block) -> None:
        lines = lines_of(block.text)
        self.said = ""
        if not all(line.simple for line in lines):
            self._script(block)
            return
        for line in lines:
            if line.endless:
                self._start(line, block)
            elif line.plain:
                code, said = self._call(line)
                self.said += said
                assert code == line.code, f"{block.place}: {line.text}\nexit code {code}, not {line.code}:\n{said}"
            else:
                self._set(*line.text.split(maxsplit=1))

    def _set(self, word: str, what: str) -> None:
        if word == "cd":
            self.folder = self.folder / what
        else:
            self.environment |= dict(part.split("=", 1) for part in shlex.split(what))

    def _call(self, line: Line) -> tuple[int, str]:
        """Call a command in this process: its exit code and what it prints."""
        from streamgauge.cli.main import main

        with self._as_reader() as said, patch.object(sys, "argv", shlex.split(line.text)):
            try:
                main()
            except SystemExit as ended:
                return int(ended.code or 0), said()
        raise AssertionError(line.text)

    @contextmanager
    def _as_reader(self) -> Iterator[Callable[[], str]]:
        """In the reader's folder, with what is printed kept."""
        printed, before = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), Path.cwd()
        os.chdir(self.folder)
        try:
            with (
                patch.dict(os.environ, self.environment),
                patch.object(sys, "stdin", io.StringIO()),
                redirect_stdout(printed),
                redirect_stderr(printed),
            ):
                yield lambda: bytes(printed.buffer.getvalue()).decode()  # type: ignore[attr-defined]
        finally:
            os.chdir(before)

    def _script(self, block: Block) -> None:
        text = re.sub(r"(?m)^(curl .*--max-time .*)$", r"\1 || test $? -eq 28", block.text)  # 28: the time is over
        done = subprocess.run(
            ["sh", "-ec", text],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=LONG_S,
        )
        self.said = done.stdout + done.stderr
        assert done.returncode == 0, f"{block.place}: exit code {done.returncode}:\n{self.said}"

    def _start(self, line: Line, block: Block) -> None:
        stem = self.home / f"program-{len(self.programs)}"
        out, err = stem.with_suffix(".out"), stem.with_suffix(".err")
        words = shlex.split(line.text)
        if words[0] != "mosquitto":
            words = [sys.executable, *(words[1:] if words[0] == "python" else ["-m", *words])]
        with out.open("wb") as printed, err.open("wb") as complained:
            process = subprocess.Popen(
                words,
                cwd=self.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complained,
                start_new_session=True,
            )
        self.programs.append(program := Program(line, process, out, err))
        _wait(program.is_ready, program, block)

    def close(self) -> None:
        """Ctrl-C for every program, the last first; AssertionError when one does not end well."""
        ended = [(program, _end(program)) for program in reversed(self.programs)]
        self.programs.clear()
        for program, code in ended:
            assert code in (0, 130, -signal.SIGINT), f"{program.line.text}\nexit code {code}:\n{program.said}"


def _subscribers(channel: str) -> list[str]:
    """The names of a channel's subscribers, of the broker at its own port; none while there is no channel."""
    with suppress(HTTPError), urlopen(f"http://127.0.0.1:4200/channels/{channel}/subscribers") as result:
        return [entry["subscriber"] for entry in json.load(result)["subscribers"]]
    return []


def _end(program: Program) -> int:
    if program.process.poll() is None:
        program.process.send_signal(signal.SIGINT)
    try:
        return program.process.wait(READY_S)
    except subprocess.TimeoutExpired:
        program.process.kill()
        program.process.wait()
        return -signal.SIGKILL


def _wait(done: Callable[[], bool], program: Program, block: Block) -> None:
    """Wait until a program has said what it should; AssertionError when it ends before, or says nothing."""
    until = time.monotonic() + READY_S
    while not done():
        assert program.process.poll() is None, f"{block.place}: {program.line.text}\nended:\n{program.said}"
        assert time.monotonic() < until, f"{block.place}: {program.line.text}\nsaid nothing:\n{program.said}"
        time.sleep(0.05)
