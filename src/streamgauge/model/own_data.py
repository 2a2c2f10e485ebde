"""The options for data that were not made as streams (docs/own-data-reference.md), each described once."""

from dataclasses import dataclass, field, fields
from typing import Final


def _option(metavar: str, description: str) -> str | None:
    option: str | None = field(default=None, metadata={"metavar": metavar, "description": description})
    return option


@dataclass(frozen=True, slots=True)
class OwnData:
    """How to read such data; each option has its metavar and its description as metadata, for the command line."""

    time_property: str | None = _option("PROPERTY", "Property, column or member that states the time: sosa:resultTime.")
    time_in: str | None = _option("UNIT", "Unit of numeric times: ms, s, us or ns.")
    time_zone: str | None = _option("ZONE", "Zone of times without one: Z, +01:00, Europe/Vienna.")
    fold: str | None = _option("INSTANT", "Which instant an ambiguous local time means: earlier or later.")
    parts: str | None = _option("PROPERTY,...", "Properties whose objects belong to an element: sosa:hasResult.")
    csv_mapping: str | None = _option("FILE", "Mapping of the columns of a CSV file, as CSV on the Web defines it.")
    json_mapping: str | None = _option("FILE", "Mapping of the members of plain JSON, in the same vocabulary.")
    base: str | None = _option("IRI", "Base of relative IRIs.")
    context: str | None = _option(
        "IRI=FILE,...", "Files for the contexts that JSON-LD names, or one for all documents."
    )
    charset: str | None = _option("NAME", "Charset of text that is not UTF-8: windows-1252.")


OWN_DATA: Final = fields(OwnData)
"""These options, as fields of a dataclass."""

OWN_DATA_NAMES: Final = tuple(option.name for option in OWN_DATA)
