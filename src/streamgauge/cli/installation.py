"""The commands ``doctor``, ``engines`` and ``engines prepare``: this installation and foreign engines."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from rich.markup import escape
from rich.table import Table

from streamgauge import engines as registry
from streamgauge.cli.exits import Exit
from streamgauge.cli.options import AsJson, completed, engine_names, seconds
from streamgauge.cli.terminal import Tell, Terminal, printing, table, telling
from streamgauge.formats.jvm import JvmError, prepared
from streamgauge.formats.jvm.collection import Clone, Collected, clones, collect
from streamgauge.model.extras import EXTRAS, missing
from streamgauge.model.extras import command as install_command
from streamgauge.model.phrases import counted
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.profiles import PROFILES, classification

GIB: Final = 1 << 30
COMFORTABLE: Final = 8 * GIB


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("doctor")(doctor)
    app.add_typer(_app, name="engines")


class Check(NamedTuple):
    """A check of the installation: kind, name, state (empty: absent), and advice on installing it.

    The installation is incomplete if a ``needed`` one is absent.
    """

    kind: str
    name: str
    found: str
    advice: str
    needed: bool = False


def doctor(as_json: AsJson = False) -> None:
    """Print what this machine has and lacks, with advice; exit code 2 if something required is absent."""
    checks = [*_machine(), *_programs(), *_extras(), *_engine_states()]
    if as_json:
        typer.echo(json.dumps([{**check._asdict(), "what": check.name} for check in checks], indent=2))
    else:
        shown = table("kind", "what", "state")
        for check in checks:
            shown.add_row(check.kind, check.name, escape(check.found) or "absent")
        printing().print(shown)
        for check in checks:
            if check.advice:
                typer.echo(f"{check.name}: {check.advice}")
    whole = all(check.found for check in checks if check.needed)
    raise typer.Exit(Exit.RIGHT if whole else Exit.BAD_INPUT)


def _machine() -> Iterator[Check]:
    """Checks of Python, and of Java and memory for Spark."""
    from streamgauge.spark.requirements import SparkStartError, heap, java, java_lack, java_version, memory

    yield Check("machine", "Python", sys.version.split()[0], "", needed=True)
    program, lack = java(), java_lack()
    message = "" if program is None or lack else f"{java_version(program) or 'of an unknown version'} ({program})"
    yield Check("machine", "Java", message, lack, needed=not missing("spark"))
    has = memory()
    advice = "" if has.total >= COMFORTABLE else "8 GiB are recommended: use small streams, or more memory"
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


def _programs() -> Iterator[Check]:
    """Check the external programs that some commands need."""
    for name, (programs, advice) in _TOOLS.items():
        program = next(filter(None, map(shutil.which, programs)), "")
        yield Check("tool", name, program, "" if program else advice)


def _extras() -> Iterator[Check]:
    """Checks of the optional packages, by extra."""
    for extra in EXTRAS:
        # A requirement of an extra is written as `pyspark>=4; extra == "spark"`; build tools differ in the quotes.
        own = (
            require for require in requires("streamgauge") or () if f"extra == '{extra}'" in require.replace('"', "'")
        )
        state = "" if missing(extra) else ", ".join(map(_installed, own))
        yield Check("extra", extra, state, "" if state else install_command(extra))


def _installed(requirement: str) -> str:
    """Name and version of the package of a requirement (PEP 508), empty if it is not installed."""
    # For `uvicorn[standard]>=0.30; extra == "servers"` the name is `uvicorn`.
    name = re.split(r"[\s;<>=!~(\[]", requirement)[0]
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def _engine_states() -> Iterator[Check]:
    """The state of every engine: ready, or the missing parts."""
    for name in registry.names():
        lack = _lack(name)
        yield Check("engine", name, "" if lack else "ready", lack)


def _lack(name: str) -> str:
    from streamgauge.spark.requirements import spark_lack

    module = registry.load(name)
    try:
        registry.command(module)
    except (registry.EngineError, subprocess.SubprocessError, OSError) as error:
        return str(error)
    return spark_lack() if registry.evaluator(module) == "spark" else ""


_app = typer.Typer(help="List the engines and the semantics; prepare foreign engines.")


@_app.callback(invoke_without_command=True)
def list_engines(
    context: typer.Context,
    semantics: Annotated[
        bool, typer.Option("--semantics", help="List the profiles of semantics, and CSRBench's table 1.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the engines, or the semantics under which they can run."""
    if context.invoked_subcommand is not None:
        return
    if as_json:
        profiles = {name: _fields(profile) for name, profile in PROFILES.items()}
        typer.echo(
            json.dumps({"engines": _engines(), "classification": classification(), "profiles": profiles}, indent=2)
        )
        return
    console = printing()
    if not semantics:
        shown = table("engine", "about")
        for name, about in _engines().items():
            shown.add_row(name, about)
        console.print(shown)
        return
    shown = table("Feature", "Operator", "C-SPARQL", "CQELS", "SPARQLstream", title="CSRBench, table 1")
    for row in classification():
        shown.add_row(*row)
    console.print(shown)
    for name, profile in PROFILES.items():
        console.print(_profile_table(name, profile))


def _engines() -> dict[str, str]:
    return {name: (registry.load(name).__doc__ or "").split("\n")[0] for name in registry.names()}


def _fields(profile: Semantics) -> dict[str, dict[str, str]]:
    """Each field of a semantics as text, with its source."""
    shown = [field.name for field in fields(profile) if field.name not in {"name", "sources"}]
    return {
        name: {"value": _show(getattr(profile, name)), "source": profile.sources.get(name, "default")} for name in shown
    }


def _show(value: object) -> str:
    if isinstance(value, frozenset):
        return " and ".join(sorted(map(str, value)))
    return "none" if value is None else str(value)


def _profile_table(name: str, profile: Semantics) -> Table:
    shown = table("field", "value", "source", title=name)
    for field, cell in _fields(profile).items():
        shown.add_row(field, cell["value"], cell["source"])
    return shown


@_app.command("prepare")
def prepare(
    name: Annotated[
        str, typer.Argument(metavar="ENGINE", autocompletion=completed(engine_names), help="csparql, cqels or yasper.")
    ],
    source: Annotated[Path, typer.Option(help="The folder of your own clone of its project.")],
    out: Annotated[Path | None, typer.Option(help="The folder for its jars (default: the user's cache).")] = None,
    limit: Annotated[str, typer.Option(metavar="DURATION", help="Maximum duration of the build by Maven: 1h.")] = "30m",
) -> None:
    """Collect and check the jars of an engine from your own clone of its project, and run it once.

    If the clone has not been built, a copy is built; the clone itself is not changed.
    """
    limit_s = seconds(limit, "--limit")
    module = registry.load(name)
    name = registry.named(name)
    kinds = _kinds(name)
    folder = out or prepared(name)
    with telling(Terminal(stderr=True), f"prepare {name}") as tell:
        collected = _collected(kinds, source, folder, tell, limit_s)
        if out is not None:
            # For the trial below: the engine's process looks for its jars there.
            os.environ[module.HOME] = str(out)  # type: ignore[attr-defined]
        tell("answering the first task")
        tasks = _tried(name)
    _say_collected(collected, folder)
    if out is not None:
        typer.echo(f"export {module.HOME}={out.resolve()}")  # type: ignore[attr-defined]
    typer.echo(f"{name} answers; all {tasks:,} tasks: streamgauge certify {name}")


def _kinds(name: str) -> tuple[Clone, ...]:
    folder = registry.folder(registry.load(name))
    kinds = () if folder is None else clones(folder)
    if not kinds:
        with_jars = [name for name in registry.names() if (at := registry.folder(registry.load(name))) and clones(at)]
        raise typer.BadParameter(f"{name} needs no jars: choose {', '.join(with_jars)}", param_hint="ENGINE")
    return kinds


def _collected(kinds: Sequence[Clone], source: Path, folder: Path, tell: Tell, limit_s: float) -> Collected:
    try:
        return collect(kinds, source, folder, tell, limit_s)
    except JvmError as error:
        raise registry.EngineUnavailableError(str(error)) from error


def _tried(name: str) -> int:
    """The number of the engine's tasks, after it has answered the first that it does not refuse.

    Ends with exit code 3 if that task shows a fault of the set-up.
    """
    from streamgauge.cli.spark import spark
    from streamgauge.suites.conformance.cases import asked, load
    from streamgauge.suites.conformance.runner import SetUpError, certify, engine

    subject = engine(name)
    tasks = tuple(asked(load(), subject.profiles, subject.scale))
    first = next(task for task in tasks if subject.refuse(task.case.query, task.semantics) is None)
    try:
        for _ in certify(subject, (first,), 1, lambda: spark(None)):
            pass
    except SetUpError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        raise typer.Exit(Exit.ENGINE_FAILURE) from error
    return len(tasks)


def _say_collected(collected: Collected, folder: Path) -> None:
    kind = collected.clone
    typer.echo(f"{counted(len(collected.names), 'jar')} of {kind.project} are in {folder}, all readable")
    if collected.commit and not collected.tested:
        typer.echo(f"the clone is at {collected.commit[:12]}; tested is {kind.tested} ({kind.commit[:12]})")
