"""Options of commands that read one's own data: where its times are, of which zone, what columns are."""

from typing import Annotated

import typer

from streamgauge.formats.streams import Reading
from streamgauge.query.text import declared_prefixes

TimeProperty = Annotated[
    str | None,
    typer.Option(help="The property, or CSV column, that states the time of elements: sosa:resultTime."),
]
TimeIn = Annotated[str | None, typer.Option(metavar="UNIT", help="What times that are numbers count: ms, s, us or ns.")]
TimeZone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="The zone of times without one: Z, +01:00, Europe/Vienna.")
]
Parts = Annotated[
    str | None,
    typer.Option(metavar="PROPERTY,...", help="Properties whose objects belong to an element: sosa:hasResult."),
]
CsvMapping = Annotated[
    str | None, typer.Option(metavar="FILE", help="What the columns of a CSV file are, as CSV on the Web says it.")
]


def own_reading(
    text: str,
    lateness: int | None,
    time_property: str | None,
    time_in: str | None,
    time_zone: str | None,
    parts: str | None,
    csv_mapping: str | None,
    *,
    checked: bool = True,
) -> Reading:
    """How sources are read beside a query's text, whose prefixes count; notes go to standard error.

    ``checked``: terms are looked at although the format takes them as they are written.
    """
    return Reading(
        lateness=lateness,
        checked=checked,
        time_property=time_property,
        time_in=time_in or "ms",
        time_zone=time_zone,
        parts=parts,
        csv_mapping=csv_mapping,
        prefixes=declared_prefixes(text),
        note=tell_note,
    )


def tell_note(sentence: str) -> None:
    """Say on standard error what was taken for granted."""
    typer.echo(f"streamgauge: note: {sentence}", err=True)
