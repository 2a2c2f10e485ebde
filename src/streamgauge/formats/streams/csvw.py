"""The meaning of a table's columns: from its header by convention, or from a CSV on the Web mapping.

A mapping is a JSON file in W3C's Metadata Vocabulary for Tabular Data (https://www.w3.org/TR/tabular-metadata/), of
which these keys are read: ``tables`` (by ``url``), ``dialect``, ``tableSchema`` with ``columns``, and of columns,
schema and table ``aboutUrl``, ``propertyUrl``, ``valueUrl``, ``datatype``, ``lang``, ``null``, ``default``,
``separator``, ``required``, ``suppressOutput``, ``virtual``. The table's URL is the IRI of the stream. Any other key
that would change the meaning is refused by name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urljoin

from streamgauge.formats.bounds import BoundError, read_json
from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.charsets import CharsetError, check_charset
from streamgauge.formats.documents import FormatError
from streamgauge.formats.instants import DATES, NUMBERS, InstantError, from_pattern, iso, read_moment, strptime_pattern
from streamgauge.formats.json_values import json_path
from streamgauge.formats.streams.properties import property_iri
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import offered
from streamgauge.model.terms import XSD, Term, quoted

_INHERITED: Final = ("aboutUrl", "propertyUrl", "valueUrl", "datatype", "lang", "null", "default", "separator")
_COLUMN: Final = frozenset({*_INHERITED, "name", "titles", "required", "ordered", "suppressOutput", "virtual"})
_IGNORED: Final = frozenset({"textDirection", "tableDirection", "notes", "@id", "@type"})
_CONTEXT: Final = "http://www.w3.org/ns/csvw"
_SCHEMA: Final = frozenset({*_INHERITED, "columns", "primaryKey", "foreignKeys", "rowTitles"})
_TABLE: Final = frozenset({*_INHERITED, "url", "tableSchema", "dialect", "transformations"})
_DIALECT: Final = frozenset(
    {"delimiter", "quoteChar", "header", "encoding", "skipRows", "doubleQuote", "headerRowCount"}
)
# Names of datatypes that the vocabulary has beside those of XML Schema (Metadata Vocabulary, 5.11.1).
_ALIASES: Final = {"number": "double", "datetime": "dateTime", "any": "string", "binary": "base64Binary"}
_OTHERS: Final = {
    "xml": "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral",
    "html": "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML",
    "json": "http://www.w3.org/ns/csvw#JSON",
}
_LEXICAL: Final = {
    "integer": re.compile(r"[+-]?\d+", re.ASCII),
    "decimal": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII),
    "double": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN", re.ASCII),
}
_ZONE: Final = r"(Z|[+-](0\d|1[0-3]):[0-5]\d|[+-]14:00)?"
_DAYS: Final = r"(0[1-9]|[12]\d|3[01])"
_MONTHS: Final = r"(0[1-9]|1[0-2])"
_CLOCK: Final = r"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?|24:00:00(\.0+)?)"
_FORMS: Final = {
    "time": re.compile(_CLOCK + _ZONE, re.ASCII),
    "gYear": re.compile(rf"-?([1-9]\d{{3,}}|0\d{{3}}){_ZONE}", re.ASCII),
    "gYearMonth": re.compile(rf"-?([1-9]\d{{3,}}|0\d{{3}})-{_MONTHS}{_ZONE}", re.ASCII),
    "gMonth": re.compile(rf"--{_MONTHS}{_ZONE}", re.ASCII),
    "gDay": re.compile(rf"---{_DAYS}{_ZONE}", re.ASCII),
    "gMonthDay": re.compile(rf"--{_MONTHS}-{_DAYS}{_ZONE}", re.ASCII),
    "duration": re.compile(r"-?P(?=.)(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", re.ASCII),
    "dayTimeDuration": re.compile(r"-?P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", re.ASCII),
    "yearMonthDuration": re.compile(r"-?P(?=.)(\d+Y)?(\d+M)?", re.ASCII),
    "hexBinary": re.compile(r"([0-9a-fA-F]{2})*"),
    "base64Binary": re.compile(r"([A-Za-z0-9+/] ?){0,}(= ?)?=?"),
    "language": re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*"),
}
"""Lexical forms of datatypes whose cells are taken as written."""

_FREE: Final = ("string", "anyAtomicType", "anyURI", "QName", "normalizedString", "token", "Name", "NMTOKEN")
_RANGES: Final = {
    **{
        name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for name, bits in (("byte", 8), ("short", 16), ("int", 32), ("long", 64))
    },
    **{f"unsigned{name}": (0, 2**bits - 1) for name, bits in (("Byte", 8), ("Short", 16), ("Int", 32), ("Long", 64))},
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
}
"""The least and the greatest value of datatypes of whole numbers."""

_KNOWN: Final = frozenset(iri.removeprefix(XSD) for iri in (*NUMBERS, *DATES)) | {"boolean", *_FORMS, *_FREE}
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d(Z|[+-]\d\d:\d\d)?", re.ASCII)
_TRUTH: Final = {text: word for word in ("true", "false") for text in (word, word.title(), word.upper())}
"""As RDF, Python and Excel write booleans."""
_VARIABLE: Final = re.compile(r"\{([+#]?)([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The CSV dialect; ``delimiter`` ``None`` is detected in the header, which follows ``skip`` lines.

    With ``doubled`` a quote in a quoted cell is written twice, else after a backslash.
    """

    delimiter: str | None = None
    quote: str | None = '"'
    doubled: bool = True
    header: bool = True
    encoding: str | None = None
    skip: int = 0


@dataclass(frozen=True, slots=True)
class ColumnDatatype:
    """A datatype IRI with the format of its cells; an empty IRI lets each cell's text decide."""

    iri: str = XSD + "string"
    pattern: str | None = None
    decimal: str = "."
    group: str = ""
    truth: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: the predicate of its triples (``None`` if it produces none) and how its cells become terms."""

    name: str
    titles: tuple[str, ...] = ()
    predicate: Term | None = None
    datatype: ColumnDatatype = ColumnDatatype()
    about: str | None = None
    value: str | None = None
    lang: str | None = None
    null: tuple[str, ...] = ("",)
    default: str = ""
    separator: str | None = None
    required: bool = False
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class TableMapping:
    """The columns of a table, ``None`` if its header names them, and its dialect.

    ``iterator`` is the path from a message of JSON to its rows.
    """

    columns: tuple[TableColumn, ...] | None = None
    dialect: CsvDialect = field(default_factory=CsvDialect)
    iterator: str | None = None


def read_mapping(
    path: Path, table: str, base: str, prefixes: Mapping[str, str], *, of_json: bool = False
) -> TableMapping:
    """The mapping in a file for the table with that file name; ``base`` is the table's URL. FormatError names the key.

    A mapping ``of_json`` may have an ``iterator``, and its cells keep the type of their JSON value by default.
    """
    try:
        data = read_json(path.read_bytes())
    except OSError as error:
        raise FormatError(f"{path}: the mapping of columns cannot be read: {obstacle(error)}") from error
    except BoundError as error:
        raise FormatError(f"{path}: {error}") from error
    except ValueError as error:
        raise FormatError(f"{path}: not JSON: a mapping of columns is a JSON file (docs/own-data.md)") from error
    try:
        # Ours, not W3C's: the vocabulary is about tables, and JSON needs the path to its rows.
        iterator = data.pop("iterator", None) if of_json and isinstance(data, dict) else None
        if iterator is not None:
            # Parsed now, so that a mistake is found in the mapping and not at the first message.
            json_path(str(iterator))
        return replace(_mapping(_table(data, table), base, prefixes, "" if of_json else "string"), iterator=iterator)
    except (ValueError, InstantError) as error:
        raise FormatError(f"{path}: {error}") from error


def header_columns(header: Sequence[str], base: str, prefixes: Mapping[str, str]) -> tuple[TableColumn, ...]:
    """The columns of a header: a prefixed name or IRI is the predicate, any other name becomes ``<base#name>``."""
    guessed = ColumnDatatype("")
    return tuple(
        TableColumn(name, (name,), header_predicate(name, base, prefixes), guessed, value=None) for name in header
    )


def expand(template: str, values: Mapping[str, str], base: str, prefixes: Mapping[str, str]) -> Term:
    """The IRI of a URI template (RFC 6570: ``{name}``, ``{+name}``, ``{#name}``), relative to the table; ValueError."""

    def one(match: re.Match[str]) -> str:
        how, name = match.groups()
        if name not in values:
            raise ValueError(f"{template}: there is no column {name}: the columns are {', '.join(values)}")
        # A worked example: of the value ``a b/c`` the template ``{x}`` makes ``a%20b%2Fc`` and ``{+x}`` ``a%20b/c``.
        text = values[name]
        # Simple expansion encodes reserved characters, ``+`` and ``#`` keep them (RFC 6570, 3.2.2 to 3.2.4).
        if not how:
            return quote(text, safe="")
        return ("#" if how == "#" else "") + quote(text, safe="!#$&'()*+,/:;=?@[]%")

    if "{" in (rest := _VARIABLE.sub("", template)) or "}" in rest:
        raise ValueError(f"{template} is not a template: a brace has no other one")
    return _absolute(_VARIABLE.sub(one, template), base, prefixes)


def refuse_missing(columns: Sequence[TableColumn], cells: Mapping[str, object]) -> None:
    """ValueError for a row in which a required column has no value; ``cells`` are by name."""
    if missing := next((column.name for column in columns if column.required and not cells[column.name]), None):
        raise ValueError(f"column {missing} is required, and empty here")


def cell_term(text: str, column: TableColumn) -> Term:
    """The literal of a cell; ValueError if its text does not fit the column's datatype."""
    kind = column.datatype
    # A language is inherited from the table by its numbers and dates too, which have none.
    if column.lang is not None and kind.iri in ("", XSD + "string"):
        return f"{quoted(text)}@{column.lang.lower()}"
    if not kind.iri:
        return guessed_term(text)
    lexical = _lexical(text, kind)
    return quoted(lexical) if kind.iri == XSD + "string" else f"{quoted(lexical)}^^<{kind.iri}>"


def guessed_term(text: str) -> Term:
    """The term that a cell's text suggests: a boolean, a number, an IRI, a dateTime, a date, else a string."""
    if text in _TRUTH:
        return f'"{_TRUTH[text]}"^^<{XSD}boolean>'
    for name, form in _LEXICAL.items():
        # These two are numbers of xsd:double, but words in most tables.
        if form.fullmatch(text) and text not in ("INF", "NaN"):
            return f'"{text}"^^<{XSD}{name}>'
    if text.startswith(("http://", "https://")):
        return _guessed_iri(text)
    return _guessed_date(text) if text[4:5] == "-" else quoted(text)


def _guessed_iri(text: str) -> Term:
    """An IRI, or a string if a sign in it is not allowed in one."""
    try:
        return to_term(parse_term(f"<{text}>"))
    except ValueError:
        return quoted(text)


def _guessed_date(text: str) -> Term:
    """A dateTime or date of the calendar, else a string: 2026-02-30 is not a date."""
    try:
        moment = read_moment(text)
    except InstantError:
        return quoted(text)
    if ":" not in text[:14]:
        return f'"{text}"^^<{XSD}date>' if _DAY.fullmatch(text) else quoted(text)
    return f'"{text if _ISO.fullmatch(text) else iso(moment)}"^^<{XSD}dateTime>'


def _lexical(text: str, kind: ColumnDatatype) -> str:
    """The lexical form of a cell of a datatype."""
    name = kind.iri.removeprefix(XSD)
    if kind.iri in NUMBERS:
        # With the group "." and the decimal ",", as in German, 1.234,5 becomes 1234.5: groups first, or the two would
        # be mixed up.
        plain = text.replace(kind.group, "") if kind.group else text
        plain = plain if kind.decimal == "." else plain.replace(kind.decimal, ".")
        form = _LEXICAL["double" if name == "float" else name if name in _LEXICAL else "integer"]
        least, greatest = _RANGES.get(name, (None, None))
        if (
            not form.fullmatch(plain)
            or (least is not None and int(plain) < least)
            or (greatest is not None and int(plain) > greatest)
        ):
            raise ValueError(f"{text[:80]!r} is not a valid {name}")
        return plain
    if kind.iri in DATES:
        if kind.pattern is None and name != "date" and _ISO.fullmatch(text):
            return text
        moment = read_moment(text) if kind.pattern is None else from_pattern(text, kind.pattern)
        return moment.date().isoformat() if name == "date" else iso(moment)
    if kind.iri == XSD + "boolean":
        yes, no = kind.truth or ("true", "false")
        if text not in (yes, no, *(("1", "0") if kind.truth is None else ())):
            raise ValueError(f"{text[:80]!r} is not a boolean: {yes} or {no} is expected")
        return text if kind.truth is None else "true" if text == yes else "false"
    if name in _FORMS and not _FORMS[name].fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not a valid {name}")
    return text


def _table(data: Any, name: str) -> Mapping[str, Any]:
    """The description of the table with that file name, with the defaults of its table group."""
    _check_object(data, "the mapping")
    # Its second item may have @language and @base, which would change terms.
    if data.get("@context", _CONTEXT) not in (_CONTEXT, [_CONTEXT], [_CONTEXT, {}]):
        raise ValueError(f"@context: {_CONTEXT} alone is supported: write lang, and absolute IRIs in templates")
    data = {key: value for key, value in data.items() if key != "@context"}
    if "tables" not in data:
        return _checked(data, _TABLE, "the mapping")
    tables = data["tables"] if isinstance(data["tables"], list) else []
    named = [table for table in tables if isinstance(table, dict) and Path(str(table.get("url", ""))).name == name]
    if len(named) != 1:
        raise ValueError(f"tables: {len(named) or 'no'} entries have the url {name}: expected one")
    group = _checked(data, _TABLE | {"tables"}, "the mapping")
    return {**{key: value for key, value in group.items() if key != "tables"}, **_checked(named[0], _TABLE, "tables")}


def _mapping(table: Mapping[str, Any], base: str, prefixes: Mapping[str, str], datatype: str) -> TableMapping:
    schema = _checked(table.get("tableSchema", {}), _SCHEMA, "tableSchema")
    dialect = _dialect(_checked(table.get("dialect", {}), _DIALECT, "dialect"))
    described = schema.get("columns")
    if described is None:
        return TableMapping(None, dialect)
    if not isinstance(described, list) or not described:
        raise ValueError("tableSchema.columns: expected a list of columns")
    # Inherited properties: those of a column override those of its schema, and these the table's.
    shared = {"datatype": datatype, **{key: part[key] for part in (table, schema) for key in _INHERITED if key in part}}
    columns = [
        _column({**shared, **_checked(column, _COLUMN, f"column {place}")}, f"column {place}", base, prefixes)
        for place, column in enumerate(described, 1)
    ]
    names = [column.name for column in columns]
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise ValueError(f"two columns have the name {twice!r}: give each its own, titles may be equal")
    return TableMapping(tuple(columns), dialect)


def _column(data: Mapping[str, Any], where: str, base: str, prefixes: Mapping[str, str]) -> TableColumn:
    if _flag(data, "ordered", where):
        raise ValueError(
            f"{where}: ordered is not supported: the parts of a cell are objects of their own, in no order"
        )
    titles = _titles(data.get("titles"))
    name = data.get("name", titles[0] if titles else None)
    if not isinstance(name, str) or not name:
        raise ValueError(f"{where}: give it a name or a title")
    texts = {key: data.get(key) for key in ("aboutUrl", "propertyUrl", "valueUrl", "lang", "default", "separator")}
    if wrong := next((key for key, value in texts.items() if not isinstance(value, str | None)), None):
        raise ValueError(f"{where}: {wrong}: expected a string")
    if texts["lang"] is not None and not _FORMS["language"].fullmatch(texts["lang"]):
        raise ValueError(f"{where}: lang: {texts['lang']!r} is not a language tag: write de or pt-BR")
    stated = texts["propertyUrl"]
    plain = f"<{base}#{quote(name, safe='')}>"
    predicate = plain if stated is None else expand(stated, {"_name": name}, base, prefixes)
    null = data.get("null", "")
    return TableColumn(
        name,
        titles or (name,),
        None if _flag(data, "suppressOutput", where) else predicate,
        _datatype(data["datatype"], where),
        texts["aboutUrl"],
        texts["valueUrl"],
        texts["lang"],
        tuple(map(str, null)) if isinstance(null, list) else (str(null),),
        texts["default"] or "",
        texts["separator"],
        _flag(data, "required", where),
        _flag(data, "virtual", where),
    )


def _flag(data: Mapping[str, Any], key: str, where: str, default: bool = False) -> bool:
    value = data.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{where}: {key} is {value!r}: expected true or false")
    return value


def _datatype(datatype_: Any, where: str) -> ColumnDatatype:
    if datatype_ == "":
        return ColumnDatatype("")
    data = {"base": datatype_} if isinstance(datatype_, str) else datatype_
    data = _checked(data, frozenset({"base", "format"}), f"{where}: datatype", ignored=frozenset())
    iri = _datatype_iri(str(data.get("base", "string")), where)
    form = data.get("format")
    if iri in NUMBERS:
        numbers = {} if form is None else form
        if not isinstance(numbers, dict) or set(numbers) - {"decimalChar", "groupChar"}:
            raise ValueError(f"{where}: datatype.format of numbers allows decimalChar and groupChar only")
        return ColumnDatatype(iri, None, str(numbers.get("decimalChar", ".")), str(numbers.get("groupChar", "")))
    if iri == XSD + "boolean" and form is not None:
        yes, bar, no = str(form).partition("|")
        if not bar:
            raise ValueError(f"{where}: datatype.format of a boolean is two words such as yes|no")
        return ColumnDatatype(iri, truth=(yes, no))
    if form is not None and iri not in DATES:
        raise ValueError(f"{where}: datatype.format is supported for numbers, dates and booleans only")
    if form is not None:
        strptime_pattern(str(form))
    return ColumnDatatype(iri, None if form is None else str(form))


def _datatype_iri(base: str, where: str) -> str:
    """The IRI of a datatype, which is one of the vocabulary or an IRI; ValueError."""
    name = _ALIASES.get(base, base).removeprefix("xsd:")
    if name in _OTHERS or name in _KNOWN:
        return _OTHERS.get(name, XSD + name)
    if ":" not in name:
        raise ValueError(
            f"{where}: datatype {base!r} is unknown: {offered(base, sorted({*_KNOWN, *_ALIASES, *_OTHERS}))}"
        )
    return name


def _dialect(data: Mapping[str, Any]) -> CsvDialect:
    delimiter, sign = data.get("delimiter"), data.get("quoteChar", '"')
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError("dialect.delimiter: expected one character")
    if sign is not None and (not isinstance(sign, str) or len(sign) != 1):
        raise ValueError("dialect.quoteChar: expected one character")
    skip, rows = data.get("skipRows", 0), data.get("headerRowCount", 1)
    # ``isinstance`` would accept true, which is an int in Python.
    if type(skip) is not int or skip < 0 or rows not in (0, 1):
        raise ValueError("dialect: skipRows is a number of lines, headerRowCount is 0 or 1")
    encoding = data.get("encoding")
    if encoding is not None:
        try:
            check_charset(str(encoding))
        except CharsetError as error:
            raise ValueError(f"dialect.encoding: {error}") from error
    header = _flag(data, "header", "dialect", default=True) and rows == 1
    doubled = _flag(data, "doubleQuote", "dialect", default=True)
    return CsvDialect(delimiter, sign, doubled, header, encoding and str(encoding), skip)


def _titles(titles: Any) -> tuple[str, ...]:
    """The titles of a column: a string, a list of strings, or either per language."""
    if isinstance(titles, dict):
        return tuple(title for value in titles.values() for title in _titles(value))
    return tuple(map(str, titles)) if isinstance(titles, list) else () if titles is None else (str(titles),)


def _checked(data: Any, known: frozenset[str], where: str, ignored: frozenset[str] = _IGNORED) -> Mapping[str, Any]:
    """The object without annotations (keys with a colon); ValueError for a key that would change the meaning."""
    _check_object(data, where)
    unknown = [key for key in data if key not in known | ignored and ":" not in key]
    if unknown:
        raise ValueError(f"{where}: {unknown[0]} is not supported: use {', '.join(sorted(known))}")
    return {key: value for key, value in data.items() if key in known}


def _check_object(data: Any, where: str) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object, as {{...}}")


def header_predicate(name: str, base: str, prefixes: Mapping[str, str]) -> Term:
    """The property of a column or member by its name: an IRI or prefixed name, else one of the stream's own."""
    try:
        return property_iri(name, prefixes)
    except ValueError:
        return f"<{base}#{quote(name, safe='')}>"


def _absolute(text: str, base: str, prefixes: Mapping[str, str]) -> Term:
    try:
        return property_iri(text, prefixes)
    except ValueError:
        # An invalid absolute IRI remains an error; anything else is relative to the table.
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
            raise
    # For schemes without a hierarchy, such as urn, urljoin drops the base.
    joined = urljoin(base, text) if base.startswith("http") else base + text
    return property_iri(f"<{joined}>", {})
