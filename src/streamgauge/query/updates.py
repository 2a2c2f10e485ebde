"""SPARQL 1.2 Update, read into operations on facts; those of named graphs are as ``model.fact`` writes them.

``sparql.updates`` says what each changes. CLEAR, DROP, COPY, MOVE and ADD are read as the DELETE and INSERT that they
abbreviate (3.2); CREATE changes nothing, because a graph exists while it has a fact.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, groupby
from sys import intern
from typing import Final, TypeAlias

from streamgauge.formats.bounds import SERVED, TextBounds
from streamgauge.formats.syntaxes import most_characters
from streamgauge.model.algebra import BGP, Call, Graph, Node, Path, Pattern, TriplePattern, Union, Var
from streamgauge.model.fact import in_graph, is_named
from streamgauge.model.terms import Term, Triple, is_triple_of, misplaced, triple_term
from streamgauge.query.prologue import Prologue, read_on, read_prologue
from streamgauge.query.reader import QueryReader, joined
from streamgauge.query.stamps import TIMESTAMP
from streamgauge.query.text import Token, check_bounds, refusal, tokens, unanswered
from streamgauge.query.traversal import every_expression, every_pattern, expressions, with_value
from streamgauge.query.versions import decoded, is_earlier

WITH_DATA: Final = TextBounds(4 * 2**20, 1_000_000, SERVED.values)
"""Of an update with its data; what is beside the data is within the bounds of a text that is served."""

_SUPPORTED: Final = "INSERT DATA, DELETE DATA, DELETE WHERE, DELETE/INSERT ... WHERE, CLEAR, DROP, COPY, MOVE, ADD"
_NO_VALUE: Final = ("RAND", "UUID", "STRUUID", "NOW", TIMESTAMP)
"""Functions without a value here; NOW is one where the request says no time."""
_OF_GRAPHS: Final = ("GRAPH", "WITH", "USING", "CREATE", "COPY", "MOVE", "ADD", "NAMED")
"""Words that are taken where facts have graphs."""

NewNode: TypeAlias = Callable[[str], Term]


@dataclass(frozen=True, slots=True)
class GraphTriplePattern(TriplePattern):
    """A triple pattern in a named graph."""

    graph: Node


def graph_of(pattern: TriplePattern) -> Node | None:
    """The graph of a pattern, ``None`` for the default graph."""
    return pattern.graph if isinstance(pattern, GraphTriplePattern) else None


def _within(graph: Node | None, pattern: TriplePattern) -> TriplePattern:
    """A pattern in a graph; one that has a graph of its own stays there."""
    if graph is None or isinstance(pattern, GraphTriplePattern):
        return pattern
    return GraphTriplePattern(pattern.subject, pattern.predicate, pattern.object, graph)


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
    reads = operation.where is not None and any(isinstance(inner, Graph) for inner in every_pattern(operation.where))
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
        prologue = read_prologue(text, tokens(text))
        if is_earlier(prologue.version) and "\\" in text:
            text = decoded(text).text
            check_bounds(text, WITH_DATA)
            prologue = read_prologue(text, tokens(text))
        return list(_joined(_UpdateReader(text, tokens(text), prologue, context).operations()))
    except RecursionError:
        raise refusal("the update is nested too deeply: write it flatter", text, 0) from None
    finally:
        if len(text) > SERVED.characters:
            tokens.cache_clear()


def _joined(operations: Iterable[UpdateOperation]) -> Iterator[UpdateOperation]:
    """The operations, those that only add facts of data, or only remove them, as one where they follow each other."""
    for (data, _), run in groupby(operations, lambda operation: (operation.where is None, bool(operation.removed))):
        members = list(run)
        if data:
            removed = chain.from_iterable(member.removed for member in members)
            yield UpdateOperation(
                removed=tuple(removed), added=tuple(chain.from_iterable(member.added for member in members))
            )
        else:
            yield from members


class _UpdateReader(QueryReader):
    """The operations of an update, from the end of its first prologue on."""

    _kind = "update"

    def __init__(self, text: str, words: Sequence[Token], prologue: Prologue, context: UpdateContext) -> None:
        super().__init__(text, words, prologue)
        self._context = context
        self._notes = []
        self._inserts: bool | None = None
        """Whether the data that is read is inserted; ``None`` beside data."""
        self._room = self._most = most_characters(len(text))
        self._data_words = self._data_characters = self._number = 0
        self._labelled: dict[str, int] = {}
        """The operation in whose data each label of a blank node stands, by its number."""

    def operations(self) -> Iterator[UpdateOperation]:
        """Each operation in its turn. QueryError."""
        self._check_graphs()
        while self._token.text:
            self._labels, self._weight, self._number = {}, 0, self._number + 1
            yield from self._operation()
            self._check_size()
            if not self._skip(";") and self._token.text:
                self._expect("a semicolon between operations")
            self._at = read_on(self._prologue, self._words, self._at)

    def _check_graphs(self) -> None:
        if self._context.graphs:
            return
        for token in self._words:
            if token.says(*_OF_GRAPHS):
                self._refuse(f"{token.text.upper()} is not supported: facts have no graph of their own", token)
        if self._context.using is not None:
            self._refuse("graphs named beside the update: facts have no graph of their own")

    def _check_size(self) -> None:
        """QueryError for an update that is too long beside its data."""
        characters = self._words[self._at - 1].end - self._data_characters
        if characters > SERVED.characters:
            self._refuse(f"{characters} characters beside data, more than {SERVED.characters}: send several updates")
        if self._at - self._data_words > SERVED.tokens:
            self._refuse(f"more than {SERVED.tokens} terms, words and signs beside data: send several updates")

    def _operation(self) -> Iterator[UpdateOperation]:
        word, token = self._word(), self._token
        match word:
            case "INSERT" | "DELETE" if self._following("DATA"):
                yield self._data_of(word)
            case "DELETE" if self._following("WHERE"):
                yield self._delete_where(token)
            case "INSERT" | "DELETE" | "WITH":
                yield self._modification(token)
            case "LOAD":
                raise unanswered("LOAD is not supported: send the data itself", self._text, token.start)
            case "CREATE" | "CLEAR" | "DROP" | "COPY" | "MOVE" | "ADD":
                self._at += 1
                self._says("SILENT")
                yield from self._management(word)
            case _:
                self._refuse(f"this is no operation: {_SUPPORTED}")

    def _following(self, word: str) -> bool:
        """Step over two keywords, if the second one is this."""
        if self._at + 1 < len(self._words) and self._words[self._at + 1].says(word):
            self._at += 2
            return True
        return False

    # Quads

    def _sections(self, scope: str) -> Iterator[tuple[Node | None, tuple[TriplePattern, ...]]]:
        """The triples between braces, graph by graph, ``None`` for those outside of GRAPH."""
        self._must("{")
        while not self._skip("}"):
            if self._says("GRAPH"):
                name = self._variable() if self._token.kind == "variable" else self._iri()
                self._must("{")
                yield name, tuple(self._triples(scope))
                if not self._skip("}"):
                    self._expect("a triple or the } of GRAPH")
                self._skip(".")
            elif self._begins_triples():
                yield None, tuple(self._triples(scope))
            else:
                self._expect("a triple, GRAPH name { triples } or }")

    def _quads(self) -> tuple[TriplePattern, ...]:
        """The patterns of a template, those in GRAPH with their graph."""
        return tuple(_within(name, triple) for name, triples in self._sections("template") for triple in triples)

    def _deleted(self) -> tuple[TriplePattern, ...]:
        """A template of DELETE, which has no blank nodes (SPARQL 1.1 Update, 3.1.3.2)."""
        token, template = self._token, self._quads()
        if any(_is_blank(node) for triple in template for node in (triple.subject, triple.predicate, triple.object)):
            self._refuse("a blank node in a template of DELETE: write an IRI or a variable", token)
        return template

    # Data

    def _data_of(self, word: str) -> UpdateOperation:
        """INSERT DATA or DELETE DATA, from its brace on."""
        first, self._inserts = self._at - 2, word == "INSERT"
        facts = tuple(self._facts())
        self._inserts = None
        self._data_words += self._at - first + 1  # with the semicolon behind it
        self._data_characters += self._words[self._at - 1].end - self._words[first].start
        return UpdateOperation(added=facts) if word == "INSERT" else UpdateOperation(removed=facts)

    def _variable(self) -> Var:
        if self._inserts is not None:
            self._refuse("data has no variables")
        return super()._variable()

    def _node(self) -> Node:
        token = self._token
        known = self._labelled.setdefault(token.text, self._number) if self._inserts and token.kind == "blank" else None
        if known not in (None, self._number):
            self._refuse(f"the blank node {token.text} stands in the data of another operation: write an IRI for both")
        return super()._node()

    def _facts(self) -> Iterator[Triple]:
        """The triples of quads without variables; QueryError where their terms are very long in all."""
        token = self._token
        for graph, triples in self._sections("template"):
            for triple in triples:
                nodes = (triple.subject, triple.predicate, triple.object)
                subject, predicate, item = (intern(self._ground(node)) for node in nodes)
                if not is_triple_of(subject, predicate, item):
                    self._refuse(f"a triple of the data {misplaced((subject, predicate, item))}", token)
                self._room -= len(subject) + len(predicate) + len(item)
                if self._room < 0:
                    what = f"its terms have more than {self._most} characters in all: write fewer, or shorter ones"
                    self._refuse(what, token)
                fact = subject, predicate, item
                yield fact if graph is None else in_graph(str(graph), fact)
            self._terms = {}
            token = self._token

    def _ground(self, node: Node | Path) -> Term:
        """The term of a node: a new one for a blank node; that of its parts for a triple term with blank nodes."""
        if isinstance(node, str):
            return node
        assert isinstance(node, Var)
        if node in self._terms:
            parts = (self._numbered(part, "template") for part in self._terms[node])
            subject, predicate, item = map(self._ground, parts)
            return triple_term((subject, predicate, item))
        if not self._inserts:
            self._refuse("a blank node names nothing here: write its genid IRI", self._words[self._at - 1])
        return self._context.fresh(node.name)

    # Operations with WHERE

    def _delete_where(self, token: Token) -> UpdateOperation:
        """DELETE WHERE: its quads are the pattern, and once more the template."""
        using, start = self._context.using, self._at
        empty: Pattern = BGP(())
        parts = ((name, self._block(triples)) for name, triples in self._sections("query"))
        where = reduce(joined, (part if name is None else Graph(name, part) for name, part in parts), empty)
        self._at = start
        template = self._deleted()
        return UpdateOperation(self._answered(where, token), template, graphs=using or ALL)

    def _modification(self, token: Token) -> UpdateOperation:
        """Patterns of templates without a graph are in that of WITH, those of WHERE in those of USING if there are any.

        SPARQL 1.1 Update, 3.1.3: USING overrides WITH for WHERE.
        """
        changed = self._iri() if self._says("WITH") else None
        delete = self._deleted() if self._says("DELETE") else None
        insert = self._quads() if self._says("INSERT") else None
        if delete is None and insert is None:
            self._expect("DELETE or INSERT")
        graphs = self._using(changed, token)
        self._must_say("WHERE")
        where = self._answered(self._group(), token)
        delete, insert = (tuple(_within(changed, part) for part in some or ()) for some in (delete, insert))
        return UpdateOperation(where, delete, insert, graphs=graphs, fresh=self._context.fresh)

    def _using(self, changed: Term | None, token: Token) -> GraphNames:
        """The graphs of WHERE; QueryError where request and text both name some (SPARQL 1.1 Protocol, 2.2.3)."""
        default: list[Term] = []
        named: list[Term] = []
        while self._says("USING"):
            (named if self._says("NAMED") else default).append(self._iri())
        using = self._context.using
        if using is not None and (changed is not None or default or named):
            self._refuse("WITH or USING beside using-graph-uri: name the graphs in one place", token)
        if using is not None:
            return using
        if default or named:
            return GraphNames(tuple(default), tuple(named))
        return ALL if changed is None else GraphNames((changed,))

    def _answered(self, where: Pattern, token: Token) -> Pattern:
        """WHERE that makes the triple terms of the templates before it; QueryError for what has no answer here."""
        where = self._made_terms(where, token)
        if self._unanswered is not None:
            raise self._unanswered
        if self._context.now is not None:
            where = with_value(where, Call("NOW", ()), self._context.now)
        for tree in (tree for inner in every_pattern(where) for tree in expressions(inner)):
            for call in every_expression(tree):
                if isinstance(call, Call) and call.operator.upper() in _NO_VALUE:
                    self._refuse(f"{call.operator} is not supported in an update: write its value", token)
        return where

    # Whole graphs

    def _management(self, word: str) -> Iterator[UpdateOperation]:
        """An operation on whole graphs, from behind its keyword on."""
        if word == "CREATE":
            self._target("GRAPH")
        elif word in ("CLEAR", "DROP"):
            yield _cleared(self._target("GRAPH", "DEFAULT", "NAMED", "ALL"), self._context.graphs)
        else:
            source = self._target("GRAPH", "DEFAULT", "")
            self._must_say("TO")
            goal = self._target("GRAPH", "DEFAULT", "")
            if source != goal:
                yield _copied(source, goal, cleared=word != "ADD", moved=word == "MOVE")

    def _target(self, *kinds: str) -> str | Node | None:
        """The graph that an operation names: its IRI, ``None`` for the default graph, a variable for each, ``ALL``."""
        kind = self._word()
        if kind not in kinds or (not kind and self._token.kind not in ("iri", "name")):
            self._expect(f"one of {', '.join(kind or 'an IRI' for kind in kinds)}")
        if kind:
            self._at += 1
        return self._iri() if kind in ("GRAPH", "") else {"DEFAULT": None, "NAMED": Var("g"), "ALL": "ALL"}[kind]


def _is_blank(node: object) -> bool:
    return isinstance(node, Var) and node.name.startswith("_:")


def _triple(number: int) -> TriplePattern:
    return TriplePattern(Var(f"s{number}"), Var(f"p{number}"), Var(f"o{number}"))


def _all_of(graph: Node | None, number: int) -> tuple[Pattern, TriplePattern]:
    """All triples of a graph: the pattern that they match, and the template that has them again."""
    triple = _triple(number)
    pattern: Pattern = BGP((triple,))
    return (pattern, triple) if graph is None else (Graph(graph, pattern), _within(graph, triple))


def _cleared(target: str | Node | None, graphs: bool) -> UpdateOperation:
    pattern, template = _all_of(None if target == "ALL" else target, 1)
    if target != "ALL" or not graphs:
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
    return UpdateOperation(pattern, delete, (_within(goal, _triple(1)),))
