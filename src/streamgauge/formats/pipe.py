"""An engine as a program on the pipe (docs/pipe.md): its task, its session, and its end.

The task is one line before elements and advances:
``{"query": text, "dialect": name, "semantics": {...}, "static": [[s, p, o], ...], "options": {...}}``;
``"static_file": path`` names an N-Triples file in place of ``static``, for engines that support it; ``"elements":
["lines", "arrow"]`` offers forms of elements, from which the engine chooses in its ``ready`` message.
Exit codes of a child are negative for a signal; a shell or a container in between gives 128 + signal.
"""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias, cast, get_args

from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.lines import Late, LineError, decode_output, encode_advance, encode_element
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import obstacle
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple

START_LIMIT = "STREAMGAUGE_START_LIMIT_S"
"""The environment variable for the time limit of starting a program, s."""

MAX_LOAD = 10.0
"""Maximum factor by which a busy machine lengthens the start limit."""

HEAP = "raise the heap of an engine on the JVM (JAVA_TOOL_OPTIONS=-Xmx8g), or give the machine more memory"
_CRASHES = frozenset(getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"))
_SET_UP = (
    "NoClassDefFoundError",
    "ClassNotFoundException",
    "Could not find or load main class",
    "UnsupportedClassVersionError",
    "UnsatisfiedLinkError",
    "NoSuchMethodError",
    "NoSuchFieldError",
    "AbstractMethodError",
    "IncompatibleClassChangeError",
    "ServiceConfigurationError",
    "Unable to access jarfile",
    "ModuleNotFoundError",
    "ImportError",
    "Cannot find module",
    "error while loading shared libraries",
    "A fatal error has been detected by the Java Runtime Environment",
    "Fatal Python error",
)
_MISSING = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in _SET_UP))
_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError|insufficient memory for the Java Runtime|\bMemoryError\b")
_CODE = re.compile(r"exit code (-?\d+)")


def start_limit(seconds: float, load: float | None = None, environment: Mapping[str, str] = os.environ) -> float:
    """The time (s) for a program to become ready: that of the environment, else ``seconds`` times the load.

    ``load`` is the number of processes per processor, by default the machine's over the last minute.
    """
    stated = environment.get(START_LIMIT, "")
    if re.fullmatch(r"\d+(\.\d+)?", stated) and float(stated) > 0:
        return float(stated)
    # Worked example: with 6 processes on 2 processors the load is 3, and a limit of 60 s becomes 180 s.
    return seconds * min(MAX_LOAD, max(1.0, machine_load() if load is None else load))


def machine_load() -> float:
    """The load average per processor over the last minute; 1 if the system does not provide it."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 1.0


def kernel_kills(counters: Path = Path("/proc/vmstat")) -> int | None:
    """The number of processes that the kernel killed for lack of memory; ``None`` if it is unknown."""
    try:
        match = re.search(r"^oom_kill (\d+)$", counters.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if match is None else int(match[1])


def signal_of(code: int) -> signal.Signals | None:
    """The signal that ended a program with this exit code, ``None`` if none did."""
    # A shell or a container reports 128 + signal.
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number) if number > 0 else None
    except ValueError:
        return None


def in_words(code: int, kills_before: int | None = None, kills_now: int | None = None) -> str:
    """The exit code and its cause, if that was a signal; kills counted by the kernel show a lack of memory."""
    message = f"exit code {code}"
    signal_ = signal_of(code)
    if signal_ is signal.SIGKILL:
        # A counter of the whole machine, so it is evidence and not proof: the sentence says what the kernel did.
        if kills_before is not None and kills_now is not None and kills_now > kills_before:
            return f"{message}: killed, and the kernel says that it ended a process as memory had run out: {HEAP}"
        return f"{message}: killed from outside, as the kernel does when memory runs out: {HEAP}"
    return f"{message} (signal {signal_.name})" if signal_ is not None else message


def advice(words: str) -> str:
    """The remedy for a program with this output on standard error; empty unless memory ran out."""
    return f"; memory ran out: {HEAP}" if _MEMORY.search(words) else ""


def set_up_wrongly(failure: str) -> str | None:
    """Why a failure is due to the program's installation, not its answers; ``None`` if it may be its own.

    A missing class, module or library, a native crash, and too little memory say nothing about semantics.
    """
    if match := _MISSING.search(failure):
        return f"{match[0]}: something that the engine needs is missing or of another version"
    code = _CODE.search(failure)
    ended = signal_of(int(code[1])) if code else None
    if ended in _CRASHES:
        return f"it crashed natively ({ended.name})" if ended is not None else None
    if ended is signal.SIGKILL or _MEMORY.search(failure):
        return "its memory ran out, or it was killed from outside"
    return None


class StaticFile(Collection[Triple]):
    """The triples of a canonical N-Triples file, one per line; each iteration reads the file.

    LineError names an invalid line; OSError if the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._count = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Triple]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                terms = line.split(" ", 2)
                if len(terms) != 3 or not terms[2].endswith(" .\n"):
                    raise LineError(f"{self.path}:{number}: expected a canonical N-Triples line: s p o .")
                yield terms[0], terms[1], terms[2][:-3]

    def __contains__(self, triple: object) -> bool:
        return any(triple == other for other in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StaticFile | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(len(self))


READY = b'{"ready":true}\n'
"""Sent by a program that has read its task, or all preloaded input."""

READY_FOR_ARROW = b'{"ready":true,"elements":"arrow"}\n'
"""``READY`` of a program that chooses Arrow IPC streams for elements and advances (``formats.batches``)."""

GO = b'{"go":true}\n'
"""Ends the input to be preloaded, and then starts its evaluation."""

CLOSE = b'{"close":true}\n'
"""Ends a task: no more input for it."""

CLOSED = b'{"closed":true}\n'
"""Sent by a program after the last answer to its task; it accepts another one."""

WordKind: TypeAlias = Literal["ready", "closed", "refused"]
Form: TypeAlias = Literal["lines", "arrow"]
"""The form of elements and advances: JSON lines, or batches of Arrow IPC streams."""

FORMS: Final[tuple[Form, ...]] = get_args(Form)
_WORD = re.compile(rb'\s*\{\s*"(ready|closed|refused)"\s*:')


@dataclass(frozen=True, slots=True)
class ProgramWord:
    """A message of a program besides its answers.

    ``sentence`` is its reason to refuse a task, ``form`` its choice for elements.
    """

    kind: WordKind
    sentence: str = ""
    form: Form = "lines"


class TaskRefusedError(ValueError):
    """A task that a program on the pipe refuses; the sentence is the program's."""


def word(line: bytes) -> ProgramWord | None:
    """The message in a line of a program, in any JSON layout; ``None`` for other lines."""
    match = _WORD.match(line)
    if match is None:
        return None
    kind = cast(WordKind, match[1].decode())
    try:
        data = json.loads(line)
        value = data[kind]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if kind == "refused":
        return ProgramWord(kind, value) if isinstance(value, str) and value else None
    form = data.get("elements", "lines")
    return ProgramWord(kind, form=form) if value is True and form in FORMS else None


def encode_refused(sentence: str) -> bytes:
    """The line with which a program refuses its task."""
    return json.dumps({"refused": sentence}).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Task:
    """A continuous query as text in a dialect, its semantics, static triples and the engine's own options.

    The option ``preload`` makes the program read all input first, so that only evaluation is timed. ``forms`` are the
    offered forms of elements.
    """

    query: str
    dialect: str
    semantics: Semantics
    static: Collection[Triple] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    forms: tuple[Form, ...] = ("lines",)

    @property
    def preload(self) -> bool:
        """Whether all input is read before evaluation begins."""
        return self.options.get("preload") is True


def encode_task(task: Task) -> bytes:
    """One line for a task."""
    static = (
        {"static_file": str(task.static.path)}
        if isinstance(task.static, StaticFile)
        else {"static": tuple(task.static)}
    )
    data = {
        "query": task.query,
        "dialect": task.dialect,
        "semantics": encode(task.semantics),
        **static,
        "options": dict(task.options),
        **({"elements": task.forms} if task.forms != ("lines",) else {}),
    }
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def decode_task(line: bytes | str) -> Task:
    """The task of a line; LineError names an invalid field."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise LineError(f"not a line of JSON: {error}") from error
    if not isinstance(data, dict):
        raise LineError("a task is a JSON object")
    for name in ("query", "dialect"):
        if not isinstance(data.get(name), str):
            raise LineError(f"field {name} is missing: expected text")
    try:
        semantics = decode(Semantics, data.get("semantics") or {}, "semantics")
    except FieldError as error:
        raise LineError(str(error)) from error
    static: Collection[Triple] = tuple(_triple(item, number) for number, item in enumerate(data.get("static") or ()))
    if (file := data.get("static_file")) is not None:
        static = _file(file)
    forms = tuple(form for form in FORMS if form in (data.get("elements") or ("lines",)))
    return Task(data["query"], data["dialect"], semantics, static, data.get("options") or {}, forms)


def _file(path: object) -> StaticFile:
    if not isinstance(path, str):
        raise LineError("field static_file: expected the path of an N-Triples file")
    try:
        return StaticFile(Path(path))
    except OSError as error:
        raise LineError(f"field static_file: {path}: {obstacle(error)}") from error


def _triple(item: object, number: int) -> Triple:
    if not isinstance(item, list) or len(item) != 3 or not all(isinstance(term, str) for term in item):
        raise LineError(f"field static[{number}]: expected three N-Triples terms")
    return item[0], item[1], item[2]


START_LIMIT_S = 60.0
EXIT_LIMIT_S = 5.0
"""Time for a program to exit after the end of its output; after that its failure is reported without exit code."""

END_LIMIT_S = 600.0


class PipeError(RuntimeError):
    """A program that broke the contract or failed; the sentence says how."""


class PipedSession:
    """A program on the pipe; ``emit`` is called from another thread as answers come, with ``received`` 0.

    ``close`` ends its input and waits for its last answers. PipeError if the program fails.
    """

    def __init__(self, command: Sequence[str], task: Task, emit: Callable[[Answer], None]) -> None:
        self._emit, self.late, self._failure, self._refused = emit, 0, "", ""
        # A file, not a pipe: a program that writes a lot to standard error never blocks for want of a reader.
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, bufsize=0
        )
        self._kills = kernel_kills()
        self._ready = threading.Event()
        self._noticing = threading.Lock()
        self._closing, self._ended = False, ""
        self._tell: Callable[[str], None] | None = None
        self._reader = threading.Thread(target=self._read, name="engine-answers", daemon=True)
        self._reader.start()
        self._write(encode_task(task))
        limit = start_limit(START_LIMIT_S)
        ready = self._ready.wait(limit)
        if self._refused:
            self._end()
            raise TaskRefusedError(self._refused)
        if not ready or self._failure:
            why = self._why()
            self._end()
            raise PipeError(f"the engine {self._unready(limit)}: {why}")

    def push(self, element: StreamElement) -> None:
        """Send the next element."""
        self._write(encode_element(element))

    def advance(self, time: int) -> None:
        """Send a watermark: no element before ``time`` (ms) will follow."""
        self._write(encode_advance(time))

    def on_failure(self, tell: Callable[[str], None]) -> None:
        """Set a callback for a program that ends before its input: called from another thread with a sentence."""
        # A callback may be set while the program ends: one of the two threads sees what the other has stored.
        with self._noticing:
            self._tell = tell
            ended = self._ended
        if ended:
            tell(ended)

    def close(self) -> None:
        """End the input and wait for the last answers."""
        assert self._process.stdin is not None
        # The reader sees the end of the output only after this: an end that was asked for is not a failure.
        self._closing = True
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
        # Not after a timeout: a program that still runs keeps its output open, and the reader would never end.
        if code is not None:
            self._reader.join()
        why = self._why()
        self._end()
        if code is None:
            raise PipeError(f"the engine was still running {END_LIMIT_S:.0f} s after the end of its input; ended")
        if code != 0 or self._failure:
            raise PipeError(f"the engine ended with {self._how(code)}: {why}")

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except OSError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_LIMIT_S)
            code, why = self._process.returncode, self._why()
            self._end()
            how = "" if code is None else f" and ended with {self._how(code)}"
            raise PipeError(f"the engine stopped reading its input{how}: {why}") from error

    def _read(self) -> None:
        """Emit every answer when it is received; runs in the session's thread."""
        assert self._process.stdout is not None
        with io.BufferedReader(self._process.stdout) as output:  # type: ignore[type-var]
            for line in output:
                kind = word(line)
                if kind is None and not self._receive(line):
                    break
                if kind is not None:
                    self._refused = kind.sentence
                    self._ready.set()
        self._ready.set()
        if not self._closing:
            self._notice()

    def _notice(self) -> None:
        """Handle the end of the output before the end of the input."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_LIMIT_S)
        code = self._process.returncode
        how = "ended its output" if code is None else f"ended with {self._how(code)}"
        with self._noticing:
            self._ended = f"the engine {how} before its input did: {self._why()}"
            tell = self._tell
        if tell is not None:
            tell(self._ended)

    def _receive(self, line: bytes) -> bool:
        """Handle an answer or a count of late elements; false for an invalid line, which ends the program."""
        try:
            output = decode_output(line)
        except LineError as error:
            self._failure = f"it wrote a line that is not an answer: {error}"
            # After an invalid line nothing that follows can be attributed to a report, so the run ends here.
            self._process.kill()
            return False
        if isinstance(output, Late):
            self.late = output.count
        else:
            self._emit(output)
        return True

    def _how(self, code: int) -> str:
        return in_words(code, self._kills, kernel_kills())

    def _unready(self, limit: float) -> str:
        """Why the program did not become ready, the end of a sentence."""
        if self._failure:
            return "failed before it was ready"
        return f"was not ready within {limit:g} s ({START_LIMIT} allows more)"

    def _why(self) -> str:
        if self._failure:
            return self._failure
        words = self._words.fileno()
        # The program writes at the offset of this file; pread reads without moving it.
        text = os.pread(words, 2000, max(0, os.fstat(words).st_size - 2000)).decode(errors="replace").strip()
        return f"its last words: {text}{advice(text)}" if text else "its standard error is empty"

    def _end(self) -> None:
        """End the process and close its pipes."""
        self._closing = True
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        # With a limit: a grandchild of the program may hold its output open after the program itself has ended.
        self._reader.join(5)
        self._words.close()
