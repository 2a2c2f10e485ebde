"""SEP-BM's commands: generate a configuration, run it on a system, analyse it, characterise its channels."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from streamgauge.cli.exits import Exit
from streamgauge.cli.options import AsJson, Master, known_master
from streamgauge.cli.spark import spark, tell_unused
from streamgauge.cli.terminal import Tell, Terminal, printing, table, telling
from streamgauge.formats.streams import read_triples
from streamgauge.model.phrases import counted

Of = Annotated[Path, typer.Option("--of", help="The configuration that was run.")]

_app = typer.Typer(help="SEP-BM: measure semantic publish/subscribe.", no_args_is_help=True)


class Choice(StrEnum):
    """Which resources of an answer are published."""

    FIRST = "first"
    ANY = "any"


class Way(StrEnum):
    """How due answers are computed."""

    AT_ONCE = "at-once"
    SEQUENTIAL = "sequential"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.add_typer(_app, name="sepbm")


@_app.command("generate")
def generate(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    universities: Annotated[int, typer.Option(min=1, help="Size of the university data, extended.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same configuration.")] = 0,
    names: Annotated[str, typer.Option(help="Names of persons and universities: own or census.")] = "own",
    publications: Annotated[int, typer.Option(min=1, help="Length of the sequence.")] = 300,
    rule: Annotated[
        Choice, typer.Option(case_sensitive=False, help="Publish resources of the first variable, or of any.")
    ] = Choice.FIRST,
    deletes: Annotated[float, typer.Option(help="Share of the publications that delete.")] = 0.0,
    channels: Annotated[
        int, typer.Option(min=0, help="Number of channels, with varied constants; 0: the queries.")
    ] = 0,
    reference: Annotated[
        Way, typer.Option(case_sensitive=False, help="How due answers are computed: all at once, or one by one.")
    ] = Way.AT_ONCE,
    ontology: Annotated[Path | None, typer.Option(help="The ontology (default: the workload's own).")] = None,
    data: Annotated[Path | None, typer.Option(help="Other data than universities: an RDF file.")] = None,
    queries: Annotated[Path | None, typer.Option(help="Queries on --data: a folder of *.rq, one SELECT each.")] = None,
    master: Annotated[
        str | None,
        typer.Option(help="The Spark master, used above 300,000 statements.", callback=known_master),
    ] = None,
) -> None:
    """Generate a configuration: base load, ontology, channels, publications, and the answers due."""
    # Imported by the command that needs it: help and completion load this file too.
    from streamgauge.suites.sepbm import generator
    from streamgauge.suites.sepbm.local import LOCAL_STATEMENTS
    from streamgauge.suites.sepbm.selection import SelectionRule
    from streamgauge.workloads import university

    if (data is None) != (queries is None):
        raise typer.BadParameter("other data need their own queries: name both --data and --queries")
    axioms = tuple(read_triples(ontology or university.ONTOLOGY))
    way = generator.Reference.AT_ONCE if reference is Way.AT_ONCE else generator.Reference.SEQUENTIAL
    request = generator.ConfigurationRequest(publications, seed, SelectionRule(rule.value), deletes, channels, way)
    with _telling() as tell:
        if data is not None and queries is not None:
            world = generator.own_data(data, axioms, queries)
            # Own data are counted after reading: their size is not known from the options, as with universities.
            if len(world.facts) > LOCAL_STATEMENTS:
                tell("Spark starts")
                world = generator.on_spark(spark(master), world)
        else:
            here = generator.small(universities)
            tell("universities" if here else "Spark starts")
            world = generator.university(None if here else spark(master), axioms, universities, seed, names)
        stored = generator.generate(world, request, folder, tell)
    tell_unused(master)
    typer.echo(f"{folder}: {counted(publications, 'publication')}, {counted(len(stored.channels), 'channel')}")


@_app.command("systems")
def systems(as_json: AsJson = False) -> None:
    """List the systems that can be measured, and their options."""
    from streamgauge.suites.sepbm.adapters import adapters, options_of

    listing = {name: {"about": about, "options": dict(options_of(name))} for name, about in adapters().items()}
    if as_json:
        typer.echo(json.dumps(listing, indent=2))
        return
    shown = table("system", "option", "meaning")
    for name, about in adapters().items():
        shown.add_row(f"[bold]{escape(name)}[/bold]", "", escape(about))
        for option, meaning in options_of(name).items():
            shown.add_row("", escape(option), escape(meaning))
    printing().print(shown)


def _options(texts: list[str] | None) -> dict[str, str]:
    options: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r}: an option is NAME=VALUE", param_hint="--option")
        options[name] = value
    return options


@_app.command("run")
def run(
    configuration: Annotated[Path, typer.Argument(help="A configuration's folder.")],
    out: Annotated[Path, typer.Option(help="The folder of the recording.")],
    system: Annotated[
        str, typer.Option(help="The system to measure; `sepbm systems` lists them.")
    ] = "broker_inprocess",
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option of the system: strategy=graphss.")
    ] = None,
    channel: Annotated[list[str] | None, typer.Option(help="Only these channels; slow: the ten slow ones.")] = None,
    publishers: Annotated[int, typer.Option(min=1, help="Number of concurrent publishers.")] = 1,
    rate: Annotated[
        float | None, typer.Option(help="Publications per second (default: each waits for the previous).")
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only this number of publications.")] = None,
    subscribers: Annotated[int, typer.Option(min=1, help="Subscribers of each channel.")] = 1,
    seconds: Annotated[float, typer.Option(help="Maximum duration of the run (s).")] = 3600.0,
) -> None:
    """Run a configuration on a system and record it."""
    from streamgauge.suites.sepbm import read, recordings
    from streamgauge.suites.sepbm.runner import RunPlan
    from streamgauge.suites.sepbm.runner import run as measured

    stored = read(configuration)
    names = None if channel is None else tuple(channel)
    try:
        plan = RunPlan(names, publishers, rate, first, subscribers, seconds)
        # A misspelt channel is refused before the system starts and loads the data.
        plan.chosen(stored)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with _telling() as tell:
        recording = measured(
            stored, system, _options(option), plan, progress=lambda what, done, of: tell(f"{what}, {done} of {of}")
        )
        recordings.write(out, recording, stored)
    if recording.failure is not None:
        typer.echo(f"streamgauge: {recording.failure}", err=True)
        raise typer.Exit(Exit.WRONG)
    published, heard = counted(len(recording.published), "publication"), counted(len(recording.heard), "notification")
    typer.echo(f"{out}: {published}, {heard} heard")


@_app.command("analyse")
def analyse(
    runs: Annotated[list[Path], typer.Argument(help="Folders of recordings.")],
    of: Of,
    judge: Annotated[bool, typer.Option("--judge", help="Also judge every channel by the common oracle.")] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Also write a page.")] = None,
    master: Master = None,
) -> None:
    """Print notification times, throughput, missed rows and verdicts; exit code 1 unless all are right."""
    from streamgauge.report.sepbm import Compared, by_name, data, shown, write
    from streamgauge.suites.sepbm import read
    from streamgauge.suites.sepbm.recordings import JudgedRecording, JudgingMeans, outcome
    from streamgauge.suites.sepbm.recordings import judge as judged

    stored = read(of)
    recordings: dict[Path, JudgedRecording] = {}
    with _telling() as tell:
        judging = JudgingMeans(lambda: spark(master), lambda what, done, count: tell(f"{what} ({done} of {count})"))
        for folder in _distinct(runs):
            tell(f"reading {folder}")
            if judge:
                judged(folder, stored, judging)
            recordings[folder] = outcome(folder, stored, judging)
    tell_unused(master)
    compared = Compared(f"SEP-BM: {stored.folder.resolve().name}", by_name(recordings))
    if out is not None:
        write(compared, out)
    if as_json:
        typer.echo(json.dumps(data(compared), indent=2))
    else:
        for part in shown(compared):
            printing().print(part)
    raise typer.Exit(Exit.RIGHT if all(recording.right for recording in recordings.values()) else Exit.WRONG)


@_app.command("characterise")
def characterise(
    configuration: Annotated[Path, typer.Argument(help="A configuration's folder.")],
    run_folders: Annotated[
        list[Path] | None, typer.Option("--run", help="Rank by notification times of these recordings.")
    ] = None,
    as_json: AsJson = False,
    master: Master = None,
) -> None:
    """Print the pattern of each query and P1 to P10 of the publications, ranked by notification time."""
    from streamgauge.report.sections import rich_table
    from streamgauge.report.sepbm import by_name, characters, mean_times, ranks
    from streamgauge.suites.sepbm import read
    from streamgauge.suites.sepbm.characteristics import characterise as described
    from streamgauge.suites.sepbm.characteristics import ranked
    from streamgauge.suites.sepbm.recordings import JudgingMeans, outcome

    stored, folders = read(configuration), _distinct(run_folders or ())
    with _telling() as tell:
        tell("counting")
        characteristics = described(spark(master), stored)
        judging = JudgingMeans(lambda: spark(master))
        ran = {folder: outcome(folder, stored, judging) for folder in folders}
        times = {name: mean_times(recording) for name, recording in by_name(ran).items()}
    order = ranked(characteristics, times)
    if as_json:
        rows = {
            "channels": {channel.channel: channel.values for channel in characteristics},
            "ranked": [channel._asdict() for channel in order],
        }
        typer.echo(json.dumps(rows, indent=2))
        return
    for page_table in (characters(characteristics), ranks(order)):
        printing().print(rich_table(page_table, ""))


def _distinct(folders: Sequence[Path]) -> Sequence[Path]:
    """These folders; BadParameter for one that is named twice, as it would count twice."""
    places = [folder.resolve() for folder in folders]
    twice = next((folder for number, folder in enumerate(folders) if places[number] in places[:number]), None)
    if twice is not None:
        raise typer.BadParameter(f"{twice} is named twice: name each recording once")
    return folders


@contextmanager
def _telling() -> Iterator[Tell]:
    with telling(Terminal(stderr=True), "sepbm") as tell:
        yield tell
