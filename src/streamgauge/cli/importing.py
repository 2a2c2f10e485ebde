"""The command ``import``: recordings of other tools become run folders."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.options import (
    NO_OPTIONS,
    AsJson,
    OwnData,
    Parameters,
    known_master,
    milliseconds,
    naming,
    one_of,
    own_data,
    own_reading,
    values,
)
from streamgauge.cli.spark import spark
from streamgauge.cli.terminal import Terminal, telling
from streamgauge.formats.files import read_text
from streamgauge.formats.places import Place, place
from streamgauge.formats.streams import Reading
from streamgauge.harness.importing import AnswerTimes, ImportRequest, import_runs, write_here
from streamgauge.semantics.profiles import profile
from streamgauge.sources.named import Course, NamedSource, named_source


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("import")(import_)


@own_data
def import_(
    sources: Annotated[list[Path], typer.Argument(help="Files of answers, or YABench test folders.")],
    out: Annotated[Path, typer.Option(help="The run folder to write; for several runs, their parent folder.")],
    query: Annotated[Path | None, typer.Option(help="The continuous query of the run.")] = None,
    stream: Annotated[str | None, typer.Option(help="The stream of the run: a file or folder, or IRI=FILE.")] = None,
    own: OwnData = NO_OPTIONS,
    semantics: Annotated[str | None, typer.Option(help="The engine's semantics: csparql, cqels, ...")] = None,
    format: Annotated[str | None, typer.Option(help="The sources' format, if it cannot be recognised.")] = None,  # noqa: A002
    engine: Annotated[str | None, typer.Option(help="The engine's name.")] = None,
    static: Annotated[str | None, typer.Option(metavar="FILE", help="Static data: any RDF file.")] = None,
    samples: Annotated[Path | None, typer.Option(help="A P_ file of YABench: memory, CPU, threads.")] = None,
    times: Annotated[
        str | None, one_of(lambda: AnswerTimes, help="What the times are: count, received, instant.")
    ] = None,
    advance_to: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The end of the stream's time: 30s.")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Only this test of a YABench folder.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where to write the streams, if not to OUT: a folder, hdfs:// or s3a://."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            help="The Spark master whose tasks read the stream: JSON lines or YABench's.", callback=known_master
        ),
    ] = None,
    define: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Convert recorded answers to run folders: those of CSRBench and YABench, SPARQL results with a time."""
    text = None if query is None else read_text(query)
    if samples is not None and not samples.is_file():
        raise typer.BadParameter(f"{samples}: there is no such file", param_hint="--samples")
    request = ImportRequest(
        query=text,
        reading=own_reading(text or "", None, own),
        stream=None if stream is None else named_source(stream),
        semantics=None if semantics is None else profile(semantics),
        engine=engine,
        samples=samples,
        static=static,
        advance_to=milliseconds(advance_to, "--advance-to"),
        times=None if times is None else AnswerTimes(times),
        test=test,
        values=values(define),
    )
    console = Terminal(stderr=True)
    written = []
    with naming(query), telling(console, "import"):
        write_stream = write_here if master is None else partial(_on_spark, master)
        for folder, imported in import_runs(
            sources, request, out, format, write_stream, None if at is None else place(at)
        ):
            written.append({"run": str(folder), "source": imported.name, "notes": list(imported.notes)})
            console.print(f"{imported.name}: {folder}", *imported.notes, sep="\n  ")
    typer.echo(json.dumps(written, indent=2) if as_json else f"judge with: streamgauge check {written[0]['run']}")


@contextmanager
def _on_spark(
    master: str, source: NamedSource, streams: Sequence[str], reading: Reading, folder: Place
) -> Iterator[Course]:
    """Write a stream table by tasks of Spark."""
    session = spark(master)
    from streamgauge.spark.hadoop_tables import new_table
    from streamgauge.spark.recorded_streams import write_recorded

    with new_table(session, folder):
        yield write_recorded(session, source, streams, reading, folder)
