"""SPARQL 1.2 Update, parsed into operations on facts; facts of named graphs are written as in ``model.fact``.

``sparql.updates`` applies them. CLEAR, DROP, COPY, MOVE and ADD become the DELETE and INSERT that they abbreviate
(3.2); CREATE changes nothing, because a graph exists as long as it has a fact.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, groupby
from sys import intern
from typing import Final, TypeAlias

from streamgauge.formats.bounds import SERVED, TextBounds
from streamgauge.formats.syntaxes import most_characters
from streamgauge.model.algebra import (
    BGP,
    Call,
    Graph,
    GraphTriplePattern,
    Node,
    Path,
    Pattern,
    TriplePattern,
    Union,
    Var,
    graph_of,
    nodes_of,
    triple_variables,
)
from streamgauge.model.fact import in_graph, is_named
from streamgauge.model.terms import Term, Triple, is_triple_of, misplaced, triple_term
from streamgauge.query.prologue import Prologue, read_on, read_prologue
from streamgauge.query.reader import QueryReader, joined
from streamgauge.query.stamps import TIMESTAMP
from streamgauge.query.text import QueryError, Token, UnansweredError, check_bounds, tokens
from streamgauge.query.traversal import every_part, every_pattern, with_value
from streamgauge.query.versions import decoded, is_earlier

WITH_DATA: Final = TextBounds(4 * 2**20, 1_000_000, SERVED.values)
"""Bounds of an update with its data; the rest of it is within ``SERVED``."""

_SUPPORTED: Final = "INSERT DATA, DELETE DATA, DELETE WHERE, DELETE/INSERT ... WHERE, CLEAR, DROP, COPY, MOVE, ADD"
_NO_VALUE: Final = ("RAND", "UUID", "STRUUID", "NOW", TIMESTAMP)
"""Functions that updates do not support; NOW only if the request states no time."""
_OF_GRAPHS: Final = ("GRAPH", "WITH", "USING", "CREATE", "COPY", "MOVE", "ADD", "NAMED")
"""Keywords that are accepted only if facts have graphs."""

NewNode: TypeAlias = Callable[[str], Term]


def _within(graph: Node | None, pattern: TriplePattern) -> TriplePattern:
    """A pattern in a graph, unless it has a graph of its own."""
    if graph is None or isinstance(pattern, GraphTriplePattern):
        return pattern
    return GraphTriplePattern(pattern.subject, pattern.predicate, pattern.object, graph)


@dataclass(frozen=True, slots=True)
class GraphNames:
    """The dataset of a pattern (SPARQL 1.1, 13.2): ``default`` graphs are merged, ``named`` ones are read by GRAPH.

    ``None`` stands for the default graph of the facts, and for all of their named graphs.
    """

    default: tuple[Term, ...] | None = None
    named: tuple[Term, ...] | None = None


ALL: Final = GraphNames()


@dataclass(frozen=True, slots=True)
class UpdateOperation:
    """One operation: DELETE and INSERT over the solutions of ``where`` (SPARQL 1.1 Update, 3.1.3), or ground facts.

    ``graphs`` is the dataset of ``where``; ``fresh`` makes new blank nodes.
    """

    where: Pattern | None = None
    delete: tuple[TriplePattern, ...] = ()
    insert: tuple[TriplePattern, ...] = ()
    removed: tuple[Triple, ...] = ()
    added: tuple[Triple, ...] = ()
    graphs: GraphNames = ALL
    fresh: NewNode = field(default=str, repr=False, compare=False)


def uses_graphs(operations: Iterable[UpdateOperation]) -> bool:
    """Whether an operation reads or changes a named graph."""
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
    """The context of an update: ``fresh`` makes blank nodes from labels, ``graphs`` allows named graphs.

    ``using`` is the dataset that the request names (SPARQL 1.1 Protocol, 2.2.3), ``now`` the value of NOW().
    """

    fresh: NewNode
    graphs: bool = False
    using: GraphNames | None = None
    now: Term | None = None


def read_update(text: str, context: UpdateContext) -> list[UpdateOperation]:
    """The operations of an update; QueryError shows where it is wrong or refused."""
    check_bounds(text, WITH_DATA)
    try:
        prologue = read_prologue(text, tokens(text))
        if is_earlier(prologue.version) and "\\" in text:
            text = decoded(text)
            check_bounds(text, WITH_DATA)
            prologue = read_prologue(text, tokens(text))
        return list(_joined(_UpdateReader(text, tokens(text), prologue, context).operations()))
    except RecursionError:
        raise QueryError("the update is nested too deeply: write it flatter", text, 0) from None
    finally:
        # `tokens` caches the last text, which would keep a large update in memory until the next request.
        if len(text) > SERVED.characters:
            tokens.cache_clear()


def _joined(operations: Iterable[UpdateOperation]) -> Iterator[UpdateOperation]:
    """The operations, with consecutive INSERT DATA, and consecutive DELETE DATA, merged into one."""
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
    """The reader of an update, from the end of its first prologue on."""

    _kind = "update"

    def __init__(self, text: str, words: Sequence[Token], prologue: Prologue, context: UpdateContext) -> None:
        super().__init__(text, words, prologue)
        self._context = context
        self._notes = []
        self._inserts: bool | None = None
        """Whether the data being read is inserted; ``None`` outside of data."""
        self._room = self._most = most_characters(len(text))
        self._data_words = self._data_characters = self._number = 0
        self._labelled: dict[str, int] = {}
        """The number of the operation whose data use each label of a blank node; two may not share one (3.1.1)."""

    def operations(self) -> Iterator[UpdateOperation]:
        """The operations one by one; QueryError for a wrong or refused one."""
        self._check_graphs()
        while self._token.text:
            # Blank node labels and limits are of one operation.
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
                self._refuse(f"{token.text.upper()} is not supported: this store has one graph only", token)
        if self._context.using is not None:
            self._refuse("the request names graphs, but this store has one graph only")

    def _check_size(self) -> None:
        """Raise QueryError for an update that is too long without its data."""
        # Data are read linearly, whereas patterns and templates are planned and evaluated: they have smaller limits.
        characters = self._words[self._at - 1].end - self._data_characters
        if characters > SERVED.characters:
            self._refuse(f"{characters} characters besides data, more than {SERVED.characters}: send several updates")
        if self._at - self._data_words > SERVED.tokens:
            self._refuse(f"more than {SERVED.tokens} terms, words and signs besides data: send several updates")

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
                raise UnansweredError("LOAD is not supported: send the data itself", self._text, token.start)
            case "CREATE" | "CLEAR" | "DROP" | "COPY" | "MOVE" | "ADD":
                self._at += 1
                self._says("SILENT")
                yield from self._management(word)
            case _:
                self._refuse(f"unknown operation: use one of {_SUPPORTED}")

    def _following(self, word: str) -> bool:
        """Step over two tokens if the second one is this keyword; whether it was."""
        if self._at + 1 < len(self._words) and self._words[self._at + 1].says(word):
            self._at += 2
            return True
        return False

    # Quads

    def _sections(self, scope: str) -> Iterator[tuple[Node | None, tuple[TriplePattern, ...]]]:
        """The triples inside braces by graph; ``None`` for those outside of GRAPH."""
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
        """The patterns of a template, with their graphs."""
        return tuple(_within(name, triple) for name, triples in self._sections("template") for triple in triples)

    def _deleted(self) -> tuple[TriplePattern, ...]:
        """A template of DELETE, which has no blank nodes (SPARQL 1.1 Update, 3.1.3.2)."""
        token, template = self._token, self._quads()
        if any(node.name.startswith("_:") for triple in template for node in triple_variables(triple)):
            self._refuse("a blank node is not allowed in DELETE: use an IRI or a variable", token)
        return template

    # Data

    def _data_of(self, word: str) -> UpdateOperation:
        """INSERT DATA or DELETE DATA, read from its brace on."""
        first, self._inserts = self._at - 2, word == "INSERT"
        facts = tuple(self._facts())
        self._inserts = None
        self._data_words += self._at - first + 1  # with the semicolon behind it
        self._data_characters += self._words[self._at - 1].end - self._words[first].start
        return UpdateOperation(added=facts) if word == "INSERT" else UpdateOperation(removed=facts)

    def _variable(self) -> Var:
        if self._inserts is not None:
            self._refuse("variables are not allowed in data: write the terms")
        return super()._variable()

    def _node(self) -> Node:
        token = self._token
        known = self._labelled.setdefault(token.text, self._number) if self._inserts and token.kind == "blank" else None
        if known not in (None, self._number):
            self._refuse(
                f"the blank node {token.text} also occurs in the data of another operation: use an IRI for both"
            )
        return super()._node()

    def _facts(self) -> Iterator[Triple]:
        """The facts of quads without variables; QueryError if their terms are too long in total."""
        token = self._token
        for graph, triples in self._sections("template"):
            for triple in triples:
                # Interned, as data repeat their terms, and facts are compared by identity first.
                subject, predicate, item = (intern(self._ground(node)) for node in nodes_of(triple))
                if not is_triple_of(subject, predicate, item):
                    self._refuse(f"a triple of the data {misplaced((subject, predicate, item))}", token)
                self._room -= len(subject) + len(predicate) + len(item)
                if self._room < 0:
                    what = f"its terms have more than {self._most} characters in total: write fewer, or shorter ones"
                    self._refuse(what, token)
                fact = subject, predicate, item
                yield fact if graph is None else in_graph(str(graph), fact)
            self._terms = {}
            token = self._token

    def _ground(self, node: Node | Path) -> Term:
        """The term of a node; blank nodes, also in triple terms, are new."""
        if isinstance(node, str):
            return node
        assert isinstance(node, Var)
        if node in self._terms:
            parts = (self._numbered(part, "template") for part in self._terms[node])
            subject, predicate, item = map(self._ground, parts)
            return triple_term((subject, predicate, item))
        if not self._inserts:
            self._refuse("a blank node cannot identify data to delete: use its genid IRI", self._words[self._at - 1])
        return self._context.fresh(node.name)

    # Operations with WHERE

    def _delete_where(self, token: Token) -> UpdateOperation:
        """DELETE WHERE: its quads are both the pattern and the template, so they are read twice."""
        using, start = self._context.using, self._at
        empty: Pattern = BGP(())
        parts = ((name, self._block(triples)) for name, triples in self._sections("query"))
        where = reduce(joined, (part if name is None else Graph(name, part) for name, part in parts), empty)
        self._at = start
        template = self._deleted()
        return UpdateOperation(self._answered(where, token), template, graphs=using or ALL)

    def _modification(self, token: Token) -> UpdateOperation:
        """DELETE and INSERT ... WHERE. WITH names the graph of the templates, and of WHERE unless USING overrides it.

        SPARQL 1.1 Update, 3.1.3.
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
        """The dataset of WHERE; QueryError if request and text both name graphs (SPARQL 1.1 Protocol, 2.2.3)."""
        default: list[Term] = []
        named: list[Term] = []
        while self._says("USING"):
            (named if self._says("NAMED") else default).append(self._iri())
        using = self._context.using
        if using is not None and (changed is not None or default or named):
            self._refuse("WITH or USING together with using-graph-uri: name the graphs in one place", token)
        if using is not None:
            return using
        if default or named:
            return GraphNames(tuple(default), tuple(named))
        return ALL if changed is None else GraphNames((changed,))

    def _answered(self, where: Pattern, token: Token) -> Pattern:
        """WHERE extended by the triple terms of the templates; QueryError for an unsupported part."""
        where = self._made_terms(where, token)
        if self._unanswered is not None:
            raise self._unanswered
        if self._context.now is not None:
            where = with_value(where, Call("NOW", ()), self._context.now)
        for call in chain.from_iterable(map(every_part, every_pattern(where))):
            if isinstance(call, Call) and call.operator.upper() in _NO_VALUE:
                self._refuse(f"{call.operator} is not supported in an update: write the value instead", token)
        return where

    # Whole graphs

    def _management(self, word: str) -> Iterator[UpdateOperation]:
        """An operation on whole graphs, read after its keyword."""
        if word == "CREATE":
            self._target("GRAPH")
        elif word in ("CLEAR", "DROP"):
            yield _cleared(self._target("GRAPH", "DEFAULT", "NAMED", "ALL"), self._context.graphs)
        else:
            source = self._target("GRAPH", "DEFAULT", "")
            self._must_say("TO")
            goal = self._target("GRAPH", "DEFAULT", "")
            # Onto itself: no effect (SPARQL 1.1 Update, 3.2.3 to 3.2.5), whereas the general form would delete the
            # graph first.
            if source != goal:
                yield _copied(source, goal, cleared=word != "ADD", moved=word == "MOVE")

    def _target(self, *kinds: str) -> str | Node | None:
        """The target of an operation.

        An IRI, ``None`` for the default graph, a variable for all named ones, or ``ALL``.
        """
        kind = self._word()
        if kind not in kinds or (not kind and self._token.kind not in ("iri", "name")):
            self._expect(f"one of {', '.join(kind or 'an IRI' for kind in kinds)}")
        if kind:
            self._at += 1
        return self._iri() if kind in ("GRAPH", "") else {"DEFAULT": None, "NAMED": Var("g"), "ALL": "ALL"}[kind]


def _triple(number: int) -> TriplePattern:
    return TriplePattern(Var(f"s{number}"), Var(f"p{number}"), Var(f"o{number}"))


def _all_of(graph: Node | None, number: int) -> tuple[Pattern, TriplePattern]:
    """The pattern and the template for all triples of a graph."""
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
    """COPY, MOVE or ADD: ``source`` is deleted if ``moved``, the former content of ``goal`` if ``cleared``."""
    pattern, template = _all_of(source, 1)
    delete = (template,) if moved else ()
    if cleared:
        other, gone = _all_of(goal, 2)
        pattern, delete = Union(pattern, other), (*delete, gone)
    return UpdateOperation(pattern, delete, (_within(goal, _triple(1)),))
