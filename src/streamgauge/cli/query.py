"""The command ``query``: a continuous query on a stream, its answers printed as they come."""

import os
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
from streamgauge.cli.terminal import Terminal
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
"""The exit code after Ctrl-C or SIGTERM, of which ``Termination`` makes 143."""

FORMATS = ("table", "jsonl", "nquads", "csv")
Tell = Callable[[Answer], None]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("query")(query)


def _end(advance_to: str | None) -> End:
    """The end of time behind the streams: their own, unless something else was asked (docs/semantics.md)."""
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
    static: Annotated[
        str | None, typer.Option(metavar="FILE", help="An RDF file with data beside the streams.")
    ] = None,
    semantics: Annotated[
        str | None, one_named(semantics_names, help="A profile; that of the dialect unless given.")
    ] = None,
    engine: Annotated[str, one_named(engine_names, help="Which engine answers.")] = "live",
    form: Annotated[str | None, one_of(lambda: FORMATS, "--format", help="table, jsonl, nquads or csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    to: Annotated[str | None, typer.Option(help="A file or URL to send the answers to.")] = None,
    dates: Annotated[bool, typer.Option("--dates", help="Write instants as dates (UTC), also in csv.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many answers.")] = None,
    lateness: Annotated[
        str | None, typer.Option(metavar="DURATION", callback=checked_duration, help="How late elements may come: 2s.")
    ] = None,
    t0: Annotated[str | None, typer.Option(help="Start of the first window: ms, 30s, or a date.")] = None,
    advance_to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How far time comes: 30s, a date, or windows: until all windows that hold something have closed. The "
            "last element unless given.",
        ),
    ] = None,
    wall: Annotated[bool, typer.Option("--wall", help="Time passes by the wall clock although nothing comes.")] = False,
    state: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep windows, places and numbers: another run goes on.")
    ] = None,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Over how many processes `live` spreads the query.")] = 1,
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
    """The format of answers: that of a sink goes before how they are ``printed``; WatchError where it takes another."""
    if to is None:
        return form or printed
    taken = message_form(to)
    if form is not None and taken not in ("jsonl", form):
        raise WatchError(f"--format {form}: the sink takes {taken}")
    return form or taken


@contextmanager
def _advised(text: str) -> Iterator[None]:
    """An engine that is not here is told of with the one that answers without it."""
    try:
        yield
    except EngineUnavailableError as error:
        named = detect(text)
        semantics = named if named in PROFILES else "rspql"
        raise MistakeError(
            f"{error}. Without it, `--engine live --semantics {semantics}` answers this query; `streamgauge translate` "
            "writes it for another engine"
        ) from error


def _print(answers: Watch[Answer], tell: Tell, limit: int | None) -> Exit | int:
    """Hand every answer on until the end, the limit or Ctrl-C; then say how much it was."""
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
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except PipeError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        code = Exit.ENGINE_FAILURE
    _conclude(answers, count)
    if not rows and (note := unasked(answers.asked[0].query, answers.predicates, answers.elements)):
        typer.echo(f"streamgauge: note: {note}", err=True)
    return code


def unasked(query: ContinuousQuery, predicates: AbstractSet[Term], elements: int) -> str:
    """Why a query over so many elements may have had no row: a property that none of them has; else nothing."""
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
    late = f", {answers.late} of them too late" if answers.late else ""
    late += f", {answers.uncounted} of them before t0, which never count" if answers.uncounted else ""
    horizon = "" if answers.horizon is None else f"; time reached {answers.horizon:,} ms"
    if awaited := answers.awaited:
        horizon += f": {awaited}, and --advance-to windows closes it"
    typer.echo(f"{counted(answers.elements, 'element')}{late}; {counted(count, 'answer')}{horizon}", err=True)


@contextmanager
def _teller(answers: Watch[Answer], text: str, form: str, to: str | None, dates: bool) -> Iterator[Tell]:
    """The sink of an answer, which shows, writes or sends it; WatchError when the format cannot hold it."""
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
        mark = answers.marks(partial(_arrived, sink))
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
            _report(to, delivery, again=is_durable(answers))
            if not interrupted:
                raise typer.Exit(Exit.ENGINE_FAILURE)


def _arrived(sink: Sink) -> Any:
    """Where a sink is once all that was sent has arrived; SourceError where something has not."""
    if isinstance(sink, Settling) and (delivery := sink.settle()).undelivered:
        raise SourceError(f"{counted(delivery.undelivered, 'answer')} not delivered: {delivery.why}")
    return sink.mark() if isinstance(sink, Marked) else None


def _send(sink: Sink, key: str | None, lines: bytes) -> None:
    """One message; what is delivered twice has the same key."""
    if lines:
        sink.send(lines, key)


def _report(to: str, delivery: Delivery, *, again: bool) -> None:
    """Say what a sink did not deliver, and whether the next run does."""
    lost, later = counted(delivery.undelivered, "answer"), "; the next run with this state sends it again"
    place = parse_address(to).text
    typer.echo(f"streamgauge: {place}: {lost} not delivered: {delivery.why}{later if again else ''}", err=True)
