"""RSP-QL: ``REGISTER RSTREAM <out> AS``, ``FROM NAMED WINDOW <w> ON <s> [RANGE PT5S STEP PT1S]``, ``WINDOW <w> {..}``.

With one window its content is the default graph, together with the static data: patterns inside and outside
``WINDOW <w> { }`` see both. With several windows each is a named graph.
Source: Dell'Aglio et al., RSP-QL Semantics (IJSWIS 10(4), 2014), and the RSP community group's query language.
"""

import re
from itertools import pairwise
from typing import Final

from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.query.clauses import (
    Clauses,
    compose,
    end_registration,
    only_named,
    open_clauses,
    registered_name,
    xsd_duration,
)
from streamgauge.query.printer import sparql
from streamgauge.query.tokens import Token, tokens

NAME: Final = "rspql"
CLAUSE: Final = "FROM NAMED WINDOW <w> ON <stream> [RANGE PT5S STEP PT1S] ... WHERE { WINDOW <w> { ... } }"
_WINDOW: Final = "urn:streamgauge:window"


def recognises(text: str) -> bool:
    """Whether the text has an RSP-QL stream clause."""
    found = tokens(text)
    pairs = pairwise(found)
    return any(first.says("NAMED") and second.says("WINDOW") for first, second in pairs)


def parse(text: str) -> ContinuousQuery:
    """The query of an RSP-QL text; QueryError says where it is wrong or what is not supported."""
    clauses = open_clauses(text)
    if clauses.says("REGISTER"):
        _register(clauses)
    uses: list[tuple[Token, str, int]] = []
    while clauses.at < len(clauses.found):
        _clause(clauses, uses)
    if not clauses.windows:
        clauses.refuse(f"an RSP-QL query needs a window: add {CLAUSE}", clauses.found[0] if clauses.found else None)
    _check_uses(clauses, uses)
    _place(clauses, uses)
    return compose(clauses)


def _register(clauses: Clauses) -> None:
    """Reads REGISTER [STREAM | RSTREAM | ISTREAM | DSTREAM | QUERY] [name] AS."""
    first = clauses.token
    clauses.take("REGISTER")
    clauses.r2s = clauses.stream_operator()
    if clauses.r2s is None and not clauses.take("STREAM"):
        clauses.take("QUERY")
    clauses.name = registered_name(clauses)
    end_registration(clauses, first)


def _clause(clauses: Clauses, uses: list[tuple[Token, str, int]]) -> None:
    """Reads the stream clause at the cursor, or steps over one token."""
    first = clauses.token
    if clauses.take("FROM", "NAMED", "WINDOW"):
        _declare(clauses, first)
    elif first.says("WINDOW"):
        clauses.at += 1
        if clauses.token.kind == "variable":
            clauses.refuse("WINDOW with a variable is not supported: name the window")
        uses.append((first, clauses.iri("WINDOW"), clauses.at))
    elif first.says("SELECT", "CONSTRUCT", "ASK"):
        clauses.at += 1
        _operator(clauses)
    else:
        clauses.at += 1


def _declare(clauses: Clauses, first: Token) -> None:
    name = clauses.iri("FROM NAMED WINDOW")
    if not clauses.take("ON"):
        clauses.refuse("FROM NAMED WINDOW ... ON <stream>: the ON is missing here")
    clauses.take("STREAM")
    stream = clauses.iri("ON")
    if any(name == window.name for window, _ in clauses.windows):
        clauses.refuse(f"the window <{name}> is declared twice: give each window its own name", first)
    clauses.declare(StreamWindow(stream, clauses.window(), name), first)
    clauses.blank(first)


def _operator(clauses: Clauses) -> None:
    first = clauses.token
    operator = clauses.stream_operator()
    if operator is None:
        return
    if clauses.r2s not in (None, operator):
        clauses.refuse(f"REGISTER says {clauses.r2s} and this says {operator}: keep one", first)
    clauses.r2s = operator
    clauses.blank(first)


def _check_uses(clauses: Clauses, uses: list[tuple[Token, str, int]]) -> None:
    declared = {window.name for window, _ in clauses.windows}
    for token, name, _ in uses:
        if name not in declared:
            clauses.refuse(
                f"the window <{name}> is not declared: add FROM NAMED WINDOW <{name}> ON <stream> [..]", token
            )
    for window, token in clauses.windows:
        if window.name not in {name for _, name, _ in uses}:
            clauses.refuse(f"no pattern reads the window <{window.name}>: add WINDOW <{window.name}> {{ .. }}", token)


def _place(clauses: Clauses, uses: list[tuple[Token, str, int]]) -> None:
    """One window: its patterns join the default graph. Several: each is a named graph."""
    alone = len(clauses.windows) == 1
    for token, _, end in uses:
        clauses.at = end if alone else end - 1
        clauses.blank(token, "" if alone else "GRAPH")
    if alone:
        ((window, token),) = clauses.windows
        clauses.windows = [(StreamWindow(window.stream, window.window), token)]


def print_query(query: ContinuousQuery) -> str:
    """The query as RSP-QL text; ValueError when its windows have no names. Static data is not part of the text."""
    if len(query.windows) == 1:
        text = sparql(query.form, _streams(query, _WINDOW), lambda group: f"{{ WINDOW <{_WINDOW}> {group} }}")
    elif only_named(query.windows):
        text = _windows(sparql(query.form, _streams(query, _WINDOW)), {item.name for item in query.windows})
    else:
        raise ValueError("RSP-QL needs a name for each of several windows: print the query as csparql")
    return f"{_registration(query)}{text}\n" if query.name else f"{_inline_operator(query, text)}\n"


def _registration(query: ContinuousQuery) -> str:
    operator = f"{query.r2s.value.upper()} " if query.r2s else ""
    return f"REGISTER {operator}<{query.name}> AS\n"


def _inline_operator(query: ContinuousQuery, text: str) -> str:
    """Without REGISTER the operator stands behind SELECT, CONSTRUCT or ASK."""
    return re.sub(r"\A\w+", rf"\g<0> {query.r2s.value.upper()}", text) if query.r2s else text


def _streams(query: ContinuousQuery, name: str) -> str:
    return "\n".join(
        f"FROM NAMED WINDOW <{item.name or name}> ON <{item.stream}> "
        f"[RANGE {xsd_duration(item.window.size)} STEP {xsd_duration(item.window.slide)}]"
        for item in query.windows
    )


def _windows(text: str, names: set[str | None]) -> str:
    """The text with GRAPH as WINDOW before the windows' names."""
    found = tokens(text)
    for token, following in reversed(list(pairwise(found))):
        if token.says("GRAPH") and following.text[1:-1] in names:
            text = f"{text[: token.start]}WINDOW{text[token.end :]}"
    return text
