"""Triples of SPARQL text with paths, collections and blank nodes, as triple patterns (SPARQL 1.1, 4.1, 4.2 and 9.1).

?x :p/^:q [ :r 5 ]    is    ?x :p _:0 . _:1 :q _:0 . _:1 :r 5    (blank nodes numbered by first appearance)
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.query.text import Cursor, Prologue, Token

_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIRST, _REST, _NIL = (f"<{_RDF}{name}>" for name in ("first", "rest", "nil"))

_RawTriple: TypeAlias = tuple[al.Node, al.Node | al.Path, al.Node]
"""A triple as written: paths whole, blank nodes under names of the text."""


class TripleReader(Cursor):
    """A cursor that reads the triples of one subject."""

    def __init__(self, text: str, found: Sequence[Token], prologue: Prologue) -> None:
        super().__init__(text, found, prologue)
        self._fresh_names = count()
        self._numbers: dict[tuple[str, str], int] = {}

    def _same_subject(self, scope: str = "query") -> Iterator[al.TriplePattern]:
        """The triple patterns of one subject; blank nodes of different scopes are different ones."""
        raw: list[_RawTriple] = []
        subject = self._graph_node(raw)
        if not raw or self._is_verb():
            self._properties(subject, raw)
        for triple in raw:
            yield from self._expanded(*triple, scope)

    def _properties(self, subject: al.Node, raw: list[_RawTriple]) -> None:
        while True:
            way = self._variable() if self._token.kind == "variable" else self._path()
            self._object(subject, way, raw)
            while self._skip(","):
                self._object(subject, way, raw)
            if not self._is(";"):
                return
            while self._skip(";"):
                pass
            if not self._is_verb():
                return

    def _object(self, subject: al.Node, way: al.Node | al.Path, raw: list[_RawTriple]) -> None:
        own: list[_RawTriple] = []
        raw.append((subject, way, self._graph_node(own)))
        raw.extend(own)

    def _is_verb(self) -> bool:
        token = self._token
        return token.kind in ("variable", "iri", "name") or token.text == "a" or self._is("^", "!", "(")

    def _graph_node(self, raw: list[_RawTriple]) -> al.Node:
        """A node; the triples of a collection, or of a blank node's properties, are added to ``raw``."""
        if self._skip("("):
            return self._collection(raw)
        if self._skip("["):
            node = self._fresh()
            if not self._skip("]"):
                self._properties(node, raw)
                self._must("]")
            return node
        return self._node()

    def _collection(self, raw: list[_RawTriple]) -> al.Node:
        """``(a b)``: the cells of an RDF list, after them the triples of their members."""
        cells: list[al.Var] = []
        own: list[_RawTriple] = []
        while not self._skip(")"):
            member, cell = self._graph_node(own), self._fresh()
            if cells:
                raw.append((cells[-1], _REST, cell))
            raw.append((cell, _FIRST, member))
            cells.append(cell)
        if not cells:
            return _NIL
        raw.append((cells[-1], _REST, _NIL))
        raw.extend(own)
        return cells[0]

    def _node(self) -> al.Node:
        if self._token.kind == "variable":
            return self._variable()
        return al.Var(self._take().text) if self._token.kind == "blank" else self._term()

    def _fresh(self) -> al.Var:
        """A blank node without a label."""
        return al.Var(f"_: {next(self._fresh_names)}")

    def _numbered(self, node: al.Node, scope: str) -> al.Node:
        if not isinstance(node, al.Var) or not node.name.startswith("_:"):
            return node
        return al.Var(f"_:{self._numbers.setdefault((scope, node.name), len(self._numbers))}")

    def _expanded(
        self, subject: al.Node, way: al.Node | al.Path, item: al.Node, scope: str
    ) -> Iterator[al.TriplePattern]:
        """``p/q`` and ``^p`` as plain patterns (18.2.2.4)."""
        match way:
            case al.Inverse(path=inner):
                yield from self._expanded(item, inner, subject, scope)
            case al.Sequence(steps=(first, *rest)):
                middle = self._fresh() if rest else item
                yield from self._expanded(subject, first, middle, scope)
                if rest:
                    yield from self._expanded(middle, al.Sequence(tuple(rest)), item, scope)
            case _:
                start = self._numbered(subject, scope)
                yield al.TriplePattern(start, way, self._numbered(item, scope))

    def _path(self) -> al.Path:
        choices = [self._sequence()]
        while self._skip("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else al.Alternative(tuple(choices))

    def _sequence(self) -> al.Path:
        steps = [self._step()]
        while self._skip("/"):
            steps.append(self._step())
        return steps[0] if len(steps) == 1 else al.Sequence(tuple(steps))

    def _step(self) -> al.Path:
        return al.Inverse(self._element()) if self._skip("^") else self._element()

    def _element(self) -> al.Path:
        if self._skip("("):
            way = self._path()
            self._must(")")
        else:
            way = self._negated_set() if self._skip("!") else self._predicate()
        if self._is("*", "?", "+") and not self._is_signed_number():
            return al.Repeat(way, self._take().text)
        return way

    def _negated_set(self) -> al.NegatedSet:
        members: dict[bool, list[Term]] = {False: [], True: []}
        if not self._skip("("):
            members[self._skip("^")].append(self._predicate())
        elif not self._skip(")"):
            members[self._skip("^")].append(self._predicate())
            while self._skip("|"):
                members[self._skip("^")].append(self._predicate())
            self._must(")")
        return al.NegatedSet(tuple(members[False]), tuple(members[True]))

    def _predicate(self) -> Term:
        if self._token.text == "a":
            self._at += 1
            return RDF_TYPE
        return self._iri()
