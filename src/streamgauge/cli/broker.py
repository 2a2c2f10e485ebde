"""The commands ``broker serve`` and ``verify``, ``publish`` and ``subscribe``: facts in, changes of answers out."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.bench.experiments.plan import read_text
from streamgauge.broker import AwayError, BrokerError, Client, Told
from streamgauge.cli.answers import prefixes
from streamgauge.cli.bridge import bridge
from streamgauge.cli.defined import seconds
from streamgauge.cli.exits import Exit
from streamgauge.cli.names import one_named, strategy_names
from streamgauge.cli.notified import Lines, Live
from streamgauge.cli.ontologies import Lenient, SameAs, Subsumption, read_ontologies
from streamgauge.cli.soundness import Target, reported
from streamgauge.cli.tokens import TOKEN
from streamgauge.compute.lasting import lasting
from streamgauge.compute.reasoning import Rules
from streamgauge.services.broker.access import Access, read_grants
from streamgauge.services.broker.broker import Broker
from streamgauge.services.broker.contract import Strategy
from streamgauge.services.broker.face import application
from streamgauge.services.broker.graphs import read_files
from streamgauge.services.broker.hooks import read_hook
from streamgauge.services.broker.limits import LimitError, Limits
from streamgauge.services.broker.registry import Require, anything
from streamgauge.services.broker.sqlite import SqliteJournal
from streamgauge.services.broker.strategies import begin
from streamgauge.services.broker.violations import CHANNEL, open_violations
from streamgauge.services.web.origins import read_origins
from streamgauge.services.web.serving import Serving
from streamgauge.services.web.tokens import OPEN, check_tokens

UNLESS = Limits()
URL = "http://127.0.0.1:4200"
_KINDS = {
    ".ttl": "text/turtle",
    ".nt": "application/n-triples",
    ".rdf": "application/rdf+xml",
    ".owl": "application/rdf+xml",
    ".jsonld": "application/ld+json",
    ".trig": "application/trig",
    ".nq": "application/n-quads",
}


class Closure(StrEnum):
    """Which memberships an ontology's rules derive."""

    NAMED = "named"
    FULL = "full"


At = Annotated[str, typer.Option("--at", metavar="URL", help="The broker.")]


Facts = Annotated[
    list[Path] | None, typer.Argument(metavar="DATA...", help="RDF files: the facts, unless a journal has some.")
]
Origins = Annotated[
    list[str] | None, typer.Option(metavar="ORIGIN", help="Pages of this origin may use it; * for all.")
]
WebhookHosts = Annotated[
    list[str] | None, typer.Option(metavar="HOST", help="A webhook may be at this host, be it private.")
]
MaxChange = Annotated[
    int, typer.Option(min=1, help="Facts and rows that a channel may look at because of one publication.")
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Publish and subscribe.", no_args_is_help=True)
    group.command("serve")(serve)
    group.command("verify")(verify)
    group.command("bridge")(bridge)
    group.callback()(_group)
    app.add_typer(group, name="broker")
    app.command("publish")(publish)
    app.command("subscribe")(subscribe)


def _group() -> None:
    """Publish and subscribe."""


def serve(
    data: Facts = None,
    host: Annotated[str, typer.Option(help="The address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 4200,
    journal: Annotated[Path | None, typer.Option(help="The file that keeps everything; in memory without it.")] = None,
    ontology: Annotated[list[Path] | None, typer.Option(help="An ontology, as an RDF file.")] = None,
    closure: Annotated[
        Closure, typer.Option(case_sensitive=False, help="What is derived: of named classes, or all.")
    ] = Closure.NAMED,
    lenient: Lenient = False,
    same_as: SameAs = False,
    subsumption: Subsumption = False,
    strategy: Annotated[str, one_named(strategy_names, help="How notifications are found.")] = "incremental",
    token_file: Annotated[Path | None, typer.Option(help="TOKEN [OPERATION,... [CHANNEL ...]], one a line.")] = None,
    allow_origin: Origins = None,
    webhook: Annotated[list[str] | None, typer.Option(help="CHANNEL=URL: notifications are posted there.")] = None,
    webhook_host: WebhookHosts = None,
    max_channels: Annotated[int, typer.Option(min=1, help="How many channels.")] = UNLESS.channels,
    max_subscribers: Annotated[int, typer.Option(min=1, help="Subscribers of one channel.")] = UNLESS.subscribers,
    max_graph: Annotated[int, typer.Option(min=1, help="Triples of one publication.")] = UNLESS.graph,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of a new channel's answer.")] = UNLESS.rows,
    max_effort: Annotated[int, typer.Option(min=1, help="Facts and rows that an answer may look at.")] = UNLESS.effort,
    max_change: MaxChange = UNLESS.change,
    max_looks: Annotated[int, typer.Option(min=1, help="Facts that WHERE of an update looks at.")] = UNLESS.looks,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="CPU seconds to answer a new channel.")] = UNLESS.seconds,
    max_derived: Annotated[int, typer.Option(min=1, help="How often a publication may derive.")] = UNLESS.derived,
    max_body: Annotated[int, typer.Option(min=1024, help="Bytes of one request.")] = UNLESS.body,
    max_lag: Annotated[int, typer.Option(min=1, help="Notifications that a subscriber may be behind.")] = UNLESS.lag,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = UNLESS.connections,
) -> None:
    """Serve a broker: graphs are published and deleted, subscribers of SPARQL queries told how answers change."""
    access = _access(token_file)
    check_tokens(host, access.tokens)
    origins = read_origins(allow_origin or (), bool(access.tokens))
    hooks = [read_hook(each, webhook_host or ()) for each in webhook or ()]
    limits = Limits(
        channels=max_channels,
        subscribers=max_subscribers,
        graph=max_graph,
        rows=max_rows,
        effort=max_effort,
        change=max_change,
        looks=max_looks,
        seconds=max_seconds,
        derived=max_derived,
        body=max_body,
        lag=max_lag,
        connections=max_connections,
    )
    rules = read_ontologies(
        ontology or (), closure.value, _say, lenient=lenient, same_as=same_as, subsumption=subsumption
    )
    kept = None if journal is None else SqliteJournal(journal)
    broker = _begun(begin(strategy, rules), kept, limits, data or (), rules)
    Serving(
        application(broker, access, hooks, origins),
        host,
        port,
        broker.close,
        lambda at: typer.echo(f"broker ({journal or 'in memory'}) at {at}", err=True),
        max_connections,
        alone=True,
    ).run()


def verify(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The file that a broker kept; none has it open.")],
    save_to: Target = None,
) -> None:
    """Check every row and page of a journal, of which nothing is changed; 0 when all are sound, 1 when not."""
    from streamgauge.services.broker import recovery

    reported(journal, recovery.verify, recovery.save, save_to)


class _Served(Broker):
    """A broker with a process to itself: what stands, facts and answers, the collector need not look at again."""

    def create_channel(
        self, name: str, query: str, *, owner: str = OPEN, require: Require = anything
    ) -> tuple[str, ...]:
        """A channel begins, with an answer that may be large."""
        with lasting():
            return super().create_channel(name, query, owner=owner, require=require)


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _begun(
    strategy: Strategy, kept: SqliteJournal | None, limits: Limits, data: Iterable[Path], rules: Rules
) -> Broker:
    """A broker with the facts of its journal, or of files, and the channel of violations."""
    with lasting():
        broker = _Served(strategy, lambda: time.time_ns() // 1_000_000, time.monotonic, kept, limits)
        _fill(broker, data)
        _open_violations(broker, rules)
    return broker


def _open_violations(broker: Broker, rules: Rules) -> None:
    """The channel of violations; data that contradict the ontology stop nothing."""
    try:
        count = open_violations(broker, rules)
    except LimitError as error:
        _say(f"no channel {CHANNEL}: {error}")
        return
    if count:
        _say(f"{count} violations of the ontology: they are in the channel {CHANNEL}")


def _access(file: Path | None) -> Access:
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None else []
    return Access(read_grants([*lines, os.environ.get(TOKEN, "")]))


def _fill(broker: Broker, data: Iterable[Path]) -> None:
    """Facts of files, where there are none."""
    files = list(data)
    if files and (broker.number or broker.channels() or broker.explicit):
        typer.echo(f"the journal has facts already: {', '.join(map(str, files))} not read again", err=True)
    elif files:
        broker.load(read_files(files))


def publish(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help="RDF; standard input without.")] = None,
    at: At = URL,
    delete: Annotated[bool, typer.Option("--delete", help="The facts leave.")] = False,
    kind: Annotated[str, typer.Option("--type", help="Media type of standard input.")] = "text/turtle",
    key: Annotated[str | None, typer.Option(help="Sent again with the same key, nothing is done.")] = None,
) -> None:
    """Publish graphs, each as one; one line for each that is acknowledged."""
    with _client(at) as client:
        operation = client.delete if delete else client.publish
        for graph, media, name in _graphs(files or (), kind):
            got = operation(graph, media, key)
            typer.echo(f"{name}: publication {got.number}{' (was there already)' if got.repeated else ''}")


def _graphs(files: Iterable[Path], kind: str) -> Iterator[tuple[bytes, str, str]]:
    """Bodies, their media types and names."""
    found = list(files)
    for file in found:
        if file.suffix not in _KINDS:
            raise typer.BadParameter(f"{file}: RDF ends in one of {', '.join(_KINDS)}", param_hint="FILE")
        yield file.read_bytes(), _KINDS[file.suffix], str(file)
    if not found:
        yield sys.stdin.buffer.read(), kind, "standard input"


def subscribe(
    channel: Annotated[str, typer.Argument(help="The channel.")],
    at: At = URL,
    query: Annotated[Path | None, typer.Option(help="Create the channel with this query, where it is not.")] = None,
    subscriber: Annotated[str | None, typer.Option("--as", help="A name by which to come back later.")] = None,
    after: Annotated[int | None, typer.Option(min=0, help="Begin after the notification of this number.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines on a terminal too.")] = False,
    patience: Annotated[
        str, typer.Option(metavar="DURATION", help="How long the broker may be away before this ends.")
    ] = "10m",
    most: Annotated[int | None, typer.Option("--limit", min=1, help="End after so many notifications.")] = None,
) -> None:
    """Show a channel's answer as it changes: a live table on a terminal, JSON lines otherwise.

    Exit code 2 for what the broker refuses, 3 when the broker was away for as long as --patience says.
    """
    away = seconds(patience, "--patience")
    live = sys.stdout.isatty() and not as_json
    with _client(at) as client:
        text = None if query is None else read_text(query)
        if text is not None:
            _create(client, channel, text)
        begun = client.rows(channel) if live else None
        start = begun.number if begun is not None and subscriber is None and after is None else after
        known = {} if text is None else prefixes(text)
        with Live(begun, prefixes=known) if begun is not None else nullcontext(Lines()) as shown:
            told = client.subscribe(channel, subscriber, start, patience=away, tell=_say_again)
            code = _shown(told, shown.show, most)
    raise typer.Exit(code)


def _say_again(why: str, wait: float) -> None:
    typer.echo(f"streamgauge: {why}: trying again in {wait:.1f} s", err=True)


def _client(at: str) -> Client:
    return Client(at, os.environ.get(TOKEN) or None)


def _create(client: Client, channel: str, query: str) -> None:
    try:
        client.create_channel(channel, query)
    except BrokerError as error:
        if error.status != 409:
            raise


def _shown(found: Iterator[Told], show: Callable[[Told], None], most: int | None) -> int:
    """Show notifications until the channel ends, Ctrl-C, a reader that leaves, or so many."""
    try:
        for count, told in enumerate(found, 1):
            show(told)
            if count == most:
                break
    except KeyboardInterrupt:
        return 130
    except AwayError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        return Exit.ENGINE_FAILURE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.RIGHT
