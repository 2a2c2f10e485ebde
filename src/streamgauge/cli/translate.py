"""The command ``translate``: print a continuous query in another dialect."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.exits import Exit
from streamgauge.cli.options import (
    AsJson,
    Parameters,
    SparqlOption,
    dialect_names,
    one_of,
    tell_notes,
    values,
)
from streamgauge.formats.files import read_text
from streamgauge.query import QueryError, announced, detect, fill, parse, print_query


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("translate")(translate)


def translate(
    query: Annotated[str, typer.Argument(help="The query's file; - for standard input.")],
    to: Annotated[str, one_of(dialect_names, help="cqels, csparql, rspql or sparqlstream.")],
    source: Annotated[
        str | None, one_of(dialect_names, "--from", help="Its dialect, if its stream clause is ambiguous.")
    ] = None,
    version: SparqlOption = None,
    define: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Print a query in another dialect; features that it lacks are refused by name."""
    template = sys.stdin.read() if query == "-" else read_text(Path(query))
    try:
        text = announced(fill(template, values(define)), version)
        dialect = source or detect(text)
        parsed = parse(text, dialect)
        printed = print_query(parsed, to)
    except QueryError as error:
        raise _refused(f"{query}, {error}") from error
    # A printer's refusal, which has no position in the text.
    except ValueError as error:
        raise _refused(f"{query}: {error}") from error
    tell_notes(parsed)
    typer.echo(json.dumps({"from": dialect, "to": to, "query": printed}, indent=2) if as_json else printed, nl=as_json)


def _refused(sentence: str) -> typer.Exit:
    typer.echo(f"streamgauge: {sentence}", err=True)
    return typer.Exit(Exit.BAD_INPUT)
