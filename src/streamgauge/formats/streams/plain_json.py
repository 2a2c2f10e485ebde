"""Plain JSON: an object is an element, one of its members the time (docs/own-data.md).

The objects are concatenated as in NDJSON, or the items of a top-level array. Without a mapping a member is a property
of the stream (``STREAM#name``), like the column of a table; a nested object is a blank node, an array several values.
A mapping is one of tables (``csvw``) whose ``titles`` are JSON paths, with an ``iterator`` as the path to the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.documents import FormatError
from streamgauge.formats.instants import DATES, InstantError, Instants, TimeFormError, from_pattern
from streamgauge.formats.json_values import JsonNumber, JsonPath, JsonText, json_path, json_value, shown
from streamgauge.formats.streams.csvw import (
    TableColumn,
    TableMapping,
    cell_term,
    expand,
    guessed_term,
    header_predicate,
    read_mapping,
    refuse_missing,
)
from streamgauge.formats.streams.format import (
    Decode,
    Format,
    Item,
    Numbering,
    Reading,
    Refuse,
    Whole,
    bounded_lines,
    message_text,
    number,
    refused,
)
from streamgauge.formats.streams.marks import LineMark
from streamgauge.formats.streams.mixtures import Mixtures
from streamgauge.formats.streams.observations import instants
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.streams.properties import property_iri
from streamgauge.formats.streams.sorted_runs import in_order
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import offered
from streamgauge.model.terms import Term, Triple, quoted

ENDINGS: Final = (".json", ".ndjson", ".jsonl")
_TIMES: Final = ("time", "timestamp", "datetime", "date", "resulttime", "observed_at", "received_at", "ts")


def timed(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The objects of a file, or of several in name order, by their times; FormatError names file and line."""
    return number(in_order(_rows(whole, reading, refuse), whole.place, reading), reading)


def _rows(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[Item]:
    rows = JsonRows(reading, instants(reading))
    for count, document in enumerate(whole.with_endings(ENDINGS)):
        with document.open() as opened:
            try:
                yield from rows.of_file(opened, document.place, refuse, f"f{count}")
            except (OSError, EOFError) as error:
                raise FormatError(f"{document.place}: cannot be unpacked: {obstacle(error)}") from error


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The objects of an open file as they arrive, in their order."""
    numbering, rows = Numbering(reading), JsonRows(reading, instants(reading, strict=False))
    for item in rows.of_file(file, place, refuse, "f0"):
        try:
            yield numbering.element(*item)
        except FormatError as error:
            refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of messages of one object or more."""
    numbering, rows, messages = Numbering(reading), JsonRows(reading, instants(reading, strict=False)), 0

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[StreamElement]:
        nonlocal messages
        messages += 1
        text = BytesIO(message_text(payload, place, reading))
        return [numbering.element(*item) for item in rows.of_file(text, place, refused, f"m{messages}", arrived)]

    return decode


class JsonRows:
    """Converts JSON objects to elements, by a mapping or by their members."""

    def __init__(self, reading: Reading, times: Instants) -> None:
        self._reading, self._instants = reading, times
        self._mapping = _mapping(reading)
        self._mixtures = Mixtures("--json-mapping")
        self._predicates: dict[str, Term] = {}
        self._paths: dict[str, JsonPath] = {}
        self._iterator = None if self._mapping is None else self._mapping.iterator
        self._named = None if reading.time_property is None else self._time_path(reading.time_property)

    def of_file(
        self, file: IO[bytes], place: str, refuse: Refuse, label: str, arrived: int | None = None
    ) -> Iterator[Item]:
        """The elements of a text; ``label`` prefixes blank nodes, ``arrived`` (ms) replaces the elements' own times."""
        mark = self._reading.mark or LineMark()
        lines = bounded_lines(file, place, self._reading.limit, refuse, mark=mark)
        text_of_lines = JsonText(self._reading.limit, items=self._iterator is None)
        mark.open = lambda: text_of_lines.open
        count: int = mark.carry("rows", lambda: count) or 0
        try:
            for line, text in text_of_lines.values(lines):
                where = f"{place}, line {line}"
                try:
                    message = json_value(text)
                    for row in self._rows(message):
                        count += 1
                        yield self._item(where, row, message, f"_:{label}r{count}", count, arrived)
                except TimeFormError as error:
                    refuse(FormatError(f"{where}: {error}; a `format` in a mapping (--json-mapping) reads others"))
                except (FormatError, InstantError, ValueError) as error:
                    refuse(error if isinstance(error, FormatError) else FormatError(f"{where}: {error}"))
        except FormatError:  # by ``refuse``, which names the line
            raise
        except ValueError as error:
            raise FormatError(f"{place}: {error}") from error

    def _rows(self, message: Any) -> Iterator[dict[str, Any]]:
        rows = [message] if self._iterator is None else json_path(self._iterator).values(message)
        if self._iterator is not None and not rows:
            raise ValueError(f"the iterator {self._iterator} matches nothing in it")
        for row in rows:
            for data in row if isinstance(row, list) else (row,):
                if not isinstance(data, dict):
                    raise ValueError(f"{shown(data)} is not an object: an element is an object of JSON")
                yield data

    def _item(
        self, where: str, row: dict[str, Any], message: Any, subject: Term, count: int, arrived: int | None
    ) -> Item:
        time = arrived if arrived is not None else self._time(row, message, where)
        if self._mapping is None or self._mapping.columns is None:
            triples = list(self._members(row, subject, where))
        else:
            triples = list(self._mapped(self._mapping.columns, row, message, subject, count))
        if not triples:
            raise ValueError("it has no members that become triples: an element needs at least one")
        return where, time, tuple(dict.fromkeys(triples))

    def _members(self, data: dict[str, Any], subject: Term, where: str) -> Iterator[Triple]:
        """The triples of an object without a mapping."""
        inner = 0
        for name, value in data.items():
            predicate = self._predicate(name)
            for item in _flat(value):
                if isinstance(item, dict):
                    inner += 1
                    # Numbered by position, so that reading a file twice gives the same labels.
                    node = f"{subject}x{inner}"
                    yield subject, predicate, node
                    yield from self._members(item, node, where)
                elif item is not None:
                    term = json_term(item)
                    if (note := self._mixtures.note(name, str(item), term)) is not None:
                        self._reading.note(f"{where}: {note}")
                    yield subject, predicate, term

    def _predicate(self, name: str) -> Term:
        known = self._predicates.get(name)
        if known is None:
            known = self._predicates[name] = header_predicate(name, self._reading.stream, self._reading.prefixes)
        return known

    def _mapped(
        self, columns: Sequence[TableColumn], row: dict[str, Any], message: Any, subject: Term, count: int
    ) -> Iterator[Triple]:
        """The triples of an object by the columns of a mapping."""
        cells = {column.name: self._cells(column, row, message) for column in columns}
        refuse_missing(columns, cells)
        # A template has one value per column: the first of an array.
        values = {name: _text(cell[0]) if cell else "" for name, cell in cells.items()} | {"_row": str(count)}
        for column in columns:
            if column.predicate is None:
                continue
            about = subject if column.about is None else self._expanded(column.about, column, values)
            for cell in cells[column.name] or ([""] if column.virtual else []):
                yield about, column.predicate, self._object(column, cell, {**values, column.name: _text(cell)})

    def _object(self, column: TableColumn, cell: Any, values: Mapping[str, str]) -> Term:
        if column.value is not None:
            return self._expanded(column.value, column, values)
        if isinstance(cell, dict):
            raise ValueError(f"column {column.name}: its value is an object: name a member of it by a path")
        plain = column.lang is None or isinstance(cell, bool | JsonNumber)
        try:
            return (
                json_term(cell)
                if not column.datatype.iri and plain
                else to_term(parse_term(cell_term(_text(cell), column)))
            )
        except ValueError as error:
            raise ValueError(f"column {column.name}: {error}") from error

    def _cells(self, column: TableColumn, row: dict[str, Any], message: Any) -> list[Any]:
        """The values of a column, without nulls."""
        if column.virtual:
            return []
        # The first title that has values counts, so that variants of a message share a mapping.
        for title in (*column.titles, column.name):
            path = self._path(title, row)
            items = [item for value in path.values(message if path.root else row) for item in _flat(value)]
            items = [item for item in items if item is not None and _text(item) not in column.null]
            if items:
                return items
        return [column.default] if column.default else []

    def _path(self, text: str, row: dict[str, Any]) -> JsonPath:
        """The path of a title: the member with exactly that name, else a JSON path."""
        # A member named "a.b" wins over the path a, then b.
        if text in row:
            return JsonPath((text,))
        known = self._paths.get(text)
        if known is None:
            known = self._paths[text] = json_path(text)
        return known

    def _expanded(self, template: str, column: TableColumn, values: Mapping[str, str]) -> Term:
        return expand(template, {**values, "_name": column.name}, self._reading.stream, self._reading.prefixes)

    def _time_path(self, name: str) -> str:
        """The path of the time: that of the mapping's column with this name or property, else the name itself."""
        columns = (self._mapping.columns if self._mapping is not None else None) or ()
        try:
            iri = property_iri(name, self._reading.prefixes)
        except ValueError:
            iri = None
        for column in columns:
            if name in (column.name, *column.titles) or (iri is not None and column.predicate == iri):
                return column.titles[0] if column.titles else column.name
        # The property by which the member is read without a mapping: its name is the rest of the IRI.
        if iri is not None and iri.startswith(f"<{self._reading.stream}#"):
            return iri[len(self._reading.stream) + 2 : -1]
        return name

    def _time(self, row: dict[str, Any], message: Any, where: str) -> int:
        column = self._time_column()
        name = self._named or (column.titles[0] if column is not None and column.titles else self._guess(row))
        path = self._path(name, row)
        times = [value for value in path.values(message if path.root else row) if value is not None]
        if not times and name in row:
            raise ValueError(f"{name} is null: an element needs its time")
        if len(times) != 1:
            what = "no time" if not times else f"{len(times)} times"
            known = offered(name, row) if not times else "an element has one"
            raise ValueError(f"{what} by {name}: {known}")
        value = times[0]
        if isinstance(value, JsonNumber):
            return self._instants.of_number(value, where)
        if not isinstance(value, str):
            raise ValueError(f"{name} is {shown(value)}: expected a number or a string, or the path to one")
        if column is not None and column.datatype.pattern is not None:
            return self._instants.of_moment(from_pattern(value, column.datatype.pattern), value, where)
        return self._instants.of_text(value.strip(), where)

    def _time_column(self) -> TableColumn | None:
        """The time column of a mapping: the named one, else the only one with a date datatype."""
        columns = (self._mapping.columns if self._mapping is not None else None) or ()
        if self._named is not None:
            return next((column for column in columns if self._named in (*column.titles, column.name)), None)
        dates = [column for column in columns if column.datatype.iri in DATES]
        return dates[0] if len(dates) == 1 else None

    def _guess(self, row: dict[str, Any]) -> str:
        # Guessed per row, since messages of one topic may have different members.
        names = [name for name in row if name.rpartition(":")[2].lower() in _TIMES]
        if len(names) == 1:
            return names[0]
        if not row:
            raise ValueError("an object without members: an element needs at least its time")
        raise ValueError(
            f"{len(names) or 'no'} members look like the time: name the one that has it with --time-property, of "
            + ", ".join(row)
        )


def json_term(value: Any) -> Term:
    """The literal of a JSON value: numbers and booleans keep their type, strings are guessed but never as numbers."""
    if isinstance(value, bool):
        return guessed_term("true" if value else "false")
    if isinstance(value, JsonNumber):
        return guessed_term(value)
    text = str(value)
    # Only dates, dateTimes and IRIs are guessed of a string, and these begin so.
    if text[:4].isdecimal() or text.startswith("http"):
        term = guessed_term(text)
        if not term.endswith(("integer>", "decimal>", "double>")):
            return to_term(parse_term(term))
    # A printable text needs no other escapes than those of ``quoted``; the rest takes the canonical form by parsing.
    return quoted(text) if text.isprintable() else to_term(parse_term(quoted(text)))


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _flat(value: Any) -> Iterator[Any]:
    """A value, or the values of an array, nested arrays included."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _mapping(reading: Reading) -> TableMapping | None:
    if reading.json_mapping is None:
        return None
    return read_mapping(Path(reading.json_mapping), "", reading.stream, reading.prefixes, of_json=True)


_MEMBERS: Final = honoured(STREAM, TIMES, "json_mapping", "charset", "bad")

FORMATS = (
    Format(
        "json",
        "plain JSON, an element per object, its time a member",
        ENDINGS,
        follow=follow,
        decoder=decoder,
        timed=timed,
        honours={"timed": _MEMBERS, "follow": _MEMBERS, "decoder": honoured(_MEMBERS, "time")},
        guesses_time=True,
        resumes=True,
        media_types=("application/json",),
    ),
)
