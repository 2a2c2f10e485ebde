"""The command ``stream``: a continuous query on Spark's Structured Streaming, resumed from its checkpoint."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from streamgauge.cli.configuration import long_running
from streamgauge.cli.options import (
    Master,
    Parameters,
    checked_duration,
    instant,
    milliseconds,
    naming,
    one_named,
    one_of,
    semantics_names,
    tell_notes,
    values,
)
from streamgauge.cli.spark import spark
from streamgauge.cli.terminal import Terminal
from streamgauge.formats.files import read_text
from streamgauge.model.phrases import counted
from streamgauge.model.semantics import Counting, Origin, Semantics
from streamgauge.oracle.expected.reports import beside
from streamgauge.query import detect, fill, parse
from streamgauge.semantics.profiles import profile
from streamgauge.workloads.parameters import duration

if TYPE_CHECKING:
    from streamgauge.engines.spark.micro_batches import BatchDone
    from streamgauge.engines.spark.pipeline import Job
    from streamgauge.engines.spark.real_time import Checkpointed

LATENCIES: Final = ("micro-batches", "real-time")
EVERY_REAL_TIME: Final = 300_000
"""Default time between two checkpoints in real-time mode, ms."""


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("stream")(stream)


@long_running
def stream(
    file: Annotated[Path, typer.Argument(metavar="QUERY", help="The query's file.")],
    source: Annotated[str, typer.Option("--from", help="A folder of stream tables, a file, or a URL.")],
    sink: Annotated[str, typer.Option("--to", help="A folder, - (console), or a URL: kafka://host:port/topic.")],
    checkpoint: Annotated[Path, typer.Option(help="The folder for the job's state.")],
    master: Master = None,
    semantics: Annotated[
        str | None, one_named(semantics_names, help="A profile (default: rspql, in real-time mode updates).")
    ] = None,
    latency: Annotated[
        str, one_of(lambda: LATENCIES, "--latency", help="micro-batches, or real-time if the query permits it.")
    ] = "micro-batches",
    t0: Annotated[
        str | None,
        typer.Option(help="Start of the first window: ms, 30s, or a date (default: the stream's start; real-time: 0)."),
    ] = None,
    lateness: Annotated[
        str, typer.Option(metavar="DURATION", callback=checked_duration, help="Maximum lateness of elements: 2s.")
    ] = "0s",
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Time between two batches (default: a tenth of the slide; real-time: 5m)."
        ),
    ] = None,
    files: Annotated[int, typer.Option(min=1, help="Maximum number of files per batch.")] = 5,
    messages: Annotated[int, typer.Option(min=1, help="Maximum number of Kafka messages per batch.")] = 200_000,
    static: Annotated[str | None, typer.Option(metavar="FILE", help="Static data: an RDF file.")] = None,
    drain: Annotated[bool, typer.Option("--drain", help="End when all available input is answered.")] = False,
    define: Parameters = None,
) -> None:
    """Answer a continuous query on Spark, each answer exactly once, even after crashes."""
    from streamgauge.engines.spark.pipeline import Job, check, interval, run
    from streamgauge.spark.requirements import classic_only

    classic_only(master, "`stream`")
    console = Terminal(stderr=True, highlight=False)
    with naming(file):
        text = fill(read_text(file), values(define))
        query = beside(parse(text), static)
    tell_notes(query)
    kept = checkpoint.absolute()  # the JVM may have been started in another folder
    every = milliseconds(batch, "--batch")
    chosen = _semantics(semantics or "rspql", instant(t0), duration(lateness))
    job = Job(query, text, detect(text), chosen, source, sink, kept, every or interval(query), files, drain, messages)
    job = replace(job, moves=t0 is None)
    if latency == "real-time":
        wished = replace(job, semantics=_updates(semantics or "updates", instant(t0)), every=every or EVERY_REAL_TIME)
        job = _chosen(job, wished, master, console)
        if job.latency == latency:
            return
    check(job)
    state = run(spark(master), job, lambda done: console.print(batch_line(done)))
    console.print(_summary(job, state.sent, state.rows, state.late))


def _chosen(job: Job, wished: Job, master: str | None, console: Console) -> Job:
    """Run the job in real-time mode, or return the one for micro-batches; the choice is printed."""
    from streamgauge.engines.spark import real_time

    choice = real_time.choose(wished)
    console.print(f"{choice.latency}: {choice.reason}")
    if choice.refused is not None:
        return replace(job, latency=choice.latency, reason=choice.reason)
    wished = replace(wished, latency=choice.latency, reason=choice.reason)
    # All tasks of the query run for the whole time, each on a core (thread) of its own.
    place = master or f"local[{max(os.cpu_count() or 1, choice.tasks)}]"
    count = real_time.run(
        spark(place, tuple(choice.settings.items())), wished, lambda done: console.print(checkpoint_line(done))
    )
    console.print(f"{counted(count, 'message')} checkpointed, answered to {wished.sink}")
    return wished


def checkpoint_line(done: Checkpointed) -> str:
    """The result of a batch in real-time mode, in one line."""
    late = (
        f", {counted(done.late, 'solution')} of windows that were closed already: did time go back?"
        if done.late
        else ""
    )
    return f"checkpoint {done.batch}: {counted(done.messages, 'message')}{late}"


def _updates(name: str, t0: int | None) -> Semantics:
    """The profile, with the first window at ``t0`` if given."""
    semantics = profile(name)
    return semantics if t0 is None else replace(semantics, origin=Origin.FIXED, t0=t0)


def _summary(job: Job, sent: int, rows: int, late: int) -> str:
    lost = f"; {late:,} late elements dropped" if late else ""
    return f"{counted(sent, 'report')} on {counted(rows, 'triple')} in {job.sink}{lost}"


def _semantics(name: str, t0: int | None, lateness: int) -> Semantics:
    """The profile with the lateness bound, and the first window at ``t0`` if given."""
    semantics = profile(name)
    if semantics.content is Counting.UPDATES:
        return _updates(name, t0)
    if t0 is not None:
        return replace(semantics, lateness=lateness, origin=Origin.FIXED, t0=t0)
    return replace(semantics, lateness=lateness)


def batch_line(done: BatchDone) -> str:
    """The result of a batch, in one line."""
    before, after = done.before, done.after
    late = after.late - before.late
    triples, reports = counted(after.rows - before.rows, "triple"), counted(len(done.instants), "report")
    what = f"batch {after.batch}: {triples}, time {after.passed} ms, {reports}"
    return f"{what}, {counted(late, 'element')} late" if late else what
