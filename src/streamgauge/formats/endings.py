"""How a program on the pipe ended: its exit code in words, whether memory ran out, whether it was set up wrongly.

Exit codes of a child are negative for a signal; a shell or a container in between gives 128 + signal.
"""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

START_LIMIT = "STREAMGAUGE_START_LIMIT_S"
"""The environment variable that sets how long a program may take to get ready, s."""

MOST_LOAD = 10.0
"""By how much a busy machine lengthens the start limit at most."""

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
    """How long (s) a program may take to get ready: as the environment says, else ``seconds`` times the load.

    ``load`` is how many processes want each processor, the machine's over the last minute unless given.
    """
    stated = environment.get(START_LIMIT, "")
    if re.fullmatch(r"\d+(\.\d+)?", stated) and float(stated) > 0:
        return float(stated)
    return seconds * min(MOST_LOAD, max(1.0, machine_load() if load is None else load))


def machine_load() -> float:
    """How many processes wanted each processor over the last minute; 1 where the system does not say."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 1.0


def kernel_kills(counters: Path = Path("/proc/vmstat")) -> int | None:
    """How many processes the kernel has ended because memory had run out, ``None`` where it does not say."""
    try:
        found = re.search(r"^oom_kill (\d+)$", counters.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1])


def signal_of(code: int) -> signal.Signals | None:
    """The signal that ended a program with this exit code, ``None`` for none."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number) if number > 0 else None
    except ValueError:
        return None


def in_words(code: int, kills_before: int | None = None, kills_now: int | None = None) -> str:
    """The exit code, and the cause of one that a signal gave: the kernel's count of kills tells of memory."""
    said = f"exit code {code}"
    found = signal_of(code)
    if found is signal.SIGKILL:
        if kills_before is not None and kills_now is not None and kills_now > kills_before:
            return f"{said}: killed, and the kernel says that it ended a process as memory had run out: {HEAP}"
        return f"{said}: killed from outside, as the kernel does when memory runs out: {HEAP}"
    return f"{said} (signal {found.name})" if found is not None else said


def advice(words: str) -> str:
    """The advice for a program with these last words: empty unless memory ran out."""
    return f"; memory ran out: {HEAP}" if _MEMORY.search(words) else ""


def set_up_wrongly(failure: str) -> str | None:
    """Why a failure of a program is one of its set-up and none of its answers, ``None`` when it may be its own.

    A class, module or library that is missing, a native crash, and too little memory say nothing about semantics.
    """
    if found := _MISSING.search(failure):
        return f"{found[0]}: something that the engine needs is missing or of another version"
    code = _CODE.search(failure)
    ended = signal_of(int(code[1])) if code else None
    if ended in _CRASHES:
        return f"it crashed natively ({ended.name})" if ended is not None else None
    if ended is signal.SIGKILL or _MEMORY.search(failure):
        return "its memory ran out, or it was killed from outside"
    return None
