"""The command ``query``: a continuous query on streams, with answers printed as they come."""

import sys
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from streamgauge.cli.answers import Shown, encoder, keyed, prefixes
from streamgauge.cli.configuration import long_running
from streamgauge.cli.exits import Exit
from streamgauge.cli.options import (
    NO_OPTIONS,
    WINDOWS,
    OwnData,
    Parameters,
    SparqlOption,
    checked_duration,
    engine_names,
    filled,
    horizon_time,
    instant,
    naming,
    one_named,
    one_of,
    own_data,
    own_reading,
    semantics_names,
    tell_notes,
)
from streamgauge.cli.streams import write
from streamgauge.cli.terminal import Terminal, close_output
from streamgauge.engines import EngineUnavailableError
from streamgauge.formats.pipe import PipeError
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term
from streamgauge.query import announced, detect
from streamgauge.query.traversal import constant_predicates
from streamgauge.semantics.growth import waits_for_time
from streamgauge.semantics.profiles import PROFILES
from streamgauge.servers.sinks import open_sink
from streamgauge.sources import Delivery, Sink, SourceError, message_form
from streamgauge.sources.contract import LEAVE_S, Marked, Settling, parse_address
from streamgauge.watching import Options, Watch, WatchError, is_durable, watch
from streamgauge.watching.watches import LOOKED_AT, End

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C; ``Termination`` replaces it by 143 after SIGTERM."""

FORMATS = ("table", "jsonl", "nquads", "csv")
Tell = Callable[[Answer], None]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("query")(query)


def _end(advance_to: str | None) -> End:
    """How far time advances at the end of the streams; by default not at all (docs/semantics.md)."""
    if advance_to == WINDOWS:
        return "windows"
    time = horizon_time(advance_to)
    return "stream" if time is None else time


@long_running
@own_data
def query(
    file: Annotated[str, typer.Argument(metavar="QUERY", help="The query's file; - for standard input.")],
    stream: Annotated[list[str], typer.Option(help="A file, URL or - (standard input), or IRI=SOURCE.")],
    own: OwnData = NO_OPTIONS,
    static: Annotated[str | None, typer.Option(metavar="FILE", help="Static data: an RDF file.")] = None,
    semantics: Annotated[
        str | None, one_named(semantics_names, help="A profile (default: that of the dialect).")
    ] = None,
    engine: Annotated[str, one_named(engine_names, help="The engine that answers.")] = "live",
    form: Annotated[str | None, one_of(lambda: FORMATS, "--format", help="table, jsonl, nquads or csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    to: Annotated[str | None, typer.Option(help="A file or URL to send the answers to.")] = None,
    dates: Annotated[bool, typer.Option("--dates", help="Write instants as dates (UTC), also in csv.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this number of answers.")] = None,
    lateness: Annotated[
        str | None,
        typer.Option(metavar="DURATION", callback=checked_duration, help="Maximum lateness of elements: 2s."),
    ] = None,
    t0: Annotated[str | None, typer.Option(help="Start of the first window: ms, 30s, or a date.")] = None,
    advance_to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Advance time at the end to 30s, to a date, or until all non-empty windows have closed (windows). "
            "Default: the last element.",
        ),
    ] = None,
    wall: Annotated[bool, typer.Option("--wall", help="Let time pass by the wall clock without elements.")] = False,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Store windows, positions and numbers, so that another run can resume."),
    ] = None,
    shards: Annotated[
        int, typer.Option(min=1, max=64, help="Number of processes over which `live` distributes the query.")
    ] = 1,
    version: SparqlOption = None,
    define: Parameters = None,
) -> None:
    """Answer a continuous query on streams; print the answers as they come."""
    text = announced(filled(file, define or ()), version)
    options: Options = {"semantics": semantics, "static": static, "engine": engine, "lateness": lateness}
    options["t0"], options["shards"], options["state"] = instant(t0), shards, state
    options["reading"] = own_reading(text, None, own, checked=False)
    options["advance"] = "wall" if wall else None
    options["end"] = _end(advance_to)
    chosen = _form(form, to, "jsonl" if as_json or not sys.stdout.isatty() else "table")
    with naming(file), _advised(text):
        detect(text)
        with watch(text, *stream, **options) as answers, _teller(answers, text, chosen, to, dates) as tell:
            tell_notes(answers.asked[0].query)
            waits = waits_for_time(answers.asked[0].query, answers.asked[0].semantics)
            if waits and not wall and not all(Path(text.rpartition("=")[2]).exists() for text in stream):
                typer.echo(f"streamgauge: note: {waits}", err=True)
            if answers.sharding:
                typer.echo(f"streamgauge: {answers.sharding}", err=True)
            raise typer.Exit(_print(answers, tell, limit))


def _form(form: str | None, to: str | None, printed: str) -> str:
    """The format of answers: a sink's own, else as ``printed``; WatchError if the sink needs another."""
    if to is None:
        return form or printed
    taken = message_form(to)
    if form is not None and taken not in ("jsonl", form):
        raise WatchError(f"--format {form}: the sink takes {taken}")
    return form or taken


@contextmanager
def _advised(text: str) -> Iterator[None]:
    """Add the alternative to the error of an engine that is not installed."""
    try:
        yield
    except EngineUnavailableError as error:
        named = detect(text)
        semantics = named if named in PROFILES else "rspql"
        raise MistakeError(
            f"{error}. Without it, use `--engine live --semantics {semantics}`; `streamgauge translate` "
            "translates the query for another engine"
        ) from error


def _print(answers: Watch[Answer], tell: Tell, limit: int | None) -> Exit | int:
    """Pass on every answer until the end, the limit or Ctrl-C; then print a summary."""
    code: Exit | int = Exit.RIGHT
    count = rows = 0
    try:
        while count != limit and (batch := answers.gather(None if limit is None else limit - count)):
            for answer in batch:
                tell(answer)
                count += 1
                rows += len(answer.added) + len(answer.removed)
        answers.settle()
    except KeyboardInterrupt:
        code = INTERRUPTED
    # As by ``| head``: the reader has enough, which is no error.
    except BrokenPipeError:
        close_output()
    except PipeError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        code = Exit.ENGINE_FAILURE
    _conclude(answers, count)
    # The most frequent reason for no answer is a misspelt property or a wrong prefix.
    if not rows and (note := unasked(answers.asked[0].query, answers.predicates, answers.elements)):
        typer.echo(f"streamgauge: note: {note}", err=True)
    return code


def unasked(query: ContinuousQuery, predicates: AbstractSet[Term], elements: int) -> str:
    """A property of the query that no element has, as a sentence; empty if there is none."""
    known = predicates | {predicate for _, predicate, _ in query.static}
    absent = [predicate for predicate in constant_predicates(query.form) if predicate not in known]
    if not absent or not predicates:
        return ""
    among = "element" if elements <= LOOKED_AT else f"of the first {LOOKED_AT:,} elements"
    there = sorted(predicates)
    more = f" and {counted(len(there) - 5, 'other')}" if len(there) > 5 else ""
    return f"no {among} has the property {absent[0]} that the query asks for; there are {', '.join(there[:5])}{more}"


def _conclude(answers: Watch[Answer], count: int) -> None:
    for reason in answers.refused:
        typer.echo(f"streamgauge: skipped: {reason}", err=True)
    late = f", {answers.late} of them late and dropped" if answers.late else ""
    late += f", {answers.uncounted} of them before t0 and not counted" if answers.uncounted else ""
    horizon = "" if answers.horizon is None else f"; time reached {answers.horizon:,} ms"
    if awaited := answers.awaited:
        horizon += f": {awaited}, and --advance-to windows closes it"
    typer.echo(f"{counted(answers.elements, 'element')}{late}; {counted(count, 'answer')}{horizon}", err=True)


@contextmanager
def _teller(answers: Watch[Answer], text: str, form: str, to: str | None, dates: bool) -> Iterator[Tell]:
    """A function that shows, writes or sends an answer; WatchError if the format does not fit."""
    understood = answers.asked[0]
    if form == "table" and to is None:
        yield Shown(Terminal(highlight=False), understood.query, understood.semantics, prefixes(text), dates)
        return
    try:
        encode = encoder(form, understood.query, dates)
    except ValueError as error:
        raise WatchError(str(error)) from error
    keyed_bytes = keyed(encode, answers, lines=form == "jsonl")
    if to is None:
        yield lambda answer: write(keyed_bytes(answer)[1])
        return
    sink = open_sink(to)
    if is_durable(answers):
        if isinstance(sink, Settling):
            sink.hold()
        mark = answers.marks(partial(_arrived, sink))
        # A sink that has marks skips what an earlier process has sent; others receive it again, with the same key.
        if isinstance(sink, Marked):
            sink.restore(mark)
    interrupted = False
    try:
        yield lambda answer: _send(sink, *keyed_bytes(answer))
    except (typer.Exit, KeyboardInterrupt) as ended:
        interrupted = isinstance(ended, KeyboardInterrupt) or ended.exit_code == INTERRUPTED
        raise
    finally:
        delivery = sink.close(LEAVE_S if interrupted else None)
        if delivery.undelivered:
            _report(to, delivery, again=is_durable(answers) and delivery.missing > 0)
            if not interrupted:
                raise typer.Exit(Exit.ENGINE_FAILURE)


def _arrived(sink: Sink) -> Any:
    """The sink's mark once everything sent has arrived or become a dead letter; SourceError if that fails."""
    if isinstance(sink, Settling) and (delivery := sink.settle()).missing:
        raise SourceError(f"{counted(delivery.missing, 'answer')} not delivered: {delivery.why}")
    return sink.mark() if isinstance(sink, Marked) else None


def _send(sink: Sink, key: str | None, lines: bytes) -> None:
    """Send one message; duplicates have the same key."""
    if lines:
        sink.send(lines, key)


def _report(to: str, delivery: Delivery, *, again: bool) -> None:
    """Print what a sink did not deliver, and whether the next run will."""
    lost, later = counted(delivery.undelivered, "answer"), "; the next run with this state sends them again"
    place = parse_address(to).text
    typer.echo(f"streamgauge: {place}: {lost} not delivered: {delivery.why}{later if again else ''}", err=True)
