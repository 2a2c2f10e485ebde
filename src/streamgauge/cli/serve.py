"""The command ``engine serve``: continuous queries over HTTP."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from streamgauge.cli.configuration import long_running
from streamgauge.cli.options import completed, engine_names, seconds
from streamgauge.cli.query_files import read_query_file
from streamgauge.cli.servers import AllowedOrigins, Host, RequestBytes, add_group, reported
from streamgauge.cli.tokens import TokenFile
from streamgauge.engines import load, named
from streamgauge.formats.streams import read_triples
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.servers.http.access import read_origins
from streamgauge.servers.http.server import Serving
from streamgauge.servers.queries.deliveries import Deliveries
from streamgauge.servers.queries.durability import ServiceJournal
from streamgauge.servers.queries.folder import QueryFolder
from streamgauge.servers.queries.http import MISTAKES, application
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.sinks import open_sink
from streamgauge.sources import check_place
from streamgauge.sources.named import named_source

UNLESS = QueryLimits()


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    add_group(app, "engine", "Serve continuous queries over HTTP.", serve, verify)


@long_running
def serve(
    engines: Annotated[
        list[str],
        typer.Argument(
            metavar="ENGINE...", autocompletion=completed(engine_names), help="The engines; the first is the default."
        ),
    ],
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8765,
    token_file: Annotated[Path | None, typer.Option(help="Accepted tokens, one per line.")] = None,
    allow_origin: AllowedOrigins = None,
    state: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Store queries, windows, sources and answers there.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FOLDER", help="Register its files *.rq, also as they change.")
    ] = None,
    stream: Annotated[list[str] | None, typer.Option(help="IRI=URL: feed a stream from a source.")] = None,
    static: Annotated[list[str] | None, typer.Option(help="IRI=FILE: static data for queries that name it.")] = None,
    attach: Annotated[list[str] | None, typer.Option(help="Allow clients to attach sources below this URL.")] = None,
    max_queries: Annotated[int, typer.Option(min=1, help="Maximum number of queries.")] = UNLESS.queries,
    max_subscribers: Annotated[int, typer.Option(min=1, help="Maximum number of subscribers.")] = UNLESS.subscribers,
    max_rate: Annotated[float | None, typer.Option(min=1, help="Maximum number of elements per second.")] = None,
    max_body: RequestBytes = UNLESS.body,
    max_memory: Annotated[int, typer.Option(min=2**20, help="Maximum memory of one query in bytes.")] = UNLESS.memory,
    max_seconds: Annotated[
        float,
        typer.Option(min=0.1, help="Maximum CPU seconds of a query for one element and the reports that it makes due."),
    ] = UNLESS.seconds,
    max_time: Annotated[str | None, typer.Option(metavar="DURATION", help="Maximum duration of a query: 12h.")] = None,
) -> None:
    """Answer continuous queries over HTTP: registration, and answers as events or over WebSocket."""
    names = [named(name) for name in engines]
    for url in attach or ():
        check_place(url)
    tokens = TokenFile(token_file, host)
    origins = read_origins(allow_origin or (), bool(tokens))
    lifetime = None if max_time is None else seconds(max_time, "--max-time")
    limits = QueryLimits(
        queries=max_queries,
        subscribers=max_subscribers,
        elements_per_second=max_rate,
        body=max_body,
        memory=max_memory,
        seconds=max_seconds,
        lifetime=lifetime,
    )
    core = Queries(load, names, limits, journal=_journal(state))
    for item in static or ():
        core.share(*_named(item))
    folder = None if queries is None else _folder(core, queries)
    run = uuid4().hex[:8] if state is None else ""  # numbers begin anew in each run unless they are kept
    face = application(core, tokens, attach or (), origins, [*map(_source, stream or ())], folder, run)
    announce = _at(", ".join(names))
    _run(
        core,
        lambda leave, reload: Serving(face, host, port, leave, announce, alone=True, reload=reload),
        tokens,
        folder,
    )


def _run(
    core: Queries,
    serving: Callable[[Callable[[], None], Callable[[], None]], Serving],
    tokens: TokenFile,
    folder: QueryFolder | None,
) -> None:
    """Serve until a signal arrives, then print a summary."""
    account = ""

    def leave() -> None:
        nonlocal account
        account = _account(core)
        core.leave()

    def reload() -> None:
        tokens.reload()
        if folder is not None:
            folder.look(at_once=True)

    try:
        serving(leave, reload).run()
    finally:
        typer.echo(account, err=True)


def verify(
    state: Annotated[Path, typer.Argument(metavar="FOLDER", help="The state of a stopped service or `query`.")],
) -> None:
    """Check every row and page of a state without changing it; exit code 0 if it is sound, else 1."""
    from streamgauge.servers.durable import journal

    reported(state, journal.verify)


def _folder(core: Queries, folder: Path) -> QueryFolder:
    """The queries of a folder; MistakeError if it does not exist."""
    if not folder.is_dir():
        raise MistakeError(f"{folder} is not a folder: name the folder of your queries, or make it")
    return QueryFolder(core, folder, read_query_file, Deliveries(core, open_sink), MISTAKES)


def _source(item: str) -> tuple[str, str]:
    source = named_source(item)
    if source.iri is None:
        raise typer.BadParameter(f"{item!r}: write IRI=URL", param_hint="--stream")
    return source.iri, source.address


def _journal(state: Path | None) -> ServiceJournal | None:
    return None if state is None else ServiceJournal(state, time.monotonic)


def _at(names: str) -> Callable[[str], None]:
    """A function that prints the service's address and its engines."""
    return lambda address: typer.echo(f"{names} at {address}", err=True)


def _account(queries: Queries) -> str:
    """A summary: running queries, elements of all streams, answers of the current queries."""
    running = queries.queries()
    elements, answers = sum(queries.streams().values()), sum(query.answers.number for query in running)
    return f"{counted(len(running), 'query')}; {counted(elements, 'element')}; {counted(answers, 'answer')}"


def _named(item: str) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    name, equals, file = item.partition("=")
    if not equals or not file:
        raise typer.BadParameter(f"{item!r}: write IRI=FILE", param_hint="--static")
    return name.strip("<>"), tuple(read_triples(file))
