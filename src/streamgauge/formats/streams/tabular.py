"""CSV and TSV: a row is an element, one of its columns the time (docs/own-data.md; ``csvw`` maps columns)."""

import csv
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Final, NamedTuple

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.charsets import check_charset, in_utf8
from streamgauge.formats.codings import ENDINGS as CODINGS
from streamgauge.formats.documents import FormatError, suffix_of
from streamgauge.formats.instants import DATES, InstantError, Instants, TimeFormError, from_pattern
from streamgauge.formats.streams.csvw import (
    TableColumn,
    TableMapping,
    cell_term,
    expand,
    header_columns,
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
from streamgauge.model.phrases import counted
from streamgauge.model.terms import XSD, Term

ENDINGS: Final = (".csv", ".tsv", ".tab")
BESIDE: Final = "-metadata.json"
"""The suffix of the mapping next to a file, appended to the file's name (Model for Tabular Data, 5.3)."""

_TIMES: Final = ("time", "timestamp", "datetime", "date", "resulttime")
_DELIMITERS: Final = ",;\t|"
_SEPARATOR: Final = re.compile(r'"?sep=(.)"?[\r\n]*')
"""The first line by which a file tells Excel its delimiter."""


def timed(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The rows of a file, or of several in name order, by their times; FormatError names file and line."""
    return number(in_order(_rows(whole, reading, refuse), whole.place, reading), reading)


def _rows(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[Item]:
    for document in whole.with_endings(ENDINGS):
        mapping = _mapping_of(document.place, document.name, reading)
        with document.open(charset=mapping.dialect.encoding) as opened:
            try:
                yield from Rows(opened, document.place, reading, mapping, refuse, instants(reading))
            except (OSError, EOFError) as error:
                raise FormatError(f"{document.place}: cannot be unpacked: {obstacle(error)}") from error


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The rows of an open file as they arrive, in their order."""
    numbering, mapping = Numbering(reading), _mapping_of(place, Path(place).name, reading)
    # A charset that the user names has been applied by the caller.
    if reading.charset is None:
        file = in_utf8(file, mapping.dialect.encoding)
        if reading.mark is not None and mapping.dialect.encoding is not None:
            reading.mark.charset = check_charset(mapping.dialect.encoding)
    for item in Rows(file, place, reading, mapping, refuse, instants(reading, strict=False)):
        try:
            yield numbering.element(*item)
        except FormatError as error:
            refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of messages that are tables of their own, with a header unless the mapping declares none."""
    numbering, times, messages = Numbering(reading), instants(reading, strict=False), 0
    mapping = _named_mapping("message", reading) or TableMapping()

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[StreamElement]:
        nonlocal messages
        messages += 1
        charset = reading.charset or mapping.dialect.encoding
        text = BytesIO(message_text(payload, place, reading, charset))
        rows = Rows(text, place, reading, mapping, refused, times, f"m{messages}", arrived)
        return [numbering.element(*item) for item in rows]

    return decode


def _mapping_of(place: str, name: str, reading: Reading) -> TableMapping:
    """The mapping that the user named, else the one next to the file, else the header's."""
    named = _named_mapping(name, reading)
    # The mapping of readings.csv.gz is that of readings.csv.
    coding = suffix_of(place)
    beside = Path((place[: -len(coding)] if coding in CODINGS else place) + BESIDE)
    if named is not None or not beside.is_file():
        return named or TableMapping()
    return read_mapping(beside, name, reading.stream, reading.prefixes)


def _named_mapping(table: str, reading: Reading) -> TableMapping | None:
    if reading.csv_mapping is None:
        return None
    return read_mapping(Path(reading.csv_mapping), table, reading.stream, reading.prefixes)


class _Table(NamedTuple):
    """The delimiter of a table, and the names in its header; ``None`` without a header."""

    delimiter: str = ","
    header: Sequence[str] | None = None


class Rows:
    """The rows of a table as elements; a bad row is refused with its line.

    ``label`` prefixes their blank nodes; ``arrived`` (ms), if given, replaces the rows' own times.
    """

    def __init__(
        self,
        file: IO[bytes],
        place: str,
        reading: Reading,
        mapping: TableMapping,
        refuse: Refuse,
        times: Instants,
        label: str = "",
        arrived: int | None = None,
    ) -> None:
        self._place, self._reading, self._refuse, self._mapping = place, reading, refuse, mapping
        self._instants, self._arrived = times, arrived
        # Blank nodes of several files of a folder must differ.
        self._label = label or "".join(sign for sign in Path(place).name if sign.isascii() and sign.isalnum())
        self._line = mapping.dialect.skip
        self._mixtures = Mixtures("--csv-mapping")
        self._mark, self._count, self._table, self._row_open = reading.mark or LineMark(), 0, _Table(), False
        self._begun = False
        self._mark.open = lambda: self._row_open
        self._texts = self._decoded(bounded_lines(file, place, reading.limit, refuse, mark=self._mark))

    def __iter__(self) -> Iterator[Item]:
        rows = self._opened()
        if rows is None:
            return
        header = self._table.header
        columns = self._columns(header)
        time = self._time_column(columns)
        for row in rows:
            self._count = count = self._count + 1
            where = f"{self._place}, line {self._line}"
            if not any(row) or row == header:  # a rotated table begins with its header again
                continue
            try:
                yield self._item(where, count, row, columns, time)
            except TimeFormError as error:
                self._refuse(FormatError(f"{where}: {error}; a `format` in a mapping (--csv-mapping) reads others"))
            except (FormatError, InstantError, ValueError) as error:
                self._refuse(error if isinstance(error, FormatError) else FormatError(f"{where}: {error}"))

    def _opened(self) -> Iterator[list[str]] | None:
        """The rows behind the header, or behind those that an earlier reader of the file took; ``None`` of no line."""
        if before := self._mark.carry("table", lambda: self._begun and [self._count, *self._table]):
            self._count, self._table, self._begun = before[0], _Table(*before[1:]), True
            return self._parsed(self._texts)
        first = self._first()
        if first is None:
            return None
        if not self._table.delimiter:
            self._table = _Table(_delimiter(first, self._place))
        rows = self._parsed(chain([first], self._texts))
        if self._mapping.dialect.header:
            self._table = self._table._replace(header=next(rows, []))
        self._begun = True
        return rows

    def _first(self) -> str | None:
        """The header, or the first row of a table without: the first line that is neither blank nor ``sep=;``."""
        stated = self._mapping.dialect.delimiter
        self._table = _Table(stated or "")
        for text in self._texts:
            separator = _SEPARATOR.fullmatch(text) if stated is None else None
            if separator is not None:
                self._table = _Table(separator[1])
            elif text.strip():
                return text
        return None

    def _decoded(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[str]:
        """The lines as text, without the dialect's skipped ones."""
        for count, line in lines:
            if count <= self._mapping.dialect.skip:
                continue
            self._line = count
            # Until the parser of rows is done with it: a cell in quotes may go over several lines.
            self._row_open = True
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                message = f"{self._place}, line {count}: not utf-8 text: {error.reason}"
                hint = "name its charset, as by ?charset=windows-1252 or dialect.encoding in a mapping"
                raise FormatError(f"{message}: {hint}") from error

    def _parsed(self, texts: Iterator[str]) -> Iterator[list[str]]:
        """The cells of each row, the header's included."""
        dialect, delimiter = self._mapping.dialect, self._table.delimiter
        # The limit is the process's, shared by all readers: it is only ever raised.
        csv.field_size_limit(max(csv.field_size_limit(), self._reading.limit))
        if dialect.quote is None:
            rows = csv.reader(texts, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        else:
            # Without ``strict``, Python reads malformed quotation as it can, silently.
            escape = None if dialect.doubled else "\\"
            rows = csv.reader(
                texts,
                delimiter=delimiter,
                quotechar=dialect.quote,
                doublequote=dialect.doubled,
                escapechar=escape,
                strict=True,
            )
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                alone = "new-line character" in str(error)  # csv's word for carriage returns without line feeds
                why = "lines end in carriage returns alone: save it with line feeds" if alone else f"not CSV: {error}"
                raise FormatError(f"{self._place}, line {self._line}: {why}") from error
            self._row_open = False
            yield [cell.strip() for cell in row]

    def _columns(self, header: Sequence[str] | None) -> list[tuple[int | None, TableColumn]]:
        """(index in a row, column) of the columns to read; the index is ``None`` for a virtual column."""
        columns = self._mapping.columns
        if columns is None:
            if header is None:
                raise FormatError(
                    f"{self._place}: a table without a header needs a mapping of its columns (--csv-mapping)"
                )
            self._refuse_names(header)
            columns_ = enumerate(header_columns(header, self._reading.stream, self._reading.prefixes))
            return [(place, column) for place, column in columns_ if column.name]
        if header is None:
            real = (column for column in columns if not column.virtual)
            # By identity: columns that describe cells alike are equal.
            places: dict[int, int] = {id(column): place for place, column in enumerate(real)}
            return [(places.get(id(column)), column) for column in columns]
        return [(None if column.virtual else self._index_of(column, header), column) for column in columns]

    def _index_of(self, column: TableColumn, header: Sequence[str]) -> int:
        for name in (*column.titles, column.name):
            if header.count(name) > 1:
                raise FormatError(f"{self._place}: two columns are named {name!r}: rename one of them")
            if name in header:
                return header.index(name)
        raise FormatError(f"{self._place}: the header has no column {column.name!r}: it has {', '.join(header)}")

    def _refuse_names(self, header: Sequence[str]) -> None:
        """FormatError for a header with a name twice, or one that is not text."""
        if "\0" in "".join(header):
            raise FormatError(f"{self._place}: NUL characters in the header: is it UTF-16, as by ?charset=utf-16-le?")
        for place, name in enumerate(header):
            if name and name in header[:place]:
                raise FormatError(f"{self._place}: two columns are named {name!r}: rename one of them")

    def _time_column(self, columns: Sequence[tuple[int | None, TableColumn]]) -> TableColumn | None:
        """The time column: the named one, else the only one with a date datatype, else the only one of ``_TIMES``."""
        if self._arrived is not None:
            return None
        real = [(place, column) for place, column in columns if place is not None]
        named = self._reading.time_property
        if named is not None:
            candidates = [
                one for one in real if named in (one[1].name, *one[1].titles) or one[1].predicate == self._iri(named)
            ]
        else:
            candidates = [one for one in real if one[1].datatype.iri in DATES]
            candidates = candidates or [one for one in real if one[1].name.rpartition(":")[2].lower() in _TIMES]
        if len(candidates) == 1:
            return candidates[0][1]
        names = ", ".join(column.name for _, column in real)
        what = f"no column {named!r}" if named else f"{len(candidates) or 'no'} columns that look like the time"
        # A title or comment of one cell is the usual first line of a file whose header comes later.
        later = '; if the header comes later, "skipRows" in a mapping skips lines' if len(real) < 2 else ""
        raise FormatError(f"{self._place}: {what}: name it with --time-property, one of {names}{later}")

    def _iri(self, named: str) -> Term | None:
        try:
            return property_iri(named, self._reading.prefixes)
        except ValueError:
            return None

    def _item(
        self,
        where: str,
        count: int,
        row: Sequence[str],
        columns: Sequence[tuple[int | None, TableColumn]],
        time: TableColumn | None,
    ) -> Item:
        """The element of one row."""
        # Virtual columns have no cell.
        least = 1 + max(place for place, _ in columns if place is not None)
        if len(row) < least:
            raise ValueError(f"{counted(len(row), 'cell')} where the header has {least}")
        if self._mapping.columns is None:
            self._refuse_unnamed(row, {place for place, _ in columns}, least)
        cells = {column.name: _cell(column, None if place is None else row[place]) for place, column in columns}
        refuse_missing([column for _, column in columns], cells)
        at = self._arrived if time is None else self._instant(cells[time.name], time, where)
        assert at is not None
        values = {**cells, "_row": str(count), "_sourceRow": str(self._line)}
        triples = [
            (self._subject(column, values), column.predicate, item)
            for _, column in columns
            if column.predicate is not None
            for item in self._objects(column, values)
        ]
        if not triples:
            raise ValueError("every cell but the time is empty: an element needs at least one triple")
        return where, at, tuple(dict.fromkeys(triples))

    def _refuse_unnamed(self, row: Sequence[str], named: Container[int | None], least: int) -> None:
        """ValueError for a cell with a value in a column without a name; spreadsheets leave empty ones."""
        for place, cell in enumerate(row):
            if cell and place not in named:
                beyond = f"{counted(len(row), 'cell')} where the header has {least}"
                remedy = "name it, or leave it out by a mapping (--csv-mapping)"
                raise ValueError(
                    beyond if place >= least else f"column {place + 1} has no name in the header: {remedy}"
                )

    def _instant(self, text: str, column: TableColumn, where: str) -> int:
        if not text:
            raise ValueError(f"no time: column {column.name} is empty")
        if column.datatype.pattern is not None:
            moment: datetime = from_pattern(text, column.datatype.pattern)
            return self._instants.of_moment(moment, text, where)
        return self._instants.of_text(text, where)

    def _subject(self, column: TableColumn, values: Mapping[str, str]) -> Term:
        if column.about is None:
            return f"_:r{values['_sourceRow']}{self._label}"
        return self._expanded(column.about, column, values)

    def _objects(self, column: TableColumn, values: Mapping[str, str]) -> Iterator[Term]:
        text = values[column.name]
        if column.value is not None:
            if text or column.virtual:
                yield self._expanded(column.value, column, values)
            return
        for part in text.split(column.separator) if column.separator else (text,):
            if part:
                try:
                    term = cell_term(part, column)
                    # A term without escapes, tags and foreign datatypes is canonical already; parsing costs more.
                    plain = (
                        part.isprintable()
                        and "\\" not in term
                        and column.lang is None
                        and column.datatype.iri[: len(XSD)] in (XSD, "")
                    )
                    if not column.datatype.iri and (note := self._mixtures.note(column.name, part, term)):
                        self._reading.note(f"{self._place}, line {self._line}: {note}")
                    yield term if plain else to_term(parse_term(term))
                except ValueError as error:
                    raise ValueError(f"column {column.name}: {error}") from error

    def _expanded(self, template: str, column: TableColumn, values: Mapping[str, str]) -> Term:
        return expand(template, {**values, "_name": column.name}, self._reading.stream, self._reading.prefixes)


def _cell(column: TableColumn, text: str | None) -> str:
    """A cell's text, or the column's default if the cell is missing or null."""
    return column.default if text is None or text in column.null else text


def _delimiter(header: str, place: str) -> str:
    """The delimiter: a tab in a .tsv, else the candidate that is most frequent in the header, by default a comma."""
    if place.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    # True sorts above False, so that a comma wins among equally frequent signs, as when there is none at all.
    return max(_DELIMITERS, key=lambda sign: (header.count(sign), sign == ","))


TABLES: Final = honoured(STREAM, TIMES, "csv_mapping", "charset", "bad")

FORMATS = (
    Format(
        "csv",
        "CSV or TSV, an element per row, its time in a column",
        ENDINGS,
        follow=follow,
        decoder=decoder,
        timed=timed,
        honours={"timed": TABLES, "follow": TABLES, "decoder": honoured(TABLES, "time")},
        guesses_time=True,
        resumes=True,
        media_types=("text/csv",),
    ),
)
