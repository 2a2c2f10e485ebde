"""The command ``certify``: run the conformance suite on an engine."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from streamgauge.cli.exits import Exit
from streamgauge.cli.options import AsJson, completed, engine_names, one_named, semantics_names
from streamgauge.cli.spark import spark
from streamgauge.cli.terminal import Terminal, telling
from streamgauge.model.mistake import MistakeError
from streamgauge.report.certified import certified_json, certified_lines, outcome_line
from streamgauge.semantics.profiles import profile as profile_of
from streamgauge.suites.conformance.cases import OWN, ConformanceCase, ConformanceTask, asked, load
from streamgauge.suites.conformance.certificate import (
    Certificate,
    Deviation,
    certificate,
    read_deviations,
    shown,
    updated_deviations,
    write_deviations,
)
from streamgauge.suites.conformance.runner import (
    ConformanceOutcome,
    SetUpError,
    Subject,
    TaskResult,
    certify,
    contradicted,
    engine,
    findings,
    program_subject,
)
from streamgauge.suites.conformance.shared import shared_values

_NO_LIST: Final = "--update needs a list to write: name it by --deviations FILE"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("certify")(certify_command)


def certify_command(
    name: Annotated[
        str | None, typer.Argument(metavar="ENGINE", autocompletion=completed(engine_names), help="An engine's name.")
    ] = None,
    program: Annotated[
        str | None, typer.Option(help="Any program on the pipe instead of an engine: 'python3 mine.py'.")
    ] = None,
    case: Annotated[str | None, typer.Option(help="Only cases with this text in their name, or of this theme.")] = None,
    profile: Annotated[
        str | None,
        one_named(
            lambda: [*semantics_names(), OWN],
            "--semantics",
            help="Only under this profile, or `own` for the cases' own.",
        ),
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--deviations", help="The list of deviations (default: the engine's own).")
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Write the current deviations to the list.")] = False,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Number of programs that run in parallel.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Also write a page, with EARL (.ttl) and a badge (.svg).")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Store a run folder for each task, for check and report.")
    ] = None,
    workbench: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The workbench (streamgauge ui) in which the page's cells open cases."),
    ] = "../",
    as_json: AsJson = False,
) -> None:
    """Run the conformance suite on an engine and print its certificate."""
    if update and name is None and listed is None:
        raise typer.BadParameter(_NO_LIST)
    if listed is not None and not update and not listed.exists():
        raise MistakeError(f"--deviations {listed}: there is no such file: write one by --update")
    # Options are refused before hours of tasks, not after them.
    write_page = _page_writer(out, workbench)
    subject = _subject(name, program, listed)
    if update and subject.deviations is None:
        raise typer.BadParameter(_NO_LIST)
    console = Terminal(stderr=True)
    tasks = _selected_tasks(subject, case, profile)
    try:
        known = read_deviations(subject.deviations)
        outcomes = _outcomes(subject, tasks, jobs, known, console, runs, quiet=as_json)
    except SetUpError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        raise typer.Exit(Exit.ENGINE_FAILURE) from error
    if update and subject.deviations is not None:
        known = _updated(known, outcomes, case is None and profile is None, console)
        write_deviations(subject.deviations, known)
    certificate_ = _certified(subject, outcomes, known, case is None and profile is None, console)
    _print(certificate_, as_json=as_json)
    typer.echo(write_page(certificate_), nl=False, err=as_json)
    raise typer.Exit(Exit.RIGHT if certificate_.good else Exit.WRONG)


def _certified(
    subject: Subject,
    outcomes: Sequence[ConformanceOutcome],
    known: Sequence[Deviation],
    every: bool,
    console: Console,
) -> Certificate:
    """Compare the outcomes with the list, with diagnoses and values that explain several failing tasks."""
    with telling(console, "certify") as tell:

        def explained(outcome: ConformanceOutcome) -> tuple[str, ...]:
            tell(f"diagnosing {outcome.name}")
            return findings(outcome)

        result = certificate(subject.name, outcomes, known, every, explained)
        tell("searching a value of the semantics that explains several tasks")
        return replace(result, shared=shared_values(result.failing, result.passed))


def _print(certificate: Certificate, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(certified_json(certificate), indent=2))
    else:
        Terminal().print(certified_lines(certificate), soft_wrap=True)


def _page_writer(out: Path | None, workbench: str) -> Callable[[Certificate], str]:
    """A function that writes the page and returns a line about it; AddressError before any task runs."""
    if out is None:
        return lambda _finding: ""
    from streamgauge.report.implementation_report import (
        address,
        places,
        write,
    )  # the plotting libraries take a second to load

    address(workbench)
    places(out)

    def written(certificate: Certificate) -> str:
        return f"certificate: {', '.join(map(str, write(certificate, out, datetime.now(UTC), workbench)))}\n"

    return written


def _subject(name: str | None, program: str | None, listed: Path | None) -> Subject:
    """The engine or the program; BadParameter unless exactly one is named."""
    if (name is None) == (program is None):
        raise typer.BadParameter("name an engine (streamgauge engines lists them), or --program 'COMMAND', not both")
    subject = program_subject(program or "", "--program") if name is None else engine(name)
    return subject if listed is None else replace(subject, deviations=listed)


def _selected_tasks(subject: Subject, case: str | None, profile: str | None) -> tuple[ConformanceTask, ...]:
    """The selected tasks; BadParameter if there is none."""
    if profile not in (None, OWN):
        profile_of(profile)
    cases = [entry for entry in load() if case is None or _named(entry, case)]
    tasks = asked(cases, subject.profiles, subject.scale)
    wanted = tuple(task for task in tasks if profile in (None, task.profile))
    if not wanted:
        raise typer.BadParameter(f"no case has {case!r} in its name, or none is defined under {profile or OWN}")
    return wanted


def _named(case: ConformanceCase, text: str) -> bool:
    return text.lower() in case.name.lower() or text == case.theme


def _outcomes(
    subject: Subject,
    tasks: Sequence[ConformanceTask],
    jobs: int,
    listed: Sequence[Deviation],
    console: Console,
    runs: Path | None,
    *,
    quiet: bool,
) -> tuple[ConformanceOutcome, ...]:
    """The outcome of every task, printed when it ends unless ``quiet``, and stored in ``runs`` if given."""
    by_task = {case: deviation.name for deviation in listed for case in deviation.cases}
    results = []
    with telling(console, f"certify {subject.name}") as tell:
        for number, outcome in enumerate(certify(subject, tasks, jobs, lambda: spark(None)), 1):
            results.append(outcome)
            if runs is not None:
                outcome.keep(runs)
            if not quiet:
                typer.echo(outcome_line(outcome, by_task.get(outcome.name)))
            tell(f"{number:,} of {len(tasks):,} tasks", number / len(tasks))
    return tuple(results)


def _updated(
    listed: Sequence[Deviation], outcomes: Sequence[ConformanceOutcome], every: bool, console: Console
) -> tuple[Deviation, ...]:
    """The new list, with a diagnosis of every deviating task; tasks that did not run stay unless ``every``."""
    wrong = [outcome for outcome in outcomes if outcome.kind is TaskResult.WRONG]
    explained = {}
    with telling(console, "certify") as tell:
        for number, outcome in enumerate(wrong, 1):
            tell(f"diagnosing {number:,} of {len(wrong):,} deviating tasks")
            explained[outcome.name] = findings(outcome)
        # Only findings that the list does not have are worth the search for tasks that contradict them.
        new = {name: findings for name, findings in explained.items() if not shown(listed, findings)}
        possible = frozenset(finding for findings in new.values() for finding in findings)
        tell("searching tasks that contradict new findings")
        denied = contradicted(outcomes, possible)
    # Of a selection of tasks nothing follows about the others.
    names = {case for entry in listed for case in entry.cases} if every else set()
    return updated_deviations(listed, explained, names | {outcome.name for outcome in outcomes}, denied)
