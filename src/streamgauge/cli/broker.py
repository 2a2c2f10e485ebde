"""The commands ``broker serve``, ``verify`` and ``bridge``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streamgauge.cli.configuration import long_running
from streamgauge.cli.exits import Exit
from streamgauge.cli.options import (
    Beyond,
    Lenient,
    SameAs,
    Subsumption,
    one_named,
    read_ontologies,
    seconds,
    strategy_names,
)
from streamgauge.cli.servers import (
    BROKER,
    TOKEN,
    AllowedOrigins,
    Connections,
    Host,
    MaxMessage,
    Patience,
    RequestBytes,
    SavedTo,
    add_group,
    own_token,
    reported,
    say,
    say_again,
    tell_readers,
)
from streamgauge.formats.files import read_text
from streamgauge.incremental.budget import gc_frozen, gc_young
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.reasoning import Rules
from streamgauge.servers.broker import LARGEST_MESSAGE
from streamgauge.servers.broker.access import Access, Grant, read_grants
from streamgauge.servers.broker.broker import VIOLATIONS, Broker, open_violations
from streamgauge.servers.broker.channels import UnknownChannelError
from streamgauge.servers.broker.contract import Strategy
from streamgauge.servers.broker.delivery import read_hook
from streamgauge.servers.broker.http import application
from streamgauge.servers.broker.limits import LimitError, Limits, read_files
from streamgauge.servers.broker.registry import Require, anything
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.broker.strategies import begin
from streamgauge.servers.http.access import OPEN, TokenError, check_tokens, read_origins
from streamgauge.servers.http.server import Serving

if TYPE_CHECKING:
    from streamgauge.servers.broker.bridge import Bridge


UNLESS = Limits()


class ClosureChoice(StrEnum):
    """Which memberships an ontology's rules derive."""

    NAMED = "named"
    FULL = "full"


Facts = Annotated[
    list[Path] | None, typer.Argument(metavar="DATA...", help="RDF files with the facts, unless the journal has some.")
]
Derived = Annotated[
    ClosureChoice, typer.Option(case_sensitive=False, help="What is derived: memberships of named classes, or all.")
]
WebhookHosts = Annotated[
    list[str] | None, typer.Option(metavar="HOST", help="Allow webhooks at this host, even a private one.")
]
MaxKept = Annotated[
    int, typer.Option(min=2**20, help="Maximum size (bytes) of stored notifications of one token's channels.")
]
MaxChange = Annotated[int, typer.Option(min=1, help="Maximum facts and rows that a publication may cost one channel.")]
MaxChanges = Annotated[
    int, typer.Option(min=1, help="Maximum facts and rows that a publication may cost all channels.")
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    add_group(app, "broker", "Publish and subscribe.", serve, verify, bridge)


@long_running
def serve(
    data: Facts = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 4200,
    journal: Annotated[Path | None, typer.Option(help="The file for all data; without it they are in memory.")] = None,
    ontology: Annotated[list[Path] | None, typer.Option(help="An ontology (RDF file).")] = None,
    closure: Derived = ClosureChoice.NAMED,
    lenient: Lenient = False,
    same_as: SameAs = False,
    subsumption: Subsumption = False,
    beyond_rl: Beyond = False,
    strategy: Annotated[str, one_named(strategy_names, help="How notifications are computed.")] = "incremental",
    token_file: Annotated[Path | None, typer.Option(help="Lines of TOKEN [OPERATION,... [CHANNEL ...]].")] = None,
    allow_origin: AllowedOrigins = None,
    webhook: Annotated[list[str] | None, typer.Option(help="CHANNEL=URL: post notifications there.")] = None,
    webhook_host: WebhookHosts = None,
    max_channels: Annotated[int, typer.Option(min=1, help="Maximum number of channels.")] = UNLESS.channels,
    max_subscribers: Annotated[int, typer.Option(min=1, help="Maximum per channel.")] = UNLESS.subscribers,
    max_graph: Annotated[int, typer.Option(min=1, help="Maximum triples of one publication.")] = UNLESS.graph,
    max_rows: Annotated[int, typer.Option(min=1, help="Maximum rows of a new channel's answer.")] = UNLESS.rows,
    max_effort: Annotated[int, typer.Option(min=1, help="Maximum facts and rows read for an answer.")] = UNLESS.effort,
    max_change: MaxChange = UNLESS.change,
    max_changes: MaxChanges = UNLESS.changes,
    max_looks: Annotated[int, typer.Option(min=1, help="Maximum facts read for an update's WHERE.")] = UNLESS.looks,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="Maximum CPU seconds of a new channel.")] = UNLESS.seconds,
    max_derived: Annotated[int, typer.Option(min=1, help="Maximum derivations of one publication.")] = UNLESS.derived,
    max_body: RequestBytes = UNLESS.body,
    max_lag: Annotated[int, typer.Option(min=1, help="Maximum notifications a subscriber may lag.")] = UNLESS.lag,
    max_kept: MaxKept = UNLESS.kept_total,
    max_connections: Connections = UNLESS.connections,
) -> None:
    """Serve a broker: clients publish and delete graphs; subscribers of SPARQL queries receive changes of answers."""
    access = Access(_grants(token_file, host))
    origins = read_origins(allow_origin or (), bool(access.tokens))
    hooks = [read_hook(address, webhook_host or ()) for address in webhook or ()]
    limits = Limits(
        channels=max_channels,
        subscribers=max_subscribers,
        graph=max_graph,
        rows=max_rows,
        effort=max_effort,
        change=max_change,
        changes=max_changes,
        looks=max_looks,
        seconds=max_seconds,
        derived=max_derived,
        body=max_body,
        lag=max_lag,
        kept_total=max_kept,
        connections=max_connections,
    )
    ways = {"lenient": lenient, "same_as": same_as, "subsumption": subsumption, "beyond": beyond_rl}
    rules = read_ontologies(ontology or (), closure.value, say, **ways)
    kept = None if journal is None else SqliteJournal(journal)
    broker = _begun(begin(strategy, rules), kept, limits, data or (), rules)
    app = application(broker, access, hooks, origins)
    tell_readers(token_file)
    announce = partial(_say_where, journal)
    reload = partial(_reload, access, token_file, host)
    Serving(app, host, port, broker.close, announce, max_connections, alone=True, reload=reload).run()


def _say_where(journal: Path | None, address: str) -> None:
    say(f"broker ({journal or 'in memory'}) at {address}")


def verify(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a broker that is not running.")],
    save_to: SavedTo = None,
) -> None:
    """Check every row and page of a journal without changing it; exit code 0 if it is sound, else 1."""
    from streamgauge.servers.broker import recovery

    reported(journal, recovery.verify, recovery.save, save_to)


FROZEN_ROWS: Final = 10_000
"""Size (rows) from which an answer is frozen; chosen: a full garbage collection of fewer takes some ms."""


class _Served(Broker):
    """A broker in its own process, whose facts and large answers are frozen for the garbage collector.

    Small channels are not frozen: they leave cyclic garbage, which is never collected among frozen objects.
    """

    def create_channel(
        self, name: str, query: str, *, owner: str = OPEN, require: Require = anything
    ) -> tuple[str, ...]:
        """Create a channel, whose answer may be large."""
        # A large answer makes millions of objects that stay, which full collections would look through again and
        # again.
        with gc_young():
            variables = super().create_channel(name, query, owner=owner, require=require)
        with suppress(UnknownChannelError, KeyError):  # another request may have deleted it
            # A large answer lives as long as its channel: frozen, it is not searched by later collections of garbage.
            if self._strategy.size(self.channel(name).log.name) >= FROZEN_ROWS:
                with gc_frozen():
                    pass
        return variables


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
    """Create the channel of violations; contradictory data do not prevent the start."""
    try:
        count = open_violations(broker, rules)
    except LimitError as error:
        say(f"no channel {VIOLATIONS}: {error}")
        return
    if count:
        say(f"{counted(count, 'violation')} of the ontology: see the channel {VIOLATIONS}")


def _reload(access: Access, file: Path | None, host: str) -> None:
    """Read the grants again; if that fails, the previous ones remain."""
    access.replace(_grants(file, host))


def _grants(file: Path | None, host: str) -> list[Grant]:
    lines = read_text(file).splitlines() if file is not None else []
    try:
        grants = read_grants(lines)
        if file is not None and not grants:
            raise MistakeError(f"{file}: the file has no token: write one per line")
        # The token of the environment is this user's own, for the clients of this machine.
        grants += read_grants([own_token() or ""])
    except TokenError as error:
        raise TokenError(f"{file or TOKEN}, {error}") from error
    check_tokens(host, [grant.token for grant in grants])
    return grants


def _fill(broker: Broker, data: Iterable[Path]) -> None:
    """Load files, unless there are facts already."""
    files = list(data)
    # A journal that was used once has the last word: files of the start would bring back what was deleted since.
    if files and (broker.number or broker.channels() or broker.explicit):
        say(f"the journal already has facts: {', '.join(map(str, files))} not read again")
    elif files:
        broker.load(read_files(files))


@long_running
def bridge(
    at: Annotated[str, typer.Option("--at", metavar="URL", help="The broker.")] = BROKER,
    published: Annotated[
        list[str] | None, typer.Option("--from", metavar="SOURCE", help="Publish the messages of this source.")
    ] = None,
    deleted: Annotated[
        list[str] | None,
        typer.Option("--delete-from", metavar="SOURCE", help="Delete the facts in the messages of this source."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="CHANNEL=SINK", help="Send a channel's notifications to this sink."),
    ] = None,
    name: Annotated[str | None, typer.Option("--as", help="The subscriber's name (default: a new one).")] = None,
    skip: Annotated[bool, typer.Option("--skip-refused", help="Report and skip what the broker refuses.")] = False,
    patience: Patience = "10m",
    max_message: MaxMessage = LARGEST_MESSAGE,
) -> None:
    """Bridge MQTT (or Kafka, files, events) and a broker: messages are published, notifications sent on.

    Exit code 2 if something is refused, 3 if a side was unavailable for too long or did not accept a notification.
    """
    from uuid import uuid4

    from streamgauge.broker import Client
    from streamgauge.servers.broker.bridge import Bridge, Inlet, read_outlet

    inlets = [
        *(Inlet(address) for address in published or ()),
        *(Inlet(address, deletes=True) for address in deleted or ()),
    ]
    outlets = [read_outlet(address, name) for address in to or ()]
    if not inlets and not outlets:
        raise typer.BadParameter("nothing to bridge: name a source, or CHANNEL=SINK", param_hint="--from, --to")
    bridge = Bridge(
        at,
        lambda: Client(at, own_token(), largest=max_message),
        inlets,
        outlets,
        uuid4().hex,
        refuse=(lambda error: say(f"streamgauge: skipped: {error}")) if skip else None,
        patience=seconds(patience, "--patience"),
        tell=say_again,
    )
    bridge.open()
    typer.echo(f"streamgauge: bridging {at}, {len(inlets)} sources and {len(outlets)} sinks", err=True)
    raise typer.Exit(_carried(bridge))


def _carried(bridge: Bridge) -> int:
    from streamgauge.broker import AwayError
    from streamgauge.sources import SourceError
    from streamgauge.sources.contract import LEAVE_S

    try:
        bridge.run()
    except KeyboardInterrupt:
        for sentence in bridge.close(LEAVE_S):
            say(f"streamgauge: {sentence}")
        return 130
    except (AwayError, SourceError) as error:
        typer.echo(f"streamgauge: {error}", err=True)
        return Exit.ENGINE_FAILURE
    finally:
        bridge.close()
    return Exit.RIGHT
