"""C-SPARQL: ``REGISTER QUERY q AS SELECT ... FROM STREAM <s> [RANGE 5s STEP 1s] WHERE ...``.

Its answers are complete (Rstream), so it prints no other R2S operator; a query without a name is printed as ``query``.
All its streams and the static data form one graph, the default graph. ``[RANGE TRIPLES n]`` tumbles, as in its engine
(Esper's length_batch).
Source: Barbieri et al., C-SPARQL (SIGMOD Record 39(1), 2010), the grammar of C-SPARQL 0.9.7, and the queries that
CSRBench and YABench ran.
"""

import re
from itertools import pairwise
from typing import Final

from streamgauge.model.algebra import Construct
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.semantics import R2S
from streamgauge.query.clauses import (
    Clauses,
    Forms,
    compose,
    dataset,
    duration,
    end_registration,
    names_its_windows,
    open_clauses,
    registered_name,
    short_duration,
)
from streamgauge.query.graphs import unnamed
from streamgauge.query.printer import sparql
from streamgauge.query.text import Token, tokens

NAME: Final = "csparql"
CLAUSE: Final = "FROM STREAM <stream> [RANGE 5s STEP 1s]"
_FORMS: Final = Forms(
    dialect="C-SPARQL",
    slide="STEP",
    sliding=False,
    kinds=frozenset(("RANGE", "TUMBLING", "RANGE TRIPLES")),
    duration=short_duration,
    example="[RANGE 10s STEP 5s]",
)


def recognises(text: str) -> bool:
    """Whether the text has a C-SPARQL stream clause."""
    tokens_ = tokens(text)
    named = names_its_windows(tokens_)
    return not named and any(first.says("FROM") and second.says("STREAM") for first, second in pairwise(tokens_))


def parse(text: str) -> ContinuousQuery:
    """The query of a C-SPARQL text; QueryError says where it is wrong or what is not supported."""
    clauses = open_clauses(text)
    every = _register(clauses) if clauses.says("REGISTER") else None
    while clauses.reach("GRAPH"):
        _clause(clauses)
    if not clauses.windows:
        clauses.refuse(f"a C-SPARQL query needs a stream: add {CLAUSE}", clauses.tokens[0] if clauses.tokens else None)
    if every is not None:
        _check_period(clauses, every)
    return compose(clauses)


def _clause(clauses: Clauses) -> None:
    """Reads the stream clause at the cursor, or steps over its keyword."""
    first = clauses.token
    if clauses.static_graph():
        return
    if clauses.take("FROM", "STREAM") or clauses.take("FROM", "NAMED", "STREAM"):
        stream = clauses.iri("FROM STREAM")
        clauses.declare(StreamWindow(stream, clauses.window(_FORMS.read)), first)
        clauses.blank(first)
    elif first.says("GRAPH"):
        clauses.refuse("GRAPH: C-SPARQL's streams and the static data form one graph; leave it out, or use rspql")
    elif clauses.begins(first):
        clauses.at += 1
        if clauses.token.says("RSTREAM", "ISTREAM", "DSTREAM"):
            clauses.refuse(
                "C-SPARQL has no R2S keyword; its answers are complete (Rstream): leave it out, or use rspql"
            )
    else:
        clauses.at += 1


def _register(clauses: Clauses) -> Token | None:
    """Reads REGISTER QUERY|STREAM name [COMPUTED EVERY d] AS; the token of d, if given."""
    first, every = clauses.token, None
    clauses.take("REGISTER")
    if not (clauses.take("QUERY") or clauses.take("STREAM")):
        clauses.refuse("REGISTER needs QUERY or STREAM here")
    clauses.name = registered_name(clauses)
    if clauses.name is None:
        clauses.refuse("REGISTER needs a name here, like REGISTER QUERY test AS")
    if clauses.take("COMPUTED", "EVERY"):
        every = clauses.token
        while not clauses.token.says("AS") and clauses.token.text:
            clauses.at += 1
    end_registration(clauses, first)
    return every


def _check_period(clauses: Clauses, every: Token) -> None:
    """Only the slide is accepted as a period: any other is a report strategy, which the text cannot set."""
    match = re.match(r"\w+", clauses.text[every.start :])
    period = duration(match.group()) if match else None
    if any(window.window.slide != period for window, _ in clauses.windows):
        what = "COMPUTED EVERY other than the window's STEP is not supported; choose a periodic semantics instead"
        clauses.refuse(what, every)


def print_query(query: ContinuousQuery) -> str:
    """The query as C-SPARQL text without static data; ValueError if C-SPARQL cannot express it."""
    if query.r2s not in (None, R2S.RSTREAM):
        raise ValueError(f"C-SPARQL streams complete answers and cannot express {query.r2s}: print the query as rspql")
    if not unnamed(query):
        raise ValueError("C-SPARQL has no named windows: print the query as rspql")
    name = query.name or "query"
    shown = name if re.fullmatch(r"[A-Za-z]\w*", name) else f"<{name}>"
    kind = "STREAM" if isinstance(query.form, Construct) else "QUERY"
    streams = "\n".join(f"FROM STREAM <{item.stream}> {_FORMS.write(item.window)}" for item in query.windows)
    return f"REGISTER {kind} {shown} AS\n{sparql(query.form, dataset=dataset(query, streams))}\n"
