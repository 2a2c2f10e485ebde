"""The command ``broker bridge``: messages of topics into a broker, notifications of channels to topics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.cli.exits import Exit
from streamgauge.cli.tokens import TOKEN

if TYPE_CHECKING:
    from streamgauge.broker import BrokerError
    from streamgauge.servers.broker.bridge import Bridge


def bridge(
    at: Annotated[str, typer.Option("--at", metavar="URL", help="The broker.")] = "http://127.0.0.1:4200",
    published: Annotated[
        list[str] | None, typer.Option("--from", metavar="SOURCE", help="Its messages are published.")
    ] = None,
    deleted: Annotated[
        list[str] | None, typer.Option("--delete-from", metavar="SOURCE", help="The facts of its messages are deleted.")
    ] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="CHANNEL=SINK", help="Where a channel's notifications go.")
    ] = None,
    name: Annotated[str | None, typer.Option("--as", help="The subscriber's name; one of its own without.")] = None,
    skip: Annotated[bool, typer.Option("--skip-refused", help="Say and pass over what the broker refuses.")] = False,
    patience: Annotated[
        str, typer.Option(metavar="DURATION", help="How long the broker may be away before this ends.")
    ] = "10m",
) -> None:
    """Carry messages of MQTT (or Kafka, files, events) into a broker, and notifications of channels out of it.

    Exit code 2 for what is refused, 3 when a side was away for too long or did not take a notification.
    """
    from uuid import uuid4

    from streamgauge.broker import Client
    from streamgauge.cli.defined import seconds
    from streamgauge.servers.broker.bridge import Bridge, Inlet, read_outlet

    inlets = [*(Inlet(each) for each in published or ()), *(Inlet(each, deletes=True) for each in deleted or ())]
    outlets = [read_outlet(each, name) for each in to or ()]
    if not inlets and not outlets:
        raise typer.BadParameter("there is nothing to carry: name a source, or CHANNEL=SINK", param_hint="--from, --to")
    made = Bridge(
        at,
        lambda: Client(at, os.environ.get(TOKEN) or None),
        inlets,
        outlets,
        uuid4().hex,
        refuse=_say if skip else None,
        patience=seconds(patience, "--patience"),
        tell=lambda why, wait: typer.echo(f"streamgauge: {why}: trying again in {wait:.1f} s", err=True),
    )
    made.open()
    typer.echo(f"streamgauge: carrying between {at} and {len(inlets)} sources, {len(outlets)} sinks", err=True)
    raise typer.Exit(_carried(made))


def _carried(made: Bridge) -> int:
    from streamgauge.broker import AwayError
    from streamgauge.sources import SourceError

    try:
        made.run()
    except KeyboardInterrupt:
        return 130
    except (AwayError, SourceError) as error:
        typer.echo(f"streamgauge: {error}", err=True)
        return Exit.ENGINE_FAILURE
    finally:
        made.close()
    return Exit.RIGHT


def _say(error: BrokerError) -> None:
    typer.echo(f"streamgauge: passed over: {error}", err=True)
