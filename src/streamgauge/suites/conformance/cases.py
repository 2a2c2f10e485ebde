"""Conformance cases, a theme a data file in ``cases/``, and the tasks for an engine that they make.

A case is a query, windows, a stream on one line (``formats/notation.py``), the fields in which the semantics differ
from the base (window close, element by element, ``[o, c)``, t0 = 0, Rstream, empty answers notified), and the answers,
by hand. Errors name file, case and field. A task is a case under its own semantics or a profile, on the engine's scale.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from math import lcm
from typing import Any

from streamgauge.formats import notation
from streamgauge.formats.fields import FieldError, decode
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Clock, Semantics
from streamgauge.model.terms import Row
from streamgauge.query import QueryError, parse, parse_sparql, print_query
from streamgauge.semantics.arrivals import admit, origins
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError

OWN = "own"
"""The name of the semantics that a case states itself."""

_WORDS = ("name", "why", "source", "stream", "advance", "expected")
_QUESTION_FIELDS = ("window", "windows", "query", "static", "query_r2s", "window_clause")
_CHOICES = tuple(field.name for field in fields(Semantics) if field.name not in {"name", "sources"})
_WINDOW = ("window", "kind", "on", "name")
_ALL = "SELECT ?s { ?s <urn:p> ?o }"


class CaseError(MistakeError, ValueError):
    """An invalid case; the sentence names file, case and field."""


@dataclass(frozen=True)
class ConformanceCase:
    """A conformance case; times in ms as written, ``expected`` are hand-written (instant, rows), in order."""

    theme: str
    name: str
    why: str
    source: str
    query: ContinuousQuery
    semantics: Semantics
    stream: tuple[StreamElement, ...]
    advance: int
    expected: tuple[tuple[int, tuple[Row, ...]], ...]

    @property
    def slug(self) -> str:
        """The name as a part of an address: letters a to z and digits, joined by hyphens; ``[`` is ``closed``."""
        # "Borders [o, c)" and "Borders (o, c]" would otherwise have the same slug.
        text = self.name.lower().replace("[", " closed ").replace("]", " closed ")
        return re.sub(r"[^a-z0-9]+", "-", text).strip("-")

    def scaled(self, unit: int) -> "ConformanceCase":
        """The same case with ``unit`` ms for each of its own; stated answers are left out, ``timestamp()`` moves."""
        chosen = self.semantics
        timed = {name: getattr(chosen, name) for name in ("t0", "time_unit", "period", "lateness", "since")}
        semantics = replace(chosen, **{name: ms * unit for name, ms in timed.items() if ms is not None})
        windows = tuple(_scaled(window, unit) for window in self.query.windows)
        stream = tuple(_later(element, unit) for element in self.stream)
        query = replace(self.query, windows=windows)
        return replace(self, query=query, semantics=semantics, stream=stream, advance=self.advance * unit, expected=())

    def widened(self, by: int) -> "ConformanceCase":
        """The same case with time-based windows whose size and slide are longer (ms); stated answers are left out."""
        windows = tuple(_widened(window, by) for window in self.query.windows)
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
def load() -> tuple[ConformanceCase, ...]:
    """Every case, by theme and in the order of its file; CaseError."""
    cases: list[ConformanceCase] = []
    for file in sorted(files(__package__).joinpath("cases").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            cases += read(file.read_text(encoding="utf-8"), file.name.removesuffix(".toml"))
    names = [case.name for case in cases]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CaseError(f"two cases are named {twice[0]!r}: name each differently")
    return tuple(cases)


def read(text: str, theme: str) -> list[ConformanceCase]:
    """The cases of one file; CaseError names the file (its theme), the case and the field."""
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        raise CaseError(f"{theme}.toml: {error}") from error
    if set(data) - {"case"}:
        raise CaseError(f"{theme}.toml: {', '.join(sorted(set(data) - {'case'}))} is unknown: only [[case]] tables")
    return [_case(table, theme, number) for number, table in enumerate(data.get("case", ()), 1)]


def _case(table: Mapping[str, Any], theme: str, number: int) -> ConformanceCase:
    where = f"{theme}.toml, case {number}"
    if isinstance(table.get("name"), str):
        where = f"{theme}.toml, case {table['name']!r}"
    _only(table, (*_WORDS, *_QUESTION_FIELDS, *_CHOICES), where)
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
    return ConformanceCase(theme, name, why, source, query, semantics, elements, advance, expected)


def _only(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    if unknown := sorted(set(table) - set(known)):
        raise CaseError(f"{where}: {unknown[0]} is unknown: the fields are {', '.join(known)}")


def _query(table: Mapping[str, Any]) -> ContinuousQuery:
    if ("window" in table) == ("windows" in table):
        raise ValueError("either window = [size, slide] or windows = [...]")
    windows = tuple(map(_window, table["windows"] if "windows" in table else [{"window": table["window"]}]))
    r2s = R2S(table["query_r2s"]) if "query_r2s" in table else None
    form = parse_sparql(table.get("query", _ALL))
    static, clause = notation.triples(table.get("static", "")), bool(table.get("window_clause", False))
    return ContinuousQuery(form, windows, r2s, static=static, window_clause=clause)


def _window(table: Mapping[str, Any]) -> StreamWindow:
    _only(table, _WINDOW, "windows")
    size, slide = table["window"]
    window = Window(size, slide, table.get("kind", "time"))
    return StreamWindow(notation.iri(table.get("on", "test")), window, table.get("name"))


def _semantics(table: Mapping[str, Any]) -> Semantics:
    chosen = {name: table[name] for name in _CHOICES if name in table}
    return decode(Semantics, {"name": OWN, "tick": "element", **chosen}, "semantics")


PACE_MS_PER_UNIT = 200
"""Duration of one unit of a case, wall ms, for engines that stamp elements on arrival."""

DIALECTS = ("rspql", "csparql")
"""The dialects for engines that read any, in order; RSP-QL has every clause but names each of several windows."""


@dataclass(frozen=True)
class Scale:
    """The duration of a case's unit, ms: the minimum for an engine, and in real time for arrival time."""

    unit: int = 1
    pace: int = PACE_MS_PER_UNIT


@dataclass(frozen=True)
class ConformanceTask:
    """A case under one semantics, on a scale: ``name`` tells it from all others; ``factor`` is the run's pace.

    Elements that are handed over later than ``slack`` (ms) may come out on the other side of a border.
    """

    name: str
    case: ConformanceCase
    semantics: Semantics
    factor: float | None
    slack: int | None = None

    @property
    def profile(self) -> str:
        """The name of the semantics: a profile's, or ``own``."""
        return self.semantics.name


def asked(cases: Sequence[ConformanceCase], profiles: Sequence[str] | None, scale: Scale) -> Iterator[ConformanceTask]:
    """Every case under its own semantics and under each profile (``None``: all) under which it is defined.

    Cases that differ only in their semantics are one task under a profile: the first of them.
    """
    seen: set[object] = set()
    for case in cases:
        for profile in (OWN, *(PROFILES if profiles is None else profiles)):
            chosen = case.semantics if profile == OWN else _under(case, PROFILES[profile])
            same = (profile, case.query, case.stream, case.advance, case.semantics.lateness)
            # Two cases with the same stream and query, which only their own semantics tell apart, are the same task
            # under a profile.
            if chosen is not None and (profile == OWN or same not in seen) and _meaning(case, chosen):
                seen.add(same)
                yield _task(case, chosen, scale)


def _under(case: ConformanceCase, profile: Semantics) -> Semantics | None:
    """The profile with the case's lateness bound, which belongs to its stream; ``None`` if the profile excludes it."""
    try:
        return replace(profile, lateness=case.semantics.lateness)
    except ValueError:
        return None


def _meaning(case: ConformanceCase, semantics: Semantics) -> bool:
    """Whether the definition decides the case: not for an operator that the profile lacks, nor for disorder."""
    first = case.stream[0].time if case.stream else None
    windows = case.query.windows
    try:
        refuse(case.query, semantics)
        admit(case.stream, semantics, windows, origins(semantics, windows, first)[0])
    except (RefusedError, OutOfOrderError):
        return False
    return True


def _task(case: ConformanceCase, semantics: Semantics, scale: Scale) -> ConformanceTask:
    """The case scaled to the unit that engine and semantics need.

    No arrival can be timed exactly on a border, so windows over arrival time are half a unit longer.
    """
    arrival = semantics.clock is not Clock.APPLICATION
    base = lcm(scale.unit, scale.pace) if arrival else scale.unit
    name = f"{case.name} @ {semantics.name}"
    if semantics.name == OWN:
        # The case's own semantics is scaled with it, and no unit of a profile has to be respected.
        own = case.scaled(base)
        return ConformanceTask(name, own, own.semantics, 1.0 if arrival else None)
    # A multiple of the semantics' own unit, or its ticks would fall between the times of the case.
    unit = lcm(base, semantics.time_unit)
    lateness = None if semantics.lateness is None else semantics.lateness * unit
    declared, scaled, slack = replace(semantics, lateness=lateness), case.scaled(unit), None
    if semantics.clock is Clock.ARRIVAL:
        # With 200 ms a unit, windows are 100 ms longer: an arrival may be up to 100 ms late and still fall on its side
        # of the border.
        slack = unit // 2
        scaled = scaled.widened(slack)
    return ConformanceTask(name, scaled, declared, 1.0 if arrival else None, slack)


@cache
def text(query: ContinuousQuery, dialect: str | None) -> tuple[str, str]:
    """The query in the engine's dialect, or in the first that expresses it unchanged; ValueError if none does.

    A dialect may rewrite a query: RSP-QL names unnamed windows and merges them.
    """
    if dialect is not None:
        return _as_it_is(query, dialect), dialect
    *others, last = DIALECTS
    for name in others:
        with suppress(ValueError):
            return _as_it_is(query, name), name
    return _as_it_is(query, last), last


def _as_it_is(query: ContinuousQuery, dialect: str) -> str:
    written = print_query(query, dialect)
    # Printing and parsing is the test: what comes back is what the engine is going to read.
    again = parse(written, dialect)
    if (again.form, again.windows) != (query.form, query.windows):
        raise ValueError(f"{dialect} rewrites this query, which certifies no engine: name its windows")
    return written
