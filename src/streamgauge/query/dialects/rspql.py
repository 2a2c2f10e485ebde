"""RSP-QL: ``REGISTER RSTREAM <out> AS``, ``FROM NAMED WINDOW <w> ON <s> [RANGE PT5S STEP PT1S]``, ``WINDOW <w> {..}``.

With one window and all patterns inside its clause, its content is the default graph, where no pattern matches static
data unless the semantics says so (``static_data``). Otherwise each window is a named graph and patterns outside read
the static data. Beyond the published grammar it has ``[RANGE TRIPLES n STEP m]``, ``[NOW]``,
``[ALL STEP d]`` and ``timestamp()``.
Source: Dell'Aglio et al., RSP-QL Semantics (IJSWIS 10(4), 2014), and the RSP community group's query language.
"""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.query.clauses import (
    Clauses,
    Forms,
    compose,
    dataset,
    end_registration,
    form_of,
    names_its_windows,
    open_clauses,
    registered_name,
    xsd_duration,
)
from streamgauge.query.graphs import enclosed, reads, unnamed
from streamgauge.query.merged import WINDOW, with_named_windows
from streamgauge.query.printer import sparql
from streamgauge.query.text import Token, tokens

NAME: Final = "rspql"
CLAUSE: Final = "FROM NAMED WINDOW <w> ON <stream> [RANGE PT5S STEP PT1S] ... WHERE { WINDOW <w> { ... } }"
_FORMS: Final = Forms(
    dialect="RSP-QL",
    slide="STEP",
    sliding=False,
    kinds=frozenset(("RANGE", "TUMBLING", "RANGE TRIPLES", "TRIPLES", "STEP", "NOW", "ALL", "ALL STEP")),
    duration=xsd_duration,
    example="[RANGE 10s STEP 5s]",
)


@dataclass(frozen=True, slots=True)
class _Use:
    """``WINDOW <w>`` or ``GRAPH <w>`` before a group: its token, the window's IRI, the index of the token after it."""

    token: Token
    name: str
    end: int


def recognises(text: str) -> bool:
    """Whether the text has an RSP-QL stream clause."""
    tokens_ = tokens(text)
    pairs = pairwise(tokens_)
    return names_its_windows(tokens_) or any(first.says("NAMED") and second.says("WINDOW") for first, second in pairs)


def parse(text: str) -> ContinuousQuery:
    """The query of an RSP-QL text; QueryError says where it is wrong or what is not supported."""
    clauses = open_clauses(text)
    if clauses.says("REGISTER"):
        _register(clauses)
    uses: list[_Use] = []
    while clauses.reach("WINDOW", "GRAPH"):
        _clause(clauses, uses)
    if not clauses.windows:
        clauses.refuse(f"an RSP-QL query needs a window: add {CLAUSE}", clauses.tokens[0] if clauses.tokens else None)
    _check_uses(clauses, uses)
    return _placed(clauses, uses)


def _register(clauses: Clauses) -> None:
    """Reads REGISTER [STREAM | RSTREAM | ISTREAM | DSTREAM | QUERY] [name] AS."""
    first = clauses.token
    clauses.take("REGISTER")
    clauses.r2s = clauses.stream_operator()
    if clauses.r2s is None and not clauses.take("STREAM"):
        clauses.take("QUERY")
    clauses.name = registered_name(clauses)
    end_registration(clauses, first)


def _clause(clauses: Clauses, uses: list[_Use]) -> None:
    """Reads the stream clause at the cursor, or steps over its keyword."""
    first = clauses.token
    if clauses.static_graph(may_be_named=True):
        return
    if clauses.take("FROM", "NAMED", "WINDOW"):
        _declare(clauses, first)
    elif clauses.take("FROM", "NAMED", "STREAM") or clauses.take("FROM", "STREAM"):
        _declare_as(clauses, first)
    elif first.says("WINDOW", "GRAPH"):
        clauses.at += 1
        if first.says("GRAPH") and _inside_window(clauses, uses):
            clauses.refuse(
                "GRAPH inside WINDOW: a window is a single graph, without those of its elements; leave GRAPH out", first
            )
        if clauses.token.kind != "variable":
            name = clauses.iri(first.text.upper())
            if not (first.says("GRAPH") and clauses.takes_static(first, name)):
                uses.append(_Use(first, name, clauses.at))
        elif first.says("WINDOW"):
            clauses.refuse("WINDOW with a variable is not supported: name the window")
    elif clauses.begins(first):
        clauses.at += 1
        _operator(clauses)
    else:
        clauses.at += 1


def _declare(clauses: Clauses, first: Token) -> None:
    name = clauses.iri("FROM NAMED WINDOW")
    if not clauses.take("ON"):
        clauses.refuse("FROM NAMED WINDOW ... ON <stream>: the ON is missing here")
    clauses.take("STREAM")
    stream = _stream(clauses, "ON")
    _add(clauses, StreamWindow(stream, clauses.window(_FORMS.read), name), first)


def _declare_as(clauses: Clauses, first: Token) -> None:
    """``FROM [NAMED] STREAM <s> [..] AS <w>``, the form of early RSP-QL texts."""
    stream = _stream(clauses, "FROM STREAM")
    window = clauses.window(_FORMS.read)
    if not clauses.take("AS"):
        clauses.refuse("FROM STREAM <stream> [..] AS <window>: the AS is missing here; other windows have names")
    _add(clauses, StreamWindow(stream, window, clauses.iri("AS")), first)


def _stream(clauses: Clauses, clause: str) -> str:
    if clauses.token.kind == "variable":
        what = f"{clause} {clauses.token.text}: a window is over one stream; name it, with a window for each stream"
        clauses.refuse(what)
    return clauses.iri(clause)


def _inside_window(clauses: Clauses, uses: list[_Use]) -> bool:
    """Whether the cursor is inside the group of a WINDOW clause."""
    for use in uses:
        if use.token.says("WINDOW"):
            passed = [token.text for token in clauses.tokens[use.end : clauses.at]]
            # More braces were opened since the WINDOW clause than closed: the cursor is inside its group.
            if passed.count("{") > passed.count("}"):
                return True
    return False


def _add(clauses: Clauses, window: StreamWindow, first: Token) -> None:
    name = window.name
    if any(name == window.name for window, _ in clauses.windows):
        clauses.refuse(f"the window <{name}> is declared twice: give each window its own name", first)
    clauses.declare(window, first)
    clauses.blank(first)


def _operator(clauses: Clauses) -> None:
    first = clauses.token
    operator = clauses.stream_operator()
    if operator is None:
        return
    if clauses.r2s not in (None, operator):
        clauses.refuse(f"REGISTER has {clauses.r2s}, but this is {operator}: keep one", first)
    clauses.r2s = operator
    clauses.blank(first)


def _check_uses(clauses: Clauses, uses: list[_Use]) -> None:
    declared = {window.name for window, _ in clauses.windows}
    for use in uses:
        if use.name not in declared:
            what = f"the window <{use.name}> is not declared: add FROM NAMED WINDOW <{use.name}> ON <stream> [..]"
            clauses.refuse(what, use.token)
    # GRAPH ?g may read any window, so none can be said to be unused.
    any_graph = any(one.says("GRAPH") and two.kind == "variable" for one, two in pairwise(clauses.tokens))
    for window, token in clauses.windows:
        if window.name not in {use.name for use in uses} and not any_graph:
            clauses.refuse(f"no pattern uses the window <{window.name}>: add WINDOW <{window.name}> {{ .. }}", token)


def _placed(clauses: Clauses, uses: list[_Use]) -> ContinuousQuery:
    """The query with each window as a named graph, or a single window with all patterns as the default graph."""
    before = clauses.plain
    for use in uses:
        clauses.at = use.end - 1
        clauses.blank(use.token, "GRAPH")
    form = form_of(clauses)
    if len(clauses.windows) > 1 or not set(reads(form)) <= {f"<{clauses.windows[0][0].name}>"}:
        return compose(clauses, form)
    # Read once to see which graphs the patterns need. It is a single window, so its clause is removed rather than
    # renamed.
    clauses.plain = before
    for use in uses:
        clauses.at = use.end
        clauses.blank(use.token)
    ((window, token),) = clauses.windows
    clauses.windows = [(StreamWindow(window.stream, window.window), token)]
    return replace(compose(clauses), window_clause=True)


def print_query(query: ContinuousQuery) -> str:
    """The query as RSP-QL text without static data; ValueError if RSP-QL cannot express it.

    Several unnamed windows get names, and each triple pattern is matched in all of them (``query.merged``).
    """
    if len(query.windows) > 1 and unnamed(query):
        query = with_named_windows(query)
    if not unnamed(query):
        text = _as_windows(sparql(query.form, dataset(query, _streams(query))))
    else:
        form = enclosed(query.form, f"<{WINDOW}>")
        text = _as_windows(
            sparql(form, dataset(query, _streams(query)), lambda group: f"{{ GRAPH <{WINDOW}> {group} }}")
        )
    return f"{_registration(query)}{text}\n" if query.name else f"{_inline_operator(query, text)}\n"


def _registration(query: ContinuousQuery) -> str:
    operator = f"{query.r2s.value.upper()} " if query.r2s else ""
    return f"REGISTER {operator}<{query.name}> AS\n"


def _inline_operator(query: ContinuousQuery, text: str) -> str:
    """The text with the R2S operator after SELECT, CONSTRUCT or ASK, where it is written without REGISTER."""
    return re.sub(r"\A\w+", rf"\g<0> {query.r2s.value.upper()}", text) if query.r2s else text


def _streams(query: ContinuousQuery) -> str:
    return "\n".join(
        f"FROM NAMED WINDOW <{item.name or WINDOW}> ON <{item.stream}> {_FORMS.write(item.window)}"
        for item in query.windows
    )


def _as_windows(text: str) -> str:
    """The text with GRAPH replaced by WINDOW before an IRI."""
    # From the end, so that the positions of tokens in front stay right.
    for token, following in reversed(list(pairwise(tokens(text)))):
        if token.says("GRAPH") and following.kind == "iri":
            text = f"{text[: token.start]}WINDOW{text[token.end :]}"
    return text
