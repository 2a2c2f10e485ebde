"""Requirements of a local Spark: a recent Java and memory; each missing one is a sentence with a remedy."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from streamgauge.model.extras import importable, missing
from streamgauge.model.mistake import MistakeError

JAVA: Final = 17
"""The oldest version of Java that PySpark 4 runs on."""

_INSTALL = (
    "install a JRE (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME"
)
NO_JAVA = f"Spark needs Java {JAVA} or newer and none was found: {_INSTALL}. `streamgauge doctor` checks the rest."

MIB: Final = 1 << 20
FREE: Final = 512 * MIB
"""Memory that the JVM of a small session takes, bytes: with less free, Spark is not started."""

HEAP: Final = "4g"
"""The driver's heap unless ``SPARK_DRIVER_MEMORY`` or the caller sets it."""

_UNITS = {"": MIB, "b": 1, "k": 1 << 10, "m": MIB, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([bkmgt]?)b?", re.IGNORECASE)


class SparkStartError(MistakeError, RuntimeError):
    """Spark cannot start; the message says what is missing and what to do."""


class JavaMissingError(SparkStartError):
    """Spark needs Java, and this machine has none or one that is too old."""


def java() -> str | None:
    """The path of the java program that Spark would use, ``None`` if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (path := Path(home) / "bin" / "java").exists():
        return str(path)
    return shutil.which("java")


def java_version(program: str) -> int | None:
    """The major version of a java program, ``None`` when neither its release file nor itself says one.

    The file ``release`` beside ``bin`` is read (JEP 223 writes ``JAVA_VERSION="17.0.15"``, Java 8 ``"1.8.0_412"``),
    as starting a JVM takes longer.
    """
    try:
        # Resolved, because the ``java`` of a path is usually a link into the installation.
        text = (Path(program).resolve().parents[1] / "release").read_text(encoding="utf-8", errors="replace")
        match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    except (OSError, IndexError, RuntimeError):
        match = None
    if match is None:
        match = re.search(r'version "([^"]+)"', _said(program))
    return None if match is None else _major(match[1])


def _major(version: str) -> int | None:
    """17 of ``17.0.15`` and ``17-ea``, 8 of ``1.8.0_412``."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else None


def _said(program: str) -> str:
    try:
        return subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    except (OSError, subprocess.SubprocessError):
        return ""


def java_lack() -> str:
    """A sentence on why no Java of this machine can run Spark; empty if one can."""
    program = java()
    if program is None:
        return NO_JAVA
    version = java_version(program)
    # An unknown version gets the benefit of the doubt: Spark's own message then says what is wrong.
    if version is None or version >= JAVA:
        return ""
    return f"Spark needs Java {JAVA} or newer and {program} is Java {version}: {_INSTALL}"


CONNECT: Final = "sc://"
"""How the address of a Spark Connect server begins."""

_CONNECT_PACKAGES: Final = ("pandas", "grpc", "grpc_status", "google.rpc", "zstandard")
"""Modules that PySpark's client of Spark Connect imports; without them it ends the process."""


def connect_address(master: str | None) -> str | None:
    """The address of the Spark Connect server that is to be used (``master``, else ``SPARK_REMOTE``), or ``None``."""
    return master if master is not None and master.startswith(CONNECT) else os.environ.get("SPARK_REMOTE")


def connect_lack() -> str:
    """A sentence on the packages that PySpark's Spark Connect client lacks; empty if it lacks none."""
    absent = [name for name in _CONNECT_PACKAGES if not importable(name)]
    return f"Spark Connect needs {' and '.join(absent)}: pip install 'pyspark[connect]'" if absent else ""


def classic_only(master: str | None, use: str) -> None:
    """Raise SparkStartError for a feature that needs classic Spark, if a Spark Connect server is configured."""
    if address := connect_address(master):
        raise _needs_classic(use, f"{address} is Spark Connect")


def classic_session(session: object, use: str) -> None:
    """Raise SparkStartError for a feature that needs classic Spark, if the session is a remote one."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise _needs_classic(use, "this session is Spark Connect's")


def _needs_classic(use: str, but: str) -> SparkStartError:
    return SparkStartError(
        f"{use} needs classic Spark, and {but}: name a master such as spark://HOST:7077, yarn or local[*], and leave "
        "SPARK_REMOTE out"
    )


def spark_lack() -> str:
    """Why Spark cannot start here, in a sentence: no PySpark, or no Java that will do; empty when it can.

    Spark Connect (``SPARK_REMOTE``) needs no Java here.
    """
    return missing("spark") or ("" if os.environ.get("SPARK_REMOTE") else java_lack())


@dataclass(frozen=True)
class Memory:
    """The memory (bytes) that this process may use: the machine's, or its control group's limit if that is less."""

    total: int
    free: int


def memory(group: Path = Path("/sys/fs/cgroup")) -> Memory:
    """The machine's memory; ``group`` is the folder of the control group (cgroup v2), which a container has."""
    machine = psutil.virtual_memory()
    swap = psutil.swap_memory().free
    total, free = machine.total, machine.available + swap
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        cached = re.search(r"^inactive_file (\d+)$", (group / "memory.stat").read_text(encoding="ascii"), re.MULTILINE)
        # The group's usage includes the page cache, of which the kernel reclaims inactive pages when needed.
        left = limit - used + (int(cached[1]) if cached else 0)
    except (OSError, ValueError):  # no such group, or no limit ("max")
        return Memory(total, free)
    return Memory(min(total, limit), min(free, left))


def heap(amount: str | None, default: str, has: Memory) -> str:
    """The driver's heap in Spark's notation: as requested, else the default, else half of a small machine's memory.

    SparkStartError if the request is not a size or exceeds the memory, or too little memory is free for a JVM.
    """
    if has.free < FREE:
        raise SparkStartError(
            f"Spark takes about {FREE // MIB} MiB of memory and {has.free // MIB} MiB are free: end other programs, "
            "or take a smaller stream, which needs no Spark"
        )
    if amount is None:
        # Half of the memory of a small machine, as the JVM needs more than its heap, and Python workers run beside it.
        return default if heap_bytes(default) <= has.total else f"{max(512, has.total // MIB // 2)}m"
    if heap_bytes(amount) > has.total:
        raise SparkStartError(
            f"SPARK_DRIVER_MEMORY={amount} is more than this machine's {has.total / (1 << 30):.1f} GiB of memory: give "
            "less, or leave the variable out"
        )
    return amount


def heap_bytes(size: str) -> int:
    """Bytes of Spark's ``4g``, ``512m``, ``4096`` (MiB); SparkStartError."""
    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise SparkStartError(f"SPARK_DRIVER_MEMORY={size} is not a size of memory: write 4g or 512m")
    return int(match[1]) * _UNITS[match[2].lower()]
