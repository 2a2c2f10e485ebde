"""Templates of an update: triple patterns, some of them in a named graph, and the parts of a text that are in one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamgauge.model.algebra import Construct, Graph, Node, Project, TriplePattern
from streamgauge.query.parser import parse_sparql
from streamgauge.query.text import Token, refusal, tokens

MAX_SECTIONS: Final = 200
"""Parts of a template that are in different graphs: each is parsed by itself."""

MAX_DECLARED: Final = 20_000
"""Operations of an update, or parts of a template, times the tokens of the declarations that each is parsed with."""


@dataclass(frozen=True, slots=True)
class GraphTriplePattern(TriplePattern):
    """A triple pattern in a named graph."""

    graph: Node


def graph_of(pattern: TriplePattern) -> Node | None:
    """The graph of a pattern, ``None`` for the default graph."""
    return pattern.graph if isinstance(pattern, GraphTriplePattern) else None


def within(graph: Node | None, pattern: TriplePattern) -> TriplePattern:
    """A pattern in a graph; one that has a graph of its own stays there."""
    if graph is None or isinstance(pattern, GraphTriplePattern):
        return pattern
    return GraphTriplePattern(pattern.subject, pattern.predicate, pattern.object, graph)


@dataclass(frozen=True, slots=True)
class TemplateSection:
    """Triples of a template in one graph, at [start, end): its name as it is written, empty for the default graph."""

    graph: str
    start: int
    end: int
    keyword: int = 0
    """Where the GRAPH before it begins."""


def read_template(prologue: str, text: str) -> tuple[TriplePattern, ...]:
    """The patterns of a template; blank nodes with the same label are the same in all of its graphs. QueryError."""
    parts = sections(text, tokens(text))
    if all(not part.graph for part in parts):
        return _constructed(prologue, text)
    if len(parts) * (1 + len(tokens(prologue))) > MAX_DECLARED or len(parts) > MAX_SECTIONS:
        raise refusal(f"{len(parts)} graphs in one template: send several updates, or fewer declarations", text, 0)
    texts = [text[part.start : part.end] for part in parts]
    whole = _constructed(prologue, "\n. ".join(texts))
    counts = [len(_constructed(prologue, part)) for part in texts]
    if sum(counts) != len(whole):
        raise refusal("the triples of this template cannot be told apart by graph: write a dot after each", text, 0)
    patterns: list[TriplePattern] = []
    for part, count in zip(parts, counts, strict=True):
        graph = graph_name(prologue, part.graph) if part.graph else None
        patterns += (within(graph, pattern) for pattern in whole[len(patterns) : len(patterns) + count])
    return tuple(patterns)


def _constructed(prologue: str, text: str) -> tuple[TriplePattern, ...]:
    form = parse_sparql(f"{prologue}\nCONSTRUCT {{{text}\n}} WHERE {{}}")
    assert isinstance(form, Construct)
    return form.template


def graph_name(prologue: str, text: str) -> Node:
    """The node that names a graph, as a text has it: an IRI, a prefixed name or a variable. QueryError."""
    form = parse_sparql(f"{prologue}\nSELECT * {{ GRAPH {text} {{ ?s ?p ?o }} }}")
    assert isinstance(form.pattern, Project)
    assert isinstance(form.pattern.pattern, Graph)
    return form.pattern.pattern.name


def sections(text: str, inside: Sequence[Token]) -> list[TemplateSection]:
    """The parts of a template whose tokens are given, one after the other, without empty ones. QueryError."""
    parts: list[TemplateSection] = []
    start = place = 0
    while place < len(inside):
        if inside[place].text in ("{", "}"):
            raise refusal("only triples and GRAPH name { triples } stand here", text, inside[place].start)
        if not inside[place].says("GRAPH"):
            place += 1
            continue
        opening = place + 2
        if opening >= len(inside) or inside[opening].text != "{":
            raise refusal("GRAPH is followed by one name and { ... }", text, inside[place].start)
        closing = closing_of(text, inside, opening)
        group = next((token for token in inside[opening + 1 : closing] if token.text == "{"), None)
        if group is not None:
            raise refusal("a group within GRAPH of a template: only triples stand there", text, group.start)
        parts.append(_section("", inside[start:place]))
        named = _section(inside[place + 1].text, inside[opening + 1 : closing])
        parts.append(replace(named, keyword=inside[place].start))
        start = place = closing + 1
    parts.append(_section("", inside[start:]))
    return [part for part in parts if part.end > part.start]


def _section(graph: str, inside: Sequence[Token]) -> TemplateSection:
    """The place of triples, without the dots around them."""
    first, last = 0, len(inside)
    while last > first and inside[last - 1].text == ".":
        last -= 1
    while first < last and inside[first].text == ".":
        first += 1
    return (
        TemplateSection(graph, inside[first].start, inside[last - 1].end)
        if first < last
        else TemplateSection(graph, 0, 0)
    )


def closing_of(text: str, inside: Sequence[Token], opening: int) -> int:
    """The place of the brace that closes the one at ``opening``. QueryError."""
    depth = 0
    for place in range(opening, len(inside)):
        depth += {"{": 1, "}": -1}.get(inside[place].text, 0)
        if depth == 0:
            return place
    raise refusal("this { is not closed", text, inside[opening].start)
