"""Conformance cases: data files beside this one, a theme each; read strictly, errors name file, case and field.

A case is a query, windows, a stream on one line (``formats/notation.py``), what of the semantics differs from the base
(window close, element by element, ``[o, c)``, t0 = 0, Rstream, empty answers notified), and the answers, by hand.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

from streamgauge.formats import notation
from streamgauge.formats.fields import FieldError
from streamgauge.formats.semantics import from_json
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.terms import Row
from streamgauge.query import QueryError, parse_sparql

OWN = "own"
"""The name of the semantics that a case brings along."""

_WORDS = ("name", "why", "source", "stream", "advance", "expected")
_ASKED = ("window", "windows", "query", "static", "query_r2s")
_CHOICES = tuple(field.name for field in fields(Semantics) if field.name not in {"name", "sources"})
_WINDOW = ("window", "kind", "on", "name")
_ALL = "SELECT ?s { ?s <urn:p> ?o }"


class CaseError(MistakeError, ValueError):
    """A case that is not as it should be; the sentence names file, case and field."""


@dataclass(frozen=True)
class Case:
    """One conformance case; times in ms as written, ``expected`` are (instant, rows) by hand, in order."""

    theme: str
    name: str
    why: str
    source: str
    query: ContinuousQuery
    semantics: Semantics
    stream: tuple[StreamElement, ...]
    advance: int
    expected: tuple[tuple[int, tuple[Row, ...]], ...]

    def scaled(self, unit: int) -> "Case":
        """The same case with ``unit`` ms for each of its own; stated answers are left out, ``timestamp()`` moves."""
        chosen = self.semantics
        period, lateness, since = chosen.period, chosen.lateness, chosen.since
        semantics = replace(
            chosen,
            t0=chosen.t0 * unit,
            time_unit=chosen.time_unit * unit,
            period=None if period is None else period * unit,
            lateness=None if lateness is None else lateness * unit,
            since=None if since is None else since * unit,
        )
        windows = tuple(_scaled(each, unit) for each in self.query.windows)
        stream = tuple(_later(element, unit) for element in self.stream)
        query = replace(self.query, windows=windows)
        return replace(self, query=query, semantics=semantics, stream=stream, advance=self.advance * unit, expected=())

    def widened(self, by: int) -> "Case":
        """The same case with time-based windows whose size and slide are longer (ms); stated answers are left out."""
        windows = tuple(_widened(each, by) for each in self.query.windows)
        return replace(self, query=replace(self.query, windows=windows), expected=())


def _scaled(seen: StreamWindow, unit: int) -> StreamWindow:
    window = seen.window
    if window.kind == "count":
        return seen
    return replace(seen, window=Window(window.size * unit, window.slide * unit, window.kind))


def _widened(seen: StreamWindow, by: int) -> StreamWindow:
    window = seen.window
    if window.kind != "time":
        return seen
    return replace(seen, window=Window(window.size + by, window.slide + by))


def _later(element: StreamElement, unit: int) -> StreamElement:
    until = None if element.until is None else element.until * unit
    return replace(element, time=element.time * unit, until=until)


@cache
def load() -> tuple[Case, ...]:
    """Every case, by theme and then as written; CaseError names what is wrong."""
    found: list[Case] = []
    for file in sorted(files(__package__).joinpath("cases").iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            found += read(file.read_text(encoding="utf-8"), file.name.removesuffix(".toml"))
    names = [case.name for case in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CaseError(f"two cases are named {twice[0]!r}: name each differently")
    return tuple(found)


def read(text: str, theme: str) -> list[Case]:
    """The cases of one file; CaseError names the file (its theme), the case and the field."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CaseError(f"{theme}.toml: {error}") from error
    if set(data) - {"case"}:
        raise CaseError(f"{theme}.toml: {', '.join(sorted(set(data) - {'case'}))} is unknown: only [[case]] tables")
    return [_case(table, theme, number) for number, table in enumerate(data.get("case", ()), 1)]


def _case(table: Mapping[str, Any], theme: str, number: int) -> Case:
    where = f"{theme}.toml, case {number}"
    if isinstance(table.get("name"), str):
        where = f"{theme}.toml, case {table['name']!r}"
    _only(table, (*_WORDS, *_ASKED, *_CHOICES), where)
    for name in _WORDS:
        if name not in table:
            raise CaseError(f"{where}: {name} is missing")
    try:
        query, semantics = _query(table), _semantics(table)
        elements = notation.stream(table["stream"])
        expected = tuple((instant, notation.rows(rows)) for instant, rows in table["expected"])
    except (QueryError, FieldError, notation.NotationError, TypeError, ValueError) as error:
        raise CaseError(f"{where}: {error}") from error
    name, why, source, advance = (table[word] for word in ("name", "why", "source", "advance"))
    return Case(theme, name, why, source, query, semantics, elements, advance, expected)


def _only(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    if unknown := sorted(set(table) - set(known)):
        raise CaseError(f"{where}: {unknown[0]} is unknown: the fields are {', '.join(known)}")


def _query(table: Mapping[str, Any]) -> ContinuousQuery:
    if ("window" in table) == ("windows" in table):
        raise ValueError("either window = [size, slide] or windows = [...]")
    windows = tuple(map(_window, table["windows"] if "windows" in table else [{"window": table["window"]}]))
    r2s = R2S(table["query_r2s"]) if "query_r2s" in table else None
    form = parse_sparql(table.get("query", _ALL))
    return ContinuousQuery(form, windows, r2s, static=notation.triples(table.get("static", "")))


def _window(table: Mapping[str, Any]) -> StreamWindow:
    _only(table, _WINDOW, "windows")
    size, slide = table["window"]
    window = Window(size, slide, table.get("kind", "time"))
    return StreamWindow(notation.iri(table.get("on", "test")), window, table.get("name"))


def _semantics(table: Mapping[str, Any]) -> Semantics:
    chosen = {name: table[name] for name in _CHOICES if name in table}
    return from_json({"name": OWN, "tick": "element", **chosen})
