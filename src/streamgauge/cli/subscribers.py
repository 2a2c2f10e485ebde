"""The commands ``publish`` and ``subscribe``: send facts to a broker, receive changes of answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.cli.configuration import long_running
from streamgauge.cli.exits import Exit
from streamgauge.cli.servers import BROKER, MaxMessage, Patience, own_token, say_again
from streamgauge.cli.terminal import close_output
from streamgauge.formats.documents import file_document
from streamgauge.formats.streams import rdf_syntax
from streamgauge.formats.syntaxes import REGISTERED
from streamgauge.servers.broker import LARGEST_MESSAGE

if TYPE_CHECKING:
    from streamgauge.broker import Client, Told

At = Annotated[str, typer.Option("--at", metavar="URL", help="The broker.")]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("publish")(publish)
    app.command("subscribe")(subscribe)


def publish(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="RDF files (default: standard input).")
    ] = None,
    at: At = BROKER,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the facts instead.")] = False,
    kind: Annotated[str, typer.Option("--type", help="Media type of standard input.")] = "text/turtle",
    key: Annotated[str | None, typer.Option(help="A key by which the broker ignores repetitions.")] = None,
) -> None:
    """Publish graphs, one per file, and print a line for each acknowledged one."""
    with _client(at) as client:
        operation = client.delete if delete else client.publish
        for graph, media, name in _graphs(files or (), kind):
            got = operation(graph, media, key)
            typer.echo(f"{name}: publication {got.number}{' (repeated)' if got.repeated else ''}")


def _graphs(files: Iterable[Path], kind: str) -> Iterator[tuple[bytes, str, str]]:
    """(body, media type, name) of each graph."""
    paths = list(files)
    for file in paths:
        media_type = REGISTERED[rdf_syntax(file, registered=True)]
        with file_document(file).open() as document:
            yield document.read(), media_type, str(file)
    if not paths:
        yield sys.stdin.buffer.read(), kind, "standard input"


@long_running
def subscribe(
    channel: Annotated[str, typer.Argument(help="The channel.")],
    at: At = BROKER,
    query: Annotated[Path | None, typer.Option(help="Create the channel with this query if it does not exist.")] = None,
    subscriber: Annotated[str | None, typer.Option("--as", help="A name under which to resume later.")] = None,
    after: Annotated[int | None, typer.Option(min=0, help="Start after this notification.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines also on a terminal.")] = False,
    patience: Patience = "10m",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="End after this number of notifications.")] = None,
    max_message: MaxMessage = LARGEST_MESSAGE,
) -> None:
    """Show a channel's answer as it changes: a live table on a terminal, JSON lines otherwise.

    Exit code 2 for what the broker refuses, 3 when the broker was away for as long as --patience says.
    """
    from streamgauge.cli.answers import LiveChannel, NotificationLines, prefixes
    from streamgauge.cli.options import seconds
    from streamgauge.formats.files import read_text

    away = seconds(patience, "--patience")
    live = sys.stdout.isatty() and not as_json
    with _client(at, max_message) as client:
        text = None if query is None else read_text(query)
        if text is not None:
            _create(client, channel, text)
        begun = client.rows(channel) if live else None
        # A live table starts from the rows of that number, so that no change in between is missed.
        start = begun.number if begun is not None and subscriber is None and after is None else after
        known = {} if text is None else prefixes(text)
        with LiveChannel(begun, prefixes=known) if begun is not None else nullcontext(NotificationLines()) as shown:
            notifications = client.subscribe(channel, subscriber, start, patience=away, tell=say_again)
            code = _shown(notifications, shown.show, limit)
    raise typer.Exit(code)


def _client(at: str, max_message: int = LARGEST_MESSAGE) -> Client:
    from streamgauge.broker import Client

    return Client(at, own_token(), largest=max_message)


def _create(client: Client, channel: str, query: str) -> None:
    from streamgauge.broker import BrokerError

    try:
        client.create_channel(channel, query)
    except BrokerError as error:
        # 409: a channel of this name exists.
        if error.status != 409:
            raise


def _shown(notifications: Iterator[Told], show: Callable[[Told], None], limit: int | None) -> int:
    """Show notifications until the channel ends, Ctrl-C, a closed pipe, or the limit."""
    from streamgauge.broker import AwayError

    try:
        for count, notification in enumerate(notifications, 1):
            show(notification)
            if count == limit:
                break
    except KeyboardInterrupt:
        return 130
    except AwayError as error:
        typer.echo(f"streamgauge: {error}", err=True)
        return Exit.ENGINE_FAILURE
    except BrokenPipeError:
        close_output()
    return Exit.RIGHT
