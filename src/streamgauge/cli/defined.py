"""Values on the command line: a query's parameters (``-D NAME=VALUE``) and durations (``30s``)."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.workloads.parameters import duration

Parameters = Annotated[
    list[str] | None, typer.Option("--set", "-D", metavar="NAME=VALUE", help="A query parameter: -D TEMP=50.")
]
"""The option with a query's parameters."""


def values(define: Sequence[str] | None) -> dict[str, str]:
    """The parameters by name; BadParameter for an item that is not NAME=VALUE."""
    return dict(_pair(item) for item in define or ())


def _pair(item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{item!r}: write NAME=VALUE", param_hint="-D")
    return name, value


@contextmanager
def naming(file: str | Path | None) -> Iterator[None]:
    """A query's error carries the name of its file."""
    from streamgauge.query import QueryError

    try:
        yield
    except QueryError as error:
        if file is None:
            raise
        raise MistakeError(f"{'standard input' if str(file) == '-' else file}, {error}") from error


def tell_notes(query: ContinuousQuery) -> None:
    """Say on standard error what was taken for granted when a query was read."""
    for note in query.notes:
        typer.echo(f"streamgauge: note: {note}", err=True)


def milliseconds(value: str | None, option: str | None = None) -> int | None:
    """The ms of a duration, ``None`` for none; BadParameter (of that option) otherwise.

    A number without a unit is ms, and the user is told so.
    """
    if value is None:
        return None
    found = _read(value, option)
    tell_unit(value, option)
    return found


def seconds(value: str, option: str) -> float:
    """The seconds of a duration; BadParameter, and what the user is told, as above."""
    return (milliseconds(value, option) or 0) / 1000


def checked_duration(param: typer.CallbackParam, value: str | None) -> str | None:
    """The text of a duration with its unit, for an option's callback; BadParameter, and what is told, as above."""
    ms = milliseconds(value, param.opts[0] if param.opts else None)
    return None if ms is None else f"{ms}ms"


def instant(value: str | None, option: str = "--t0") -> int | None:
    """A point of a stream's time in ms: a whole number of ms, or a duration since time 0; BadParameter otherwise."""
    if value is None:
        return None
    return int(value) if re.fullmatch(r"[+-]?\d+", value.strip()) else _read(value, option)


def _read(value: str, option: str | None) -> int:
    try:
        return duration(value)
    except ValueError as error:
        raise typer.BadParameter(f"{value!r}: {error}", param_hint=option) from error


def tell_unit(value: str, option: str | None) -> None:
    """Say on standard error that a duration without a unit is read as ms."""
    text = value.strip()
    if text.isdecimal() and int(text):
        where = f"{option} {text}" if option else text
        typer.echo(f"streamgauge: note: {where} is read as {text} ms: write {text}ms, or {text}s for seconds", err=True)
