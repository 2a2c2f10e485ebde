"""CQELS-QL: ``SELECT ... WHERE { STREAM <s> [RANGE 10s SLIDE 5s] { .. } patterns on static data }``.

One window whose STREAM blocks hold every pattern is the default graph, together with the static data; otherwise each
window is a named graph, ``urn:streamgauge:window:1`` and so on in order of appearance (STREAM blocks with the same
stream and window are one), and patterns outside, or in ``GRAPH <g>``, read the static data. A RANGE alone slides with
time (by 1 ms), ``[TRIPLES n]`` by 1 triple. FILTERs are written outside of STREAM: CQELS 1.x skips those inside. Its
answers are new ones (Istream), without a keyword; no names.
Source: Le-Phuoc et al., CQELS (ISWC 2011), and the grammar of CQELS 1.x.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query.clauses import Clauses, Forms, compose, dataset, form_of, open_clauses, short_duration
from streamgauge.query.graphs import reads, renamed, streamed, unnamed
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.text import Token, tokens

NAME: Final = "cqels"
CLAUSE: Final = "WHERE { STREAM <stream> [RANGE 5s SLIDE 1s] { ... } }"
_WINDOW: Final = "urn:streamgauge:window"
_FORMS: Final = Forms(
    dialect="CQELS",
    slide="SLIDE",
    sliding=True,
    kinds=frozenset(("RANGE", "TRIPLES", "NOW", "ALL")),
    duration=partial(short_duration, largest="m"),  # CQELS 1.0.0 cannot read hours and days
    example="[RANGE 10s SLIDE 5s]",
)


@dataclass(frozen=True, slots=True)
class _Block:
    """``STREAM <s> [..]`` or ``GRAPH <g>`` before a group: its first token, the index after it, its window or graph."""

    token: Token
    end: int
    source: StreamWindow | str


def recognises(text: str) -> bool:
    """Whether the text has a CQELS stream clause, and none of a dialect that writes streams before WHERE."""
    # An empty token in front, so that the first word has one before it, too.
    tokens_ = (Token("sign", "", 0), *tokens(text))
    triples = zip(tokens_, tokens_[1:], tokens_[2:], strict=False)
    uses = [(first, third) for first, second, third in triples if second.says("STREAM")]
    if any(first.says("FROM", "NAMED") for first, _ in uses):
        return False
    return any(not first.says("ON", "REGISTER") and third.kind in ("iri", "name", "variable") for first, third in uses)


def parse(text: str) -> ContinuousQuery:
    """The query of a CQELS-QL text; QueryError says where it is wrong or what is not supported."""
    clauses = open_clauses(text)
    if clauses.says("REGISTER"):
        clauses.refuse("CQELS has no REGISTER: leave it out", clauses.token)
    blocks: list[_Block] = []
    while clauses.reach("STREAM", "GRAPH"):
        _clause(clauses, blocks)
    sources = tuple(dict.fromkeys(block.source for block in blocks if isinstance(block.source, StreamWindow)))
    if not sources:
        clauses.refuse(f"a CQELS query needs a stream: add {CLAUSE}", clauses.tokens[0] if clauses.tokens else None)
    clauses.refuse_timestamp("CQELS")
    return _placed(clauses, blocks, sources)


def _clause(clauses: Clauses, blocks: list[_Block]) -> None:
    """Reads the stream clause at the cursor, or steps over its keyword."""
    first = clauses.token
    if clauses.static_graph(may_be_named=True):
        return
    clauses.at += 1
    if first.says("STREAM"):
        if clauses.token.kind == "variable":
            clauses.refuse("STREAM with a variable is not supported: name the stream")
        stream = clauses.iri("STREAM")
        source = StreamWindow(stream, clauses.window(_FORMS.read))
        if clauses.token.text != "{":
            clauses.refuse("STREAM <stream> [..] { .. }: the { is missing here")
        blocks.append(_Block(first, clauses.at, source))
    elif first.says("GRAPH"):
        if clauses.token.kind == "variable":
            clauses.refuse("GRAPH with a variable is not supported: static data is one graph, leave GRAPH out")
        end, name = clauses.at + 1, clauses.iri("GRAPH")
        if not clauses.takes_static(first, name):
            blocks.append(_Block(first, end, name))
    elif clauses.begins(first) and clauses.token.says("RSTREAM", "ISTREAM", "DSTREAM"):
        clauses.refuse("CQELS has no R2S keyword; its answers are the new rows (Istream): leave it out, or use rspql")


def _placed(clauses: Clauses, blocks: list[_Block], sources: tuple[StreamWindow, ...]) -> ContinuousQuery:
    """The query with each window as a named graph, or a single window with all patterns as the default graph.

    The text is parsed first with all blocks as graphs, to see which graphs its patterns read.
    """
    # Short names fit in the place of STREAM <s> [..], so that columns in errors are kept; the real names come last.
    before = clauses.plain
    short = {source: f"<w:{number}>" for number, source in enumerate(sources, 1)}
    named: dict[StreamWindow | str, str] = {source: f"GRAPH {name}" for source, name in short.items()}
    _replace(clauses, blocks, named)
    graphs = set(reads(form_of(clauses)))
    static = graphs - set(short.values())
    if len(static) > 1:
        first = next(block.token for block in blocks if isinstance(block.source, str))
        clauses.refuse(
            "static data is one graph: name a single one with GRAPH, and put all patterns on static data inside it",
            first,
        )
    # The first reading was only to see which graphs are read. Now the heads are replaced in the text as it came.
    clauses.plain = before
    if len(sources) == 1 and not static:
        _replace(clauses, blocks, {})
        clauses.windows = [(sources[0], blocks[0].token)]
        return compose(clauses)
    _replace(clauses, blocks, named | {block.source: "" for block in blocks if isinstance(block.source, str)})
    names = {source: f"{_WINDOW}:{number}" for number, source in enumerate(sources, 1)}
    clauses.windows = [(StreamWindow(source.stream, source.window, names[source]), clauses.token) for source in sources]
    return compose(clauses, renamed(form_of(clauses), {short[source]: f"<{names[source]}>" for source in sources}))


def _replace(clauses: Clauses, blocks: list[_Block], texts: dict[StreamWindow | str, str]) -> None:
    """Replaces the head of each block by its text; without one ``GRAPH <g>`` is kept and STREAM is removed."""
    for block in blocks:
        if block.source in texts or isinstance(block.source, StreamWindow):
            clauses.at = block.end
            clauses.blank(block.token, texts.get(block.source, ""))


def print_query(query: ContinuousQuery) -> str:
    """The query as CQELS-QL text, without its name; ValueError if CQELS cannot express it."""
    if query.r2s not in (None, R2S.ISTREAM):
        raise ValueError(f"CQELS streams new rows and cannot express {query.r2s}: print the query as rspql")
    if uses_timestamp(query.form):
        raise ValueError("CQELS has no timestamp(): print the query as rspql or csparql")
    if not unnamed(query):
        return f"{_as_streams(sparql(query.form, dataset(query)), _distinct(query))}\n"
    if len(query.windows) > 1:
        raise ValueError("CQELS has a STREAM block for each stream and cannot merge unnamed windows: name the windows")
    text = sparql(streamed(query.form, f"<{_WINDOW}>"), dataset(query))
    return f"{_as_streams(text, {_WINDOW: query.windows[0]})}\n"


def _distinct(query: ContinuousQuery) -> dict[str, StreamWindow]:
    """The windows by name; ValueError if two differ only in their names."""
    seen: dict[tuple[str, Window], str] = {}
    for item in query.windows:
        other = seen.setdefault((item.stream, item.window), str(item.name))
        if other != item.name:
            raise ValueError(
                f"CQELS has no names for windows: <{other}> and <{item.name}> would be the same: merge them"
            )
    return {str(item.name): item for item in query.windows}


def _as_streams(text: str, windows: dict[str, StreamWindow]) -> str:
    """The text with GRAPH and a window's name replaced by ``STREAM <s> [..]``."""
    # From the end, so that the positions of tokens in front stay right.
    for token, following in reversed(list(pairwise(tokens(text)))):
        if not token.says("GRAPH"):
            continue
        if following.kind != "iri":
            raise ValueError(
                "CQELS has no names for windows and cannot express GRAPH ?variable: print the query as rspql"
            )
        item = windows[following.text[1:-1]]
        text = f"{text[: token.start]}STREAM <{item.stream}> {_FORMS.write(item.window)}{text[following.end :]}"
    return text
