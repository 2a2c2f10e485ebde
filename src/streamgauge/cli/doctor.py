"""The command ``doctor``: each engine, extra and tool with its state and what adds it."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Annotated, Final, NamedTuple

import typer
from rich.markup import escape

from streamgauge import engines as registry
from streamgauge.cli.exits import Exit
from streamgauge.cli.terminal import printing, table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
GIB: Final = 1 << 30
COMFORTABLE: Final = 8 * GIB


class Check(NamedTuple):
    """One thing that was looked at: its kind and name, its state (empty: absent), what adds or betters it.

    Without a ``needed`` one the installation is not whole.
    """

    kind: str
    name: str
    found: str
    advice: str
    needed: bool = False


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("doctor")(doctor)


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine has and lacks, and how to get it; exit code 2 where something that is needed is absent."""
    checks = [*machine(), *tools(), *extras(), *engines()]
    if as_json:
        typer.echo(json.dumps([{**each._asdict(), "what": each.name} for each in checks], indent=2))
    else:
        shown = table("kind", "what", "state")
        for each in checks:
            shown.add_row(each.kind, each.name, escape(each.found) or "absent")
        printing().print(shown)
        for each in checks:
            if each.advice:
                typer.echo(f"{each.name}: {each.advice}")
    whole = all(each.found for each in checks if each.needed)
    raise typer.Exit(Exit.RIGHT if whole else Exit.BAD_INPUT)


def machine() -> Iterator[Check]:
    """Python, and Java and memory for Spark."""
    from streamgauge.spark.requirements import SparkStartError, heap, java, java_lack, java_version, memory

    yield Check("machine", "Python", sys.version.split()[0], "", needed=True)
    program, lack = java(), java_lack()
    found = "" if program is None or lack else f"{java_version(program) or 'of an unknown version'} ({program})"
    yield Check("machine", "Java", found, lack, needed=True)
    has = memory()
    advice = "" if has.total >= COMFORTABLE else "8 GiB are comfortable: keep streams small or raise the memory"
    try:
        heap(None, "1g", has)
    except SparkStartError as error:
        advice = str(error)
    yield Check("machine", "memory", f"{has.total / GIB:.1f} GiB, {has.free / GIB:.1f} free", advice, needed=True)


_TOOLS: Final = {
    "javac": (("javac",), "for csparql, cqels and yasper: a JDK (Debian: apt-get install openjdk-17-jdk-headless)"),
    "mvn": (("mvn",), "for `engines prepare`: Maven (Debian: apt-get install maven)"),
    "git": (("git",), "for `engines prepare cqels`: git (Debian: apt-get install git)"),
    "node": (("node",), "for the engine rspjs: Node.js (Debian: apt-get install nodejs npm)"),
    "nginx": (("nginx", "/usr/sbin/nginx"), "for `reproduce tpf`'s cache: nginx (Debian: apt-get install nginx)"),
    "chromium": (
        ("chromium", "chromium-browser", "google-chrome"),
        "for the browser tests only (Debian: apt-get install chromium chromium-driver)",
    ),
}


def tools() -> Iterator[Check]:
    """Programs that a part uses."""
    for name, (programs, advice) in _TOOLS.items():
        found = next(filter(None, map(shutil.which, programs)), "")
        yield Check("tool", name, found, "" if found else advice)


def extras() -> Iterator[Check]:
    """The optional packages, by the extra that brings them."""
    for extra in metadata("streamgauge").get_all("Provides-Extra") or ():
        if extra == "dev":
            continue
        own = (each for each in requires("streamgauge") or () if f"extra == '{extra}'" in each.replace('"', "'"))
        found = [_installed(each) for each in own]
        state = ", ".join(found) if all(found) else ""
        yield Check("extra", extra, state, "" if state else f"pip install 'streamgauge[{extra}]'")


def _installed(requirement: str) -> str:
    """Name and version of the package that a requirement (PEP 508) names, empty where it is not installed."""
    name = re.split(r"[\s;<>=!~(\[]", requirement)[0]
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def engines() -> Iterator[Check]:
    """Every engine: whether it can be started here, else what it lacks."""
    for name in registry.names():
        lack = _lack(name)
        yield Check("engine", name, "" if lack else "ready", lack)


def _lack(name: str) -> str:
    from streamgauge.spark.requirements import java_lack

    module = registry.load(name)
    try:
        registry.command(module)
    except (registry.EngineError, subprocess.SubprocessError, OSError) as error:
        return str(error)
    return java_lack() if registry.evaluator(module) == "spark" else ""
