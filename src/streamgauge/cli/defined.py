"""Values on the command line: a query's parameters (``-D NAME=VALUE``) and durations (``30s``)."""

from collections.abc import Sequence

import typer

from streamgauge.model.query import ContinuousQuery
from streamgauge.workloads.parameters import duration


def values(define: Sequence[str] | None) -> dict[str, str]:
    """The parameters by name; BadParameter for an item that is not NAME=VALUE."""
    return dict(_pair(item) for item in define or ())


def _pair(item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{item!r}: write NAME=VALUE", param_hint="-D")
    return name, value


def tell_notes(query: ContinuousQuery) -> None:
    """Say on standard error what was taken for granted when a query was read."""
    for note in query.notes:
        typer.echo(f"streamgauge: note: {note}", err=True)


def milliseconds(value: str | None) -> int | None:
    """The ms of a duration, ``None`` for none; BadParameter otherwise."""
    try:
        return None if value is None else duration(value)
    except ValueError as error:
        raise typer.BadParameter(f"{value!r}: {error}") from error


def checked_duration(value: str | None) -> str | None:
    """The text of a duration as it is, for an option's callback; BadParameter for any other text."""
    milliseconds(value)
    return value
