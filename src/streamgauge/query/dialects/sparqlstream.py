"""SPARQLstream: ``SELECT ISTREAM ... FROM NAMED STREAM <s> [NOW - 10 S SLIDE 5 S] WHERE ...``.

All its streams and the static data form one graph, the default graph. Without SLIDE a window slides with time (by
1 ms), and ``[NOW]`` contains the current instant. Windows end now and are time-based; the query has no name.
Source: Calbimonte et al., Enabling query technologies for the semantic sensor web (IJSWIS 8(1), 2012), the grammar of
morph-streams, and the queries that CSRBench ran.
"""

import re
from itertools import pairwise
from typing import Final

from streamgauge.model.algebra import Select
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query.clauses import UNITS, Clauses, compose, dataset, names_its_windows, open_clauses
from streamgauge.query.graphs import unnamed
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.text import QueryError, Token, tokens

NAME: Final = "sparqlstream"
CLAUSE: Final = "FROM NAMED STREAM <stream> [NOW - 5 S SLIDE 1 S]"
_TIME: Final = r"([0-9]+)\s*([A-Z]*)"
_WINDOW: Final = re.compile(
    rf"\s*(?:FROM\s+)?NOW(?:\s*-\s*{_TIME})?(?:\s+TO\s+NOW(?:\s*-\s*{_TIME})?)?(?:\s+(SLIDE|STEP)\s+{_TIME})?\s*",
    re.IGNORECASE,
)
_NAMES: Final = {
    "ms": ("MS", "MILLISECOND", "MILLISECONDS"),
    "s": ("S", "SEC", "SECOND", "SECONDS"),
    "m": ("M", "MIN", "MINUTE", "MINUTES"),
    "h": ("H", "HR", "HOUR", "HOURS"),
    "d": ("D", "DAY", "DAYS"),
}
_UNITS: Final = {name: UNITS[unit] for unit, names in _NAMES.items() for name in names}
_WRITTEN: Final = {"DAY": UNITS["d"], "HOURS": UNITS["h"], "MINUTES": UNITS["m"], "S": UNITS["s"], "MS": UNITS["ms"]}


def recognises(text: str) -> bool:
    """Whether the text has a SPARQLstream stream clause."""
    tokens_ = tokens(text)
    named = names_its_windows(tokens_)
    return not named and any(first.says("NAMED") and second.says("STREAM") for first, second in pairwise(tokens_))


def parse(text: str) -> ContinuousQuery:
    """The query of a SPARQLstream text; QueryError says where it is wrong or what is not supported."""
    clauses = open_clauses(text)
    if clauses.says("REGISTER"):
        clauses.refuse("SPARQLstream has no REGISTER: leave it out", clauses.token)
    while clauses.reach("STREAM", "GRAPH"):
        _clause(clauses)
    if not clauses.windows:
        what = f"a SPARQLstream query needs a stream: add {CLAUSE}"
        clauses.refuse(what, clauses.tokens[0] if clauses.tokens else None)
    clauses.refuse_timestamp("SPARQLstream")
    return compose(clauses)


def _clause(clauses: Clauses) -> None:
    """Reads the stream clause at the cursor, or steps over its keyword."""
    first = clauses.token
    if clauses.static_graph():
        return
    if clauses.take("FROM", "NAMED", "STREAM") or clauses.take("FROM", "STREAM"):
        stream = clauses.iri("FROM NAMED STREAM")
        clauses.declare(StreamWindow(stream, clauses.window(_window)), first)
        clauses.blank(first)
    elif first.says("STREAM", "GRAPH"):
        what = f"{first.text.upper()} in WHERE: SPARQLstream's streams form one graph; leave it out, or use rspql"
        clauses.refuse(what)
    elif clauses.begins(first):
        clauses.at += 1
        _operator(clauses, first)
    else:
        clauses.at += 1


def _operator(clauses: Clauses, form: Token) -> None:
    first = clauses.token
    clauses.r2s = clauses.stream_operator()
    if clauses.r2s is not None and not form.says("SELECT"):
        clauses.refuse(f"SPARQLstream has {first.text.upper()} after SELECT only: use rspql", first)
    if clauses.r2s is not None:
        clauses.blank(first)


def _window(text: str, start: int, end: int) -> Window:
    match = _WINDOW.fullmatch(text, start, end)
    if match is None:
        inside = text[start:end].strip()
        what = f"[{inside}] is not a window of SPARQLstream, whose windows are time-based; write [NOW - 10 S SLIDE 5 S]"
        raise QueryError(what, text, start)
    # [NOW] has no size: the window of 1 ms is the current instant.
    size = _ms(text, match, 1) if match.group(1) else 1
    if match.group(3) and _ms(text, match, 3, least=0):
        raise QueryError(
            "a window that ends before NOW is not supported: write TO NOW, or leave it out", text, match.start(3)
        )
    return Window(size, _ms(text, match, 6) if match.group(6) else 1)


def _ms(text: str, match: re.Match[str], group: int, least: int = 1) -> int:
    number, unit = match.group(group), match.group(group + 1).upper()
    if unit not in _UNITS and (least or int(number[:20])):
        raise _no_unit(text, match, group, unit)
    # At most 20 digits are read: a number of a million digits takes seconds, and is out of range anyway.
    ms = int(number[:20]) * _UNITS.get(unit, 1)
    if ms < least or ms > 10**15:
        raise QueryError(f"{number} {unit} is out of range: write 1 MS to 10^15 MS", text, match.start(group))
    return ms


def _no_unit(text: str, match: re.Match[str], group: int, unit: str) -> QueryError:
    if unit in ("MONTH", "MONTHS", "YEAR", "YEARS"):
        return QueryError(f"{unit} has no fixed length: use DAY", text, match.start(group + 1))
    shown = match.group(group)
    return QueryError(f"{shown} needs a unit: MS, S, MINUTES, HOURS or DAY, as in {shown} S", text, match.start(group))


def print_query(query: ContinuousQuery) -> str:
    """The query as SPARQLstream text, without its name; ValueError if SPARQLstream cannot express it."""
    if uses_timestamp(query.form):
        raise ValueError("SPARQLstream has no timestamp(): print the query as rspql or csparql")
    if not unnamed(query):
        raise ValueError("SPARQLstream has no named windows: print the query as rspql")
    if query.r2s is not None and not isinstance(query.form, Select):
        raise ValueError(f"SPARQLstream has {query.r2s.value.upper()} after SELECT only: print the query as rspql")
    streams = "\n".join(f"FROM NAMED STREAM <{item.stream}> {_written(item.window)}" for item in query.windows)
    text = sparql(query.form, dataset=dataset(query, streams))
    return f"{text}\n" if query.r2s is None else f"SELECT {query.r2s.value.upper()}{text.removeprefix('SELECT')}\n"


def _written(window: Window) -> str:
    if window.kind != "time":
        what = "count-based windows ([TRIPLES n])" if window.kind == "count" else "landmark windows ([ALL])"
        raise ValueError(f"SPARQLstream has no {what}: print the query as rspql")
    if window == Window(1, 1):
        return "[NOW]"
    slide = "" if window.slide == 1 else f" SLIDE {_duration(window.slide)}"
    return f"[NOW - {_duration(window.size)}{slide}]"


def _duration(ms: int) -> str:
    # The longest unit without a remainder: 90,000 ms are 90 S, 120,000 ms are 2 MINUTES.
    unit = max((unit for unit, factor in _WRITTEN.items() if ms % factor == 0), key=lambda unit: _WRITTEN[unit])
    return f"{ms // _WRITTEN[unit]} {unit}"
