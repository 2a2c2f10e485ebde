"""SPARQL 1.1 Update, read into operations on facts; those of named graphs are as ``model.fact`` writes them.

``sparql.updates`` says what each changes. CLEAR, DROP, COPY, MOVE and ADD are read as the DELETE and INSERT that they
abbreviate (3.2); CREATE changes nothing, because a graph exists while it has a fact.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from streamgauge.formats.bounds import SERVED, TextBounds
from streamgauge.model.algebra import BGP, Call, Graph, Node, Pattern, TriplePattern, Union, Var
from streamgauge.model.fact import is_named
from streamgauge.model.terms import Term, Triple
from streamgauge.query.parser import parse_sparql
from streamgauge.query.templates import MAX_DECLARED, closing_of, graph_name, graph_of, read_template, within
from streamgauge.query.text import Token, check_bounds, refusal, tokens
from streamgauge.query.traversal import every_expression, every_pattern, expressions, with_value
from streamgauge.query.update_data import NewNode, read_data

WITH_DATA: Final = TextBounds(4 * 2**20, 1_000_000, SERVED.values)
"""Of an update with its data; what is beside the data is within the bounds of a text that is served."""

_SUPPORTED: Final = "INSERT DATA, DELETE DATA, DELETE WHERE, DELETE/INSERT ... WHERE, CLEAR, DROP, COPY, MOVE, ADD"
_VERBS: Final = ("INSERT", "DELETE", "WITH", "CLEAR", "DROP", "CREATE", "COPY", "MOVE", "ADD", "LOAD")
_DRAWN: Final = ("RAND", "UUID", "STRUUID", "NOW")
"""Functions without a value here; NOW is one where the request says no time."""
_OF_GRAPHS: Final = ("GRAPH", "WITH", "USING", "CREATE", "COPY", "MOVE", "ADD", "NAMED")
"""Words that are taken where facts have graphs."""


@dataclass(frozen=True, slots=True)
class GraphNames:
    """The graphs that a pattern is over (SPARQL 1.1, 13.2): ``default`` are merged, ``named`` can be asked by GRAPH.

    ``None`` is the default graph of the facts, and all of their named graphs.
    """

    default: tuple[Term, ...] | None = None
    named: tuple[Term, ...] | None = None


ALL: Final = GraphNames()


@dataclass(frozen=True, slots=True)
class UpdateOperation:
    """One operation: DELETE and INSERT over the solutions of ``where`` (SPARQL 1.1 Update, 3.1.3), or facts of data.

    ``graphs`` are those of ``where``, ``fresh`` names new blank nodes.
    """

    where: Pattern | None = None
    delete: tuple[TriplePattern, ...] = ()
    insert: tuple[TriplePattern, ...] = ()
    removed: tuple[Triple, ...] = ()
    added: tuple[Triple, ...] = ()
    graphs: GraphNames = ALL
    fresh: NewNode = field(default=str, repr=False, compare=False)


def uses_graphs(operations: Iterable[UpdateOperation]) -> bool:
    """Whether anything of named graphs is read or changed."""
    return any(map(_uses_graphs, operations))


def _uses_graphs(operation: UpdateOperation) -> bool:
    if any(graph_of(pattern) is not None for pattern in (*operation.delete, *operation.insert)):
        return True
    if any(is_named(fact[0]) for fact in (*operation.removed, *operation.added)):
        return True
    reads = operation.where is not None and any(isinstance(each, Graph) for each in every_pattern(operation.where))
    return reads or operation.graphs != ALL


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """The context of an update: ``fresh`` gives new blank nodes by their names, ``graphs`` lets GRAPH be used.

    ``using`` are graphs that the request names (SPARQL 1.1 Protocol, 2.2.3), ``now`` is the value of NOW().
    """

    fresh: NewNode
    graphs: bool = False
    using: GraphNames | None = None
    now: Term | None = None


def read_update(text: str, context: UpdateContext) -> list[UpdateOperation]:
    """The operations of an update; QueryError names what is refused and where."""
    check_bounds(text, WITH_DATA)
    try:
        return _read(text, context)
    finally:
        if len(text) > SERVED.characters:
            tokens.cache_clear()


def _read(text: str, context: UpdateContext) -> list[UpdateOperation]:
    parts = list(_parts(text, context))
    if not parts:
        raise refusal(f"there is no update here: {_SUPPORTED}", text, 0)
    _check_size(text, parts)
    operations: list[UpdateOperation] = []
    for keyword, run in groupby(parts, lambda part: part.data):
        members = list(run)
        if keyword:
            node = context.fresh if keyword == "INSERT DATA" else None
            facts = read_data(text, members[-1].declared, [part.blocks[0].inside for part in members], node)
            operations.append(UpdateOperation(added=facts) if node else UpdateOperation(removed=facts))
        else:
            operations += (operation for part in members for operation in _operations(part, context))
    return operations


def _check_size(text: str, parts: Sequence["_Part"]) -> None:
    """QueryError for an update that is too long beside its data, or declares too much for so many operations."""
    others = [part for part in parts if not part.data]
    blocks = [block for part in others for block in part.blocks]
    rest = len(parts[-1].prologue) + sum(block.end - block.start for block in blocks)
    if rest > SERVED.characters:
        raise refusal(f"{rest} characters beside data, more than {SERVED.characters}: send several updates", text, 0)
    if sum(len(block.inside) for block in blocks) > SERVED.tokens:
        raise refusal(f"more than {SERVED.tokens} terms, words and signs beside data: send several updates", text, 0)
    if sum(1 + len(part.declared) for part in others) > MAX_DECLARED // (1 + len(tokens(parts[-1].prologue))):
        raise refusal("too many declarations for so many operations: send them in several updates", text, 0)


@dataclass(frozen=True, slots=True)
class _Block:
    """The tokens between braces, their place [start, end), and the keyword before (``INSERT DATA``, ``WHERE`` ...)."""

    keyword: str
    text: str
    start: int
    end: int
    inside: Sequence[Token]


@dataclass(frozen=True, slots=True)
class _Part:
    """One operation: the declarations before it at [start, end), its blocks or its words."""

    text: str
    declared: tuple[tuple[int, int], ...]
    words: tuple[Token, ...] = ()
    blocks: tuple[_Block, ...] = ()
    changed: str = ""
    """The name of the graph of WITH as it is written."""
    using: tuple[str, ...] = ()
    using_named: tuple[str, ...] = ()

    @property
    def prologue(self) -> str:
        """The text of the declarations."""
        return "\n".join(self.text[start:end] for start, end in self.declared)

    @property
    def data(self) -> str:
        """``INSERT DATA`` or ``DELETE DATA``; empty for another operation."""
        (*_, keyword) = (block.keyword for block in self.blocks) if self.blocks else ("",)
        alone = len(self.blocks) == 1 and not (self.changed or self.using or self.using_named)
        return keyword if keyword.endswith(" DATA") and alone else ""

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.words[0].start if self.words else self.blocks[0].start


def _parts(text: str, context: UpdateContext) -> Iterator[_Part]:
    found = tokens(text)
    for token in () if context.graphs else found:
        if token.says(*_OF_GRAPHS):
            raise refusal(f"{token.text.upper()} is not supported: facts have no graph of their own", text, token.start)
    if context.using is not None and not context.graphs:
        raise refusal("graphs named beside the update: facts have no graph of their own", text, 0)
    place, declared = 0, list[tuple[int, int]]()
    while place < len(found):
        after = _after_declarations(found, place)
        if after > place:
            declared.append((found[place].start, found[after - 1].end))
        if after == len(found):
            return
        if not found[after].says(*_VERBS):
            raise refusal(f"this is no operation: {_SUPPORTED}", text, found[after].start)
        reader = _PartReader(text, found, after)
        yield reader.part(tuple(declared))
        place = reader.place + 1


def _after_declarations(found: Sequence[Token], place: int) -> int:
    while place < len(found) and found[place].says("PREFIX", "BASE", "VERSION"):
        place += 3 if found[place].says("PREFIX") else 2
    return min(place, len(found))


class _PartReader:
    """Reads the operation at a token; ``place`` is then that of the semicolon after it."""

    def __init__(self, text: str, found: Sequence[Token], place: int) -> None:
        self._text, self._found, self.place = text, found, place

    def part(self, declared: tuple[tuple[int, int], ...]) -> _Part:
        """The operation."""
        if not self._found[self.place].says("INSERT", "DELETE", "WITH"):
            first = self.place
            while self.place < len(self._found) and self._found[self.place].text != ";":
                self.place += 1
            return _Part(self._text, declared, tuple(self._found[first : self.place]))
        return self._with_blocks(declared)

    def _with_blocks(self, declared: tuple[tuple[int, int], ...]) -> _Part:
        text, found = self._text, self._found
        blocks: list[_Block] = []
        words: list[str] = []
        graphs: dict[str, list[str]] = {"WITH": [], "USING": [], "USING NAMED": []}
        while self.place < len(found) and found[self.place].text != ";":
            token = found[self.place]
            if token.text == "{":
                after = closing_of(text, found, self.place)
                inside, end = found[self.place + 1 : after], found[after].start
                blocks.append(_Block(" ".join(words), text[token.end : end], token.end, end, inside))
                words, self.place = [], after + 1
            elif token.says("INSERT", "DELETE", "DATA", "WHERE"):
                words.append(token.text.upper())
                self.place += 1
            elif token.says("USING") or (token.says("WITH") and not (blocks or words)):
                self._graph(graphs)
            else:
                raise refusal(f"{token.text[:40]} does not belong here: {_SUPPORTED}", text, token.start)
        if words or not blocks:
            raise refusal(f"{' '.join(words) or 'WITH'} has no {{ ... }}", text, len(text))
        changed = "".join(graphs["WITH"])
        return _Part(text, declared, (), tuple(blocks), changed, tuple(graphs["USING"]), tuple(graphs["USING NAMED"]))

    def _graph(self, graphs: dict[str, list[str]]) -> None:
        """The name after WITH, USING or USING NAMED."""
        word = self._found[self.place]
        kind, self.place = word.text.upper(), self.place + 1
        if kind == "USING" and self.place < len(self._found) and self._found[self.place].says("NAMED"):
            kind, self.place = "USING NAMED", self.place + 1
        if self.place >= len(self._found) or self._found[self.place].kind not in ("iri", "name"):
            raise refusal(f"{kind} is followed by the IRI of a graph", self._text, word.start)
        if kind == "WITH" and graphs["WITH"]:
            raise refusal("WITH a second time: one graph is changed", self._text, word.start)
        graphs[kind].append(self._found[self.place].text)
        self.place += 1


# DELETE and INSERT with WHERE


def _operations(part: _Part, context: UpdateContext) -> Iterator[UpdateOperation]:
    if part.words:
        yield from _management(part, context.graphs)
        return
    yield _modification(part, context)


def _modification(part: _Part, context: UpdateContext) -> UpdateOperation:
    """Patterns of templates without a graph are in that of WITH, those of WHERE in those of USING if there are any.

    SPARQL 1.1 Update, 3.1.3: USING overrides WITH for WHERE.
    """
    keywords, prologue = tuple(block.keyword for block in part.blocks), part.prologue
    texts = {block.keyword: block.text for block in part.blocks}
    match keywords:
        case ("DELETE WHERE",):
            _refuse_graphs(part, context.using)
            template = _named(part, read_template(prologue, texts["DELETE WHERE"]))
            return UpdateOperation(_where(part, texts["DELETE WHERE"], context), template, graphs=context.using or ALL)
        case ("DELETE", "WHERE") | ("INSERT", "WHERE") | ("DELETE", "INSERT", "WHERE"):
            pass
        case _:
            raise refusal(f"{', '.join(keywords)} is not supported: {_SUPPORTED}", part.text, part.start)
    changed = _iri(part, prologue, part.changed) if part.changed else None
    read = {name: read_template(prologue, texts[name]) if name in texts else () for name in ("DELETE", "INSERT")}
    delete, insert = (tuple(within(changed, pattern) for pattern in patterns) for patterns in read.values())
    graphs, where = _graphs(part, prologue, changed, context.using), _where(part, texts["WHERE"], context)
    return UpdateOperation(where, _named(part, delete), insert, graphs=graphs, fresh=context.fresh)


def _graphs(part: _Part, prologue: str, changed: Term | None, using: GraphNames | None) -> GraphNames:
    """The graphs of WHERE; QueryError where both the request and the text name some (SPARQL 1.1 Protocol, 2.2.3)."""
    if using is not None:
        _refuse_graphs(part, using)
        return using
    if part.using or part.using_named:
        default, named = (
            tuple(_iri(part, prologue, name) for name in names) for names in (part.using, part.using_named)
        )
        return GraphNames(default, named)
    return ALL if changed is None else GraphNames((changed,))


def _refuse_graphs(part: _Part, using: GraphNames | None) -> None:
    if using is not None and (part.changed or part.using or part.using_named):
        raise refusal("WITH or USING beside using-graph-uri: name the graphs in one place", part.text, part.start)
    if using is None and (part.changed or part.using or part.using_named):
        raise refusal("WITH and USING are for DELETE and INSERT with WHERE", part.text, part.start)


def _iri(part: _Part, prologue: str, text: str) -> Term:
    name = graph_name(prologue, text)
    if isinstance(name, Var):
        raise refusal("WITH and USING are followed by an IRI", part.text, part.start)
    return name


def _where(part: _Part, text: str, context: UpdateContext) -> Pattern:
    pattern = parse_sparql(f"{part.prologue}\nCONSTRUCT {{}} WHERE {{{text}\n}}", bounds=SERVED).pattern
    if context.now is not None:
        pattern = with_value(pattern, Call("NOW", ()), context.now)
    for tree in (tree for each in every_pattern(pattern) for tree in expressions(each)):
        for call in every_expression(tree):
            if isinstance(call, Call) and call.operator.upper() in _DRAWN:
                raise refusal(f"{call.operator} is not supported in an update: write its value", part.text, part.start)
    return pattern


def _named(part: _Part, template: Sequence[TriplePattern]) -> tuple[TriplePattern, ...]:
    """A template of DELETE, which has no blank nodes (SPARQL 1.1 Update, 3.1.3.2)."""
    nodes = (node for each in template for node in (each.subject, each.predicate, each.object))
    if any(isinstance(node, Var) and node.name.startswith("_:") for node in nodes):
        raise refusal("a blank node in a template of DELETE: write an IRI or a variable", part.text, part.start)
    return tuple(template)


# Operations on whole graphs


def _management(part: _Part, graphs: bool) -> Iterator[UpdateOperation]:
    verb, *rest = [token for token in part.words if not token.says("SILENT")]
    match verb.text.upper():
        case "LOAD":
            raise refusal("LOAD is not supported: send the data itself", part.text, part.start)
        case "CREATE":
            _target(part, rest, ("GRAPH",))
        case "CLEAR" | "DROP":
            target = _target(part, rest, ("GRAPH", "DEFAULT", "NAMED", "ALL"))
            yield _cleared(target if graphs else None)
        case word:
            between = next((at for at, token in enumerate(rest) if token.says("TO")), len(rest))
            source = _target(part, rest[:between], ("GRAPH", "DEFAULT", ""))
            goal = _target(part, rest[between + 1 :], ("GRAPH", "DEFAULT", ""))
            if source != goal:
                yield _copied(source, goal, cleared=word != "ADD", moved=word == "MOVE")


def _target(part: _Part, words: Sequence[Token], kinds: Sequence[str]) -> str | Node | None:
    """The graph that an operation names: its IRI, ``None`` for the default graph, a variable for each, ``ALL``."""
    kind = words[0].text.upper() if words and words[0].kind == "word" else ""
    names = words[1:] if kind == "GRAPH" else words if kind == "" else ()
    if kind not in kinds or len(words) != len(names) + (kind != "") or len(names) > 1:
        raise refusal(f"expected one of {', '.join(filter(None, kinds))}", part.text, part.start)
    if kind in ("GRAPH", ""):
        if not names or names[0].kind not in ("iri", "name"):
            raise refusal("expected the IRI of a graph", part.text, part.start)
        return graph_name(part.prologue, names[0].text)
    return {"DEFAULT": None, "NAMED": Var("g"), "ALL": "ALL"}[kind]


def _triple(number: int) -> TriplePattern:
    return TriplePattern(Var(f"s{number}"), Var(f"p{number}"), Var(f"o{number}"))


def _all_of(graph: Node | None, number: int) -> tuple[Pattern, TriplePattern]:
    """All triples of a graph: the pattern that they match, and the template that has them again."""
    triple = _triple(number)
    pattern: Pattern = BGP((triple,))
    return (pattern, triple) if graph is None else (Graph(graph, pattern), within(graph, triple))


def _cleared(target: str | Node | None) -> UpdateOperation:
    pattern, template = _all_of(None if target == "ALL" else target, 1)
    if target != "ALL":
        return UpdateOperation(pattern, (template,))
    named, of_named = _all_of(Var("g"), 2)
    return UpdateOperation(Union(pattern, named), (template, of_named))


def _copied(source: Node | str | None, goal: Node | str | None, cleared: bool, moved: bool) -> UpdateOperation:
    """The triples of ``source`` in ``goal`` too: in it alone where it is ``moved``, beside no others if ``cleared``."""
    pattern, template = _all_of(source, 1)
    delete = (template,) if moved else ()
    if cleared:
        other, gone = _all_of(goal, 2)
        pattern, delete = Union(pattern, other), (*delete, gone)
    return UpdateOperation(pattern, delete, (within(goal, _triple(1)),))
