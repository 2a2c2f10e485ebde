"""The commands ``broker serve`` and ``verify``, ``publish`` and ``subscribe``: facts in, changes of answers out."""

import os
import time
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.bridge import bridge
from streamgauge.cli.names import one_named, strategy_names
from streamgauge.cli.ontologies import Lenient, SameAs, Subsumption, read_ontologies
from streamgauge.cli.soundness import Target, reported
from streamgauge.cli.tokens import TOKEN
from streamgauge.formats.texts import read_text
from streamgauge.incremental.budget import gc_frozen
from streamgauge.model.counts import counted
from streamgauge.model.mistake import MistakeError
from streamgauge.reasoning import Rules
from streamgauge.servers.broker.access import Access, read_grants
from streamgauge.servers.broker.broker import VIOLATIONS, Broker, open_violations
from streamgauge.servers.broker.contract import Strategy
from streamgauge.servers.broker.delivery import read_hook
from streamgauge.servers.broker.http import application
from streamgauge.servers.broker.limits import LimitError, Limits, read_files
from streamgauge.servers.broker.registry import Require, anything
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.broker.strategies import begin
from streamgauge.servers.http.access import OPEN, TokenError, check_tokens, read_origins
from streamgauge.servers.http.server import Serving

UNLESS = Limits()


class ClosureChoice(StrEnum):
    """Which memberships an ontology's rules derive."""

    NAMED = "named"
    FULL = "full"


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


def _group() -> None:
    """Publish and subscribe."""


def serve(
    data: Facts = None,
    host: Annotated[str, typer.Option(help="The address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 4200,
    journal: Annotated[Path | None, typer.Option(help="The file that keeps everything; in memory without it.")] = None,
    ontology: Annotated[list[Path] | None, typer.Option(help="An ontology, as an RDF file.")] = None,
    closure: Annotated[
        ClosureChoice, typer.Option(case_sensitive=False, help="What is derived: of named classes, or all.")
    ] = ClosureChoice.NAMED,
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
    face, place = application(broker, access, hooks, origins), journal or "in memory"
    ready = partial(_say_ready, f"broker ({place})")
    Serving(face, host, port, broker.close, ready, max_connections, alone=True).run()


def verify(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The file that a broker kept; none has it open.")],
    save_to: Target = None,
) -> None:
    """Check every row and page of a journal, of which nothing is changed; 0 when all are sound, 1 when not."""
    from streamgauge.servers.broker import recovery

    reported(journal, recovery.verify, recovery.save, save_to)


class _Served(Broker):
    """A broker with a process to itself: what stands, facts and answers, the collector need not look at again."""

    def create_channel(
        self, name: str, query: str, *, owner: str = OPEN, require: Require = anything
    ) -> tuple[str, ...]:
        """A channel begins, with an answer that may be large."""
        with gc_frozen():
            return super().create_channel(name, query, owner=owner, require=require)


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _say_ready(name: str, address: str) -> None:
    typer.echo(f"{name} at {address}", err=True)


def _begun(
    strategy: Strategy, kept: SqliteJournal | None, limits: Limits, data: Iterable[Path], rules: Rules
) -> Broker:
    """A broker with the facts of its journal, or of files, and the channel of violations."""
    with gc_frozen():
        broker = _Served(strategy, lambda: time.time_ns() // 1_000_000, time.monotonic, kept, limits)
        _fill(broker, data)
        _open_violations(broker, rules)
    return broker


def _open_violations(broker: Broker, rules: Rules) -> None:
    """The channel of violations; data that contradict the ontology stop nothing."""
    try:
        count = open_violations(broker, rules)
    except LimitError as error:
        _say(f"no channel {VIOLATIONS}: {error}")
        return
    if count:
        _say(f"{counted(count, 'violation')} of the ontology: see the channel {VIOLATIONS}")


def _access(file: Path | None) -> Access:
    lines = read_text(file).splitlines() if file is not None else []
    try:
        grants = read_grants(lines)
        if file is not None and not grants:
            raise MistakeError(f"{file}: there is no token in it: write one on a line")
        return Access([*grants, *read_grants([os.environ.get(TOKEN, "")])])
    except TokenError as error:
        raise TokenError(f"{file or TOKEN}, {error}") from error


def _fill(broker: Broker, data: Iterable[Path]) -> None:
    """Facts of files, where there are none."""
    files = list(data)
    if files and (broker.number or broker.channels() or broker.explicit):
        typer.echo(f"the journal has facts already: {', '.join(map(str, files))} not read again", err=True)
    elif files:
        broker.load(read_files(files))
