"""The part of SPARQL 1.1 Update that changes triples, read into operations, and what each changes.

Facts of named graphs are triples as ``model.fact`` writes them; templates with GRAPH are those of 3.1.1 to 3.1.3.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from streamgauge.formats.bounds import SERVED
from streamgauge.model.algebra import BGP, Construct, Graph, Join, Node, Pattern, Project, TriplePattern, Var
from streamgauge.model.fact import NOT_HERE, apart, in_graph, question
from streamgauge.model.terms import Term, Triple, is_iri, is_literal
from streamgauge.query.parser import parse_sparql
from streamgauge.query.text import Token, check_bounds, refusal, tokens

MOST_SECTIONS: Final = 200
"""Parts of a template that are in different graphs: each is parsed by itself."""

MOST_DECLARED: Final = 20_000
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
class _Section:
    """Triples of a template that are in one graph: the text of its name, empty for the default graph."""

    graph: str
    text: str


def _template(prologue: str, text: str) -> tuple[TriplePattern, ...]:
    """The patterns of a template; blank nodes with the same label are the same in all of its graphs. QueryError."""
    sections = _sections(text)
    if all(not each.graph for each in sections):
        return _constructed(prologue, text)
    if len(sections) * (1 + len(tokens(prologue))) > MOST_DECLARED or len(sections) > MOST_SECTIONS:
        raise refusal(f"{len(sections)} graphs in one template: send several updates, or fewer declarations", text, 0)
    whole = _constructed(prologue, "\n. ".join(each.text for each in sections))
    counts = [len(_constructed(prologue, each.text)) for each in sections]
    if sum(counts) != len(whole):
        raise refusal("the triples of this template cannot be told apart by graph: write a dot after each", text, 0)
    found: list[TriplePattern] = []
    for section, count in zip(sections, counts, strict=True):
        graph = graph_name(prologue, section.graph) if section.graph else None
        found += (within(graph, each) for each in whole[len(found) : len(found) + count])
    return tuple(found)


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


def _sections(text: str) -> list[_Section]:
    """The parts of a template, one after the other, without empty ones."""
    found = tokens(text)
    sections: list[_Section] = []
    start = place = 0
    while place < len(found):
        if not found[place].says("GRAPH"):
            place += 1
            continue
        opening = place + 2
        if opening >= len(found) or found[opening].text != "{":
            raise refusal("GRAPH is followed by one name and { ... }", text, found[place].start)
        closing = _closing(text, found, opening)
        if inner := next((each for each in found[opening + 1 : closing] if each.text == "{"), None):
            raise refusal("a group within GRAPH of a template: only triples stand there", text, inner.start)
        sections.append(_Section("", _between(text, found[start:place])))
        sections.append(_Section(found[place + 1].text, _between(text, found[opening + 1 : closing])))
        start = place = closing + 1
    sections.append(_Section("", _between(text, found[start:])))
    return [each for each in sections if each.text]


def _between(text: str, found: Sequence[Token]) -> str:
    """The text of triples, without the dots around them."""
    triples = list(found)
    while triples and triples[-1].text == ".":
        triples.pop()
    while triples and triples[0].text == ".":
        triples.pop(0)
    return text[triples[0].start : triples[-1].end] if triples else ""


LONGEST: Final = SERVED.characters
"""Characters that an update may have."""

_REFUSED: Final = {
    "LOAD": "send the data itself",
    "CLEAR": "DELETE WHERE { ... } with at least one term",
    "DROP": "DELETE WHERE { ... } with at least one term",
    "CREATE": "facts have no graph of their own",
    "COPY": "facts have no graph of their own",
    "MOVE": "facts have no graph of their own",
    "ADD": "facts have no graph of their own",
    "WITH": "facts have no graph of their own",
    "USING": "facts have no graph of their own",
    "GRAPH": "facts have no graph of their own",
    "SERVICE": "an update asks no other server",
}
_OF_GRAPHS: Final = ("GRAPH", "WITH", "USING")
"""Words that are taken where facts have graphs."""

_SUPPORTED: Final = "INSERT DATA, DELETE DATA, DELETE WHERE, DELETE/INSERT ... WHERE with triple patterns"


Holding: TypeAlias = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
"""The triples that hold, with these terms where one is given."""


Solution: TypeAlias = tuple[Term, ...]
"""The terms of variables, in the order in which patterns bind them."""


class TooManySolutionsError(ValueError):
    """WHERE has more solutions than are looked at."""


@dataclass(frozen=True, slots=True)
class UpdateOperation:
    """One operation: DELETE and INSERT with WHERE (SPARQL 1.1 Update, 3.1.3); of data, WHERE is empty."""

    where: tuple[TriplePattern, ...]
    delete: tuple[TriplePattern, ...]
    insert: tuple[TriplePattern, ...]

    def triples(self, holding: Holding, most: int, looks: "Looks | None" = None) -> tuple[list[Triple], list[Triple]]:
        """The triples to delete, and those to insert after them; TooManySolutionsError beyond ``most`` solutions.

        Also beyond ``looks``, at the triples that WHERE tries and at those that the templates make.
        """
        holding = holding if looks is None else looks.counted(holding)
        rows: list[Solution] = [()]
        bound: dict[Var, int] = {}
        for pattern in self.where:
            step = _Step(pattern, bound)
            rows = list(islice((each for row in rows for each in step.extended(holding, row)), most + 1))
            bound = step.bound
            if len(rows) > most:
                raise TooManySolutionsError(f"more than {most} solutions: name more terms in WHERE")
        if looks is not None and self.where:
            looks.spend(len(rows) * (len(self.delete) + len(self.insert)))
        return _made(self.delete, rows, bound), _made(self.insert, rows, bound)


class Looks:
    """How many triples an update may look at, and make of them: ``most`` for all that is asked by these looks."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, count: int) -> None:
        """So many more; TooManySolutionsError when they are too many."""
        self._left -= count
        if self._left < 0:
            raise TooManySolutionsError(f"WHERE looks at more than {self._most} facts: name more terms in it")

    def counted(self, holding: Holding) -> Holding:
        """The triples that hold, each of them a look, as each question is."""

        def counted(subject: Term | None, predicate: Term | None, end: Term | None) -> Iterator[Triple]:
            self.spend(1)
            for triple in holding(subject, predicate, end):
                self.spend(1)
                yield triple

        return counted


class _Step:
    """A pattern that solutions are extended by; ``bound`` says where in the longer ones a variable's term is.

    Solutions are tuples of terms, which the collector of garbage does not look at for long.
    """

    def __init__(self, pattern: TriplePattern, bound: Mapping[Var, int]) -> None:
        nodes = _nodes(pattern)
        self._given = [bound.get(node) if isinstance(node, Var) else node for node in nodes]
        fresh = [node for node in nodes if isinstance(node, Var) and node not in bound]
        self._taken = [nodes.index(node) for node in dict.fromkeys(fresh)]
        self._same = [(nodes.index(n), at) for at, n in enumerate(nodes) if n in fresh and nodes.index(n) != at]
        self.bound = {**bound, **{node: len(bound) + at for at, node in enumerate(dict.fromkeys(fresh))}}

    def extended(self, holding: Holding, row: Solution) -> Iterator[Solution]:
        subject, predicate, end, *graph = [row[each] if isinstance(each, int) else each for each in self._given]
        for triple in holding(question(graph[0], subject) if graph else subject, predicate, end):
            if triple is NOT_HERE:
                continue
            terms = _terms(triple) if graph else triple
            if not self._same or all(terms[one] == terms[other] for one, other in self._same):
                yield (*row, *[terms[at] for at in self._taken])


def _made(patterns: Sequence[TriplePattern], rows: Iterable[Solution], bound: Mapping[Var, int]) -> list[Triple]:
    """The triples of a template that are triples: no literal as a subject (SPARQL 1.1 Update, 3.1.3)."""
    made = dict[Triple, None]()
    places = [[bound.get(node, node) if isinstance(node, Var) else node for node in _nodes(each)] for each in patterns]
    for row in rows:
        for nodes in places:
            subject, predicate, end, *graph = [row[node] if isinstance(node, int) else node for node in nodes]
            if not (isinstance(subject, str) and isinstance(predicate, str) and isinstance(end, str)):
                continue
            if is_literal(subject) or not is_iri(predicate):
                continue
            triple = subject, predicate, end
            if not graph:
                made[triple] = None
            elif isinstance(graph[0], str) and is_iri(graph[0]):
                made[in_graph(graph[0], triple)] = None
    return list(made)


def _nodes(pattern: TriplePattern) -> tuple[Node, ...]:
    """Subject, predicate, object; the graph where the pattern has one."""
    assert isinstance(pattern.predicate, Var | str)
    graph = graph_of(pattern)
    return (pattern.subject, pattern.predicate, pattern.object, *(() if graph is None else (graph,)))


def _terms(fact: Triple) -> tuple[Term, ...]:
    """Subject, predicate, object and graph of a fact of a named graph."""
    name, triple = apart(fact)
    return (*triple, name)


@dataclass(frozen=True, slots=True)
class _Block:
    """The text between braces, and the keyword before it (``INSERT DATA``, ``WHERE`` ...)."""

    keyword: str
    text: str
    start: int


def together(
    changes: Sequence[UpdateOperation], holding: Holding, most: int, looks: int
) -> tuple[tuple[Triple, ...], tuple[Triple, ...]]:
    """The triples that come and go by changes one after the other; only the first change reads the facts.

    TooManySolutionsError beyond ``most`` solutions or triples, and when WHERE looks at more than ``looks`` triples.
    """
    counted = Looks(looks)
    added, removed = dict[Triple, None](), dict[Triple, None]()
    for change in changes:
        deleted, inserted = change.triples(holding, most, counted)
        for triple in deleted:
            added.pop(triple, None)
            removed[triple] = None
        added |= dict.fromkeys(inserted)
    if len(added) + len(removed) > most:
        raise TooManySolutionsError(f"an update of more than {most} triples: make it in parts")
    return tuple(added), tuple(removed)


def uses_graphs(changes: Iterable[UpdateOperation]) -> bool:
    """Whether anything of named graphs is read or changed."""
    patterns = (pattern for each in changes for pattern in (*each.where, *each.delete, *each.insert))
    return any(graph_of(pattern) is not None for pattern in patterns)


def read_update(text: str, fresh: Callable[[str], Term], graphs: bool = False) -> list[UpdateOperation]:
    """The operations of an update; ``fresh`` gives new blank nodes by their names, ``graphs`` lets GRAPH be used.

    QueryError names what is refused and where.
    """
    if len(text) > LONGEST:
        raise refusal(f"the update has {len(text)} characters, more than {LONGEST}: send data as RDF", "", 0)
    check_bounds(text, SERVED)
    operations: list[UpdateOperation] = []
    prologue, declared = "", 0
    for part in _parts(text, graphs):
        prologue += part.prologue
        declared += len(tokens(prologue))
        if declared > MOST_DECLARED:
            raise refusal("too many declarations for so many operations: send them in several updates", text, 0)
        operations.append(_operation(part, prologue, fresh))
    if not operations:
        raise refusal(f"there is no update here: {_SUPPORTED}", text, 0)
    return operations


@dataclass(frozen=True, slots=True)
class _Part:
    """One operation: the declarations before it, its blocks."""

    text: str
    prologue: str
    blocks: tuple[_Block, ...]
    graphs: tuple[str, str]
    """The names of the graphs of WITH and of USING as they are written, empty where there are none."""


def _parts(text: str, graphs: bool) -> Iterator[_Part]:
    found = tokens(text)
    for token in found:
        if token.says(*_REFUSED) and not (graphs and token.says(*_OF_GRAPHS)):
            word = token.text.upper()
            raise refusal(f"{word} is not supported: {_REFUSED[word]}", text, token.start)
    place = 0
    while place < len(found):
        first = next((n for n in range(place, len(found)) if found[n].says("INSERT", "DELETE", "WITH")), len(found))
        declared = text[found[place].start : found[first].start if first < len(found) else len(text)]
        if first == len(found):
            if declared.strip(" \t\r\n;"):
                raise refusal(f"this is no operation: {_SUPPORTED}", text, found[place].start)
            return
        part, place = _part(text, declared, found, first)
        yield part


def _part(text: str, declared: str, found: Sequence[Token], place: int) -> tuple[_Part, int]:
    """The operation at a token, and the place after it and its semicolon."""
    blocks: list[_Block] = []
    words: list[str] = []
    graphs = {"WITH": "", "USING": ""}
    while place < len(found) and found[place].text != ";":
        token = found[place]
        if token.text == "{":
            after = _closing(text, found, place)
            blocks.append(_Block(" ".join(words), text[token.end : found[after].start], token.start))
            words, place = [], after + 1
        elif token.says("INSERT", "DELETE", "DATA", "WHERE"):
            words.append(token.text.upper())
            place += 1
        elif token.says("USING") or (token.says("WITH") and not (blocks or words)):
            _refuse_several(text, found, place, graphs)
            graphs[token.text.upper()] = found[place + 1].text
            place += 2
        else:
            raise refusal(f"{token.text[:40]} does not belong here: {_SUPPORTED}", text, token.start)
    if words:
        raise refusal(f"{' '.join(words)} has no {{ ... }}", text, len(text))
    return _Part(text, declared, tuple(blocks), (graphs["WITH"], graphs["USING"])), place + 1


def _refuse_several(text: str, found: Sequence[Token], place: int, graphs: Mapping[str, str]) -> None:
    """QueryError for what is not one name after WITH or USING, once: USING NAMED, several graphs as one."""
    word, after = found[place].text.upper(), found[place + 1 : place + 2]
    if graphs[word]:
        raise refusal(f"{word} a second time: one graph is read, GRAPH names others", text, found[place].start)
    if not after or after[0].text in "{};" or after[0].says("NAMED"):
        raise refusal(f"{word} is followed by the IRI of one graph; GRAPH names others", text, found[place].start)


def _closing(text: str, found: Sequence[Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(found)):
        depth += {"{": 1, "}": -1}.get(found[place].text, 0)
        if depth == 0:
            return place
    raise refusal("this { is not closed", text, found[opening].start)


def _operation(part: _Part, prologue: str, fresh: Callable[[str], Term]) -> UpdateOperation:
    """An operation whose patterns without a graph are in that of WITH; those of WHERE in that of USING if there is one.

    SPARQL 1.1 Update, 3.1.3: USING overrides WITH for WHERE.
    """
    change = _plain(part, prologue, fresh)
    changed, read = (graph_name(prologue, each) if each else None for each in part.graphs)
    if changed is None and read is None:
        return change
    if part.blocks[-1].keyword != "WHERE":
        raise refusal("WITH and USING are for DELETE and INSERT with WHERE", part.text, part.blocks[0].start)
    if isinstance(changed, Var) or isinstance(read, Var):
        raise refusal("WITH and USING are followed by an IRI", part.text, part.blocks[0].start)
    where = tuple(within(changed if read is None else read, each) for each in change.where)
    delete, insert = (tuple(within(changed, each) for each in some) for some in (change.delete, change.insert))
    return UpdateOperation(where, delete, insert)


def _plain(part: _Part, prologue: str, fresh: Callable[[str], Term]) -> UpdateOperation:
    keywords = tuple(block.keyword for block in part.blocks)
    texts = [block.text for block in part.blocks]
    match keywords:
        case ("INSERT DATA",):
            data, _ = _parsed(prologue, texts[0], "")
            return UpdateOperation((), (), _ground(part, data, fresh))
        case ("DELETE DATA",):
            data, _ = _parsed(prologue, texts[0], "")
            return UpdateOperation((), _ground(part, data, None), ())
        case ("DELETE WHERE",):
            template, where = _parsed(prologue, texts[0], texts[0])
            return UpdateOperation(_joined(part, where), _named(part, template), ())
        case ("DELETE", "WHERE") | ("INSERT", "WHERE") | ("DELETE", "INSERT", "WHERE"):
            read = {key: _parsed(prologue, text, texts[-1]) for key, text in zip(keywords[:-1], texts, strict=False)}
            where = next(iter(read.values()))[1]
            delete, insert = (_named(part, read[key][0]) if key in read else () for key in ("DELETE", "INSERT"))
            return UpdateOperation(_joined(part, where), delete, insert)
    raise refusal(f"{', '.join(keywords)} is not supported: {_SUPPORTED}", part.text, part.blocks[0].start)


def _parsed(prologue: str, template: str, where: str) -> tuple[tuple[TriplePattern, ...], Pattern]:
    """A template and a pattern."""
    form = parse_sparql(f"{prologue}\nCONSTRUCT {{}} WHERE {{{where}}}")
    return _template(prologue, template), form.pattern


def _ground(
    part: _Part, data: Sequence[TriplePattern], fresh: Callable[[str], Term] | None
) -> tuple[TriplePattern, ...]:
    """Data without variables; blank nodes by ``fresh``, refused without it."""
    return tuple(_of_terms([_term(part, node, fresh) for node in _nodes(each)]) for each in data)


def _of_terms(terms: Sequence[Term]) -> TriplePattern:
    return within(terms[3] if len(terms) == 4 else None, TriplePattern(terms[0], terms[1], terms[2]))


def _term(part: _Part, node: object, fresh: Callable[[str], Term] | None) -> Term:
    if isinstance(node, str):
        return node
    if isinstance(node, Var) and node.name.startswith("_:") and fresh is not None:
        return fresh(node.name)
    what = "a blank node names nothing here: write its genid IRI" if _is_blank(node) else "data has no variables"
    raise refusal(what, part.text, part.blocks[0].start)


def _named(part: _Part, template: Sequence[TriplePattern]) -> tuple[TriplePattern, ...]:
    for each in template:
        if any(map(_is_blank, _nodes(each))):
            raise refusal("a blank node in a template: write an IRI or a variable", part.text, part.blocks[0].start)
    return tuple(template)


def _is_blank(node: object) -> bool:
    return isinstance(node, Var) and node.name.startswith("_:")


def _joined(part: _Part, pattern: Pattern) -> tuple[TriplePattern, ...]:
    """The triple patterns of a basic graph pattern; QueryError names what else is there."""
    match pattern:
        case BGP(patterns):
            paths = [each for each in patterns if not isinstance(each.predicate, Var | str)]
            if not paths:
                return patterns
            raise refusal("a property path is not supported in an update", part.text, part.blocks[-1].start)
        case Join(left, right):
            return _joined(part, left) + _joined(part, right)
        case Graph(name, inner):
            return tuple(within(name, each) for each in _joined(part, inner))
    kind = type(pattern).__name__.upper()
    raise refusal(f"{kind} is not supported in an update: {_SUPPORTED}", part.text, part.blocks[-1].start)
