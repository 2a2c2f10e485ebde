"""Triples of SPARQL text with paths, collections and blank nodes, as triple patterns (SPARQL 1.2, 4.1, 4.2 and 9.1).

?x :p/^:q [ :r 5 ]    is    ?x :p _:0 . _:1 :q _:0 . _:1 :r 5    (blank nodes numbered by first appearance)

A triple term with variables becomes a variable, whose parts are taken by functions (SPARQL 1.2, 4.3 and 4.4):

?s :says <<( ?a :p ?b )>>    is    ?s :says ?term0 FILTER(isTRIPLE(?term0)) BIND(SUBJECT(?term0) AS ?a) ...
<< ?a :p ?b >> :by ?w        is    ?reifier0 rdf:reifies <<( ?a :p ?b )>> ; :by ?w
?a :p ?b {| :by ?w |}        is    ?a :p ?b . ?reifier0 rdf:reifies <<( ?a :p ?b )>> ; :by ?w
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Final, TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, Term, triple_term
from streamgauge.query.cursor import Cursor
from streamgauge.query.prologue import Prologue
from streamgauge.query.text import Token

_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIRST, _REST, _NIL, _REIFIES = (f"<{_RDF}{name}>" for name in ("first", "rest", "nil", "reifies"))

_RawTriple: TypeAlias = tuple[al.Node, al.Node | al.Path, al.Node]
"""A triple as written, with whole paths and blank nodes by the labels of the text."""


class TripleReader(Cursor):
    """A reader of triples, with paths, collections, annotations and blank nodes."""

    def __init__(self, text: str, words: Sequence[Token], prologue: Prologue) -> None:
        super().__init__(text, words, prologue)
        self._fresh_names = count()
        self._numbers: dict[tuple[str, str], int] = {}
        self._terms: dict[al.Var, tuple[al.Node, al.Node, al.Node]] = {}
        self._hidden: set[str] = set()
        self._scope = "query"
        self._blocks = count(1)
        self._block_number = 0
        self._labels: dict[str, int] = {}
        """The number of the basic graph pattern that uses each label of a blank node; two may not share one (4.1.4)."""

    def _begins_triples(self) -> bool:
        token = self._token
        return token.kind in ("variable", "blank") or self._is("(", "[", "<<", "<<(") or self._begins_term()

    def _triples(self, scope: str = "query") -> Iterator[al.TriplePattern]:
        """The triples up to the first token that begins none, with a dot between subjects."""
        while self._begins_triples():
            yield from self._same_subject(scope)
            if not self._skip("."):
                if self._begins_triples():
                    self._expect("a dot, a semicolon or a comma between triples")
                return

    def _same_subject(self, scope: str = "query") -> Iterator[al.TriplePattern]:
        """The triple patterns of one subject; blank nodes of different scopes are different."""
        raw: list[_RawTriple] = []
        self._scope = scope
        alone = self._is("[", "(", "<<")
        subject = self._graph_node(raw)
        # ``[ :p 1 ] .`` and ``(1 2) .`` are triples without a predicate; ``[] .`` and ``() .`` are not.
        if not (alone and raw) or self._is_verb():
            self._properties(subject, raw)
        for triple in raw:
            self._weigh(2 * (scope == "query"))
            yield from self._expanded(*triple, scope)

    def _properties(self, subject: al.Node, raw: list[_RawTriple]) -> None:
        while True:
            way = self._variable() if self._token.kind == "variable" else self._way()
            self._object(subject, way, raw)
            while self._skip(","):
                self._object(subject, way, raw)
            if not self._is(";"):
                return
            # The grammar allows empty predicates: ``?s :p ?o ; ; .``
            while self._skip(";"):
                pass
            if not self._is_verb():
                return

    def _way(self) -> al.Path:
        """A predicate or a property path; templates have no paths."""
        if not self._is_verb():
            self._expect("a predicate: a variable, an IRI, a or a property path")
        return self._predicate() if self._scope == "template" else self._path()

    def _object(self, subject: al.Node, way: al.Node | al.Path, raw: list[_RawTriple]) -> None:
        own: list[_RawTriple] = []
        item = self._graph_node(own)
        raw.append((subject, way, item))
        raw.extend(own)
        self._annotations(subject, way, item, raw)

    def _annotations(self, subject: al.Node, way: al.Node | al.Path, item: al.Node, raw: list[_RawTriple]) -> None:
        """Reifiers ``~ :r`` of a triple and annotations ``{| :p :o |}``, about the reifier before or a new one."""
        reifier: al.Node | None = None
        while self._is("~", "{|"):
            if not isinstance(way, al.Var | str):
                self._refuse("an annotation or reifier after a property path: only a single triple can have one")
            if self._skip("~"):
                reifier = self._reifier(self._named_reifier(), (subject, way, item), raw)
                continue
            self._must("{|")
            node = reifier or self._reifier(None, (subject, way, item), raw)
            self._properties(node, raw)
            self._must("|}")
            # The next annotation block is about a new reifier.
            reifier = None

    def _named_reifier(self) -> al.Node | None:
        return self._node() if self._token.kind in ("variable", "iri", "name", "blank") else None

    def _reifier(self, node: al.Node | None, nodes: tuple[al.Node, al.Node, al.Node], raw: list[_RawTriple]) -> al.Node:
        """The node that reifies a triple, a new one if ``node`` is ``None``."""
        if node is None:
            node = self._fresh() if self._scope == "template" else self._unseen("reifier")
        raw.append((node, _REIFIES, self._term_of(*nodes)))
        return node

    def _term_of(self, subject: al.Node, predicate: al.Node, item: al.Node) -> al.Node:
        """The triple term of three nodes: a constant, or a variable whose parts ``_block`` constrains."""
        if isinstance(subject, str) and isinstance(predicate, str) and isinstance(item, str):
            return triple_term((subject, predicate, item))
        variable = self._unseen("term")
        # `_block` makes a filter and three bindings of it: four more elements of the group.
        self._weigh(8 * (self._scope == "query"))
        self._terms[variable] = (subject, predicate, item)
        return variable

    def _triple_nodes(self, raw: list[_RawTriple], reified: bool) -> tuple[al.Node, al.Node, al.Node]:
        """Subject, predicate and object of a triple term, or of a reified triple, which may nest reified ones."""
        subject = self._inner_node(raw, reified)
        return subject, self._verb(), self._inner_node(raw, reified)

    def _inner_node(self, raw: list[_RawTriple], reified: bool) -> al.Node:
        if self._is("<<(") or (reified and self._is("<<")):
            return self._graph_node(raw)
        if self._skip("["):
            self._must("]")
            return self._fresh()
        return self._node()

    def _verb(self) -> al.Var | Term:
        """A predicate: a variable or an IRI, not a path."""
        return self._variable() if self._token.kind == "variable" else self._predicate()

    def _reified(self, raw: list[_RawTriple]) -> al.Node:
        """The reifier of ``<< s p o ~ r >>``, read from the subject on."""
        nodes = self._triple_nodes(raw, reified=True)
        reifier = self._reifier(self._named_reifier() if self._skip("~") else None, nodes, raw)
        self._must(">>")
        return reifier

    @cached_property
    def _written(self) -> frozenset[str]:
        """The names of all variables in the text."""
        return frozenset(token.text[1:] for token in self._words if token.kind == "variable")

    def _unseen(self, kind: str) -> al.Var:
        """A variable that does not occur in the text, and is hidden from ``SELECT *``."""
        numbers = count(len(self._hidden))
        name = next(name for number in numbers if (name := f"{kind}{number}") not in self._written)
        self._hidden.add(name)
        return al.Var(name)

    def _block(self, triples: Sequence[al.TriplePattern]) -> al.Pattern:
        """The triples of a group as a pattern, with filters and bindings for their triple terms."""
        terms, self._terms = self._terms, {}
        if not terms:
            return al.BGP(tuple(triples))
        blank = dict.fromkeys(
            node
            for nodes in (*((triple.subject, triple.object) for triple in triples), *terms.values())
            for node in nodes
            if isinstance(node, al.Var) and node.name.startswith("_:")
        )
        # FILTER and BIND cannot name a blank node, so in such a block all of them become hidden variables.
        names: dict[al.Node, al.Node] = {self._numbered(node, "query"): self._unseen("blank") for node in blank}
        pattern: al.Pattern = al.BGP(
            tuple(
                replace(
                    triple,
                    subject=names.get(triple.subject, triple.subject),
                    object=names.get(triple.object, triple.object),
                )
                for triple in triples
            )
        )
        # Outer terms first, which were noted last: a nested term is bound as a part of the one around it.
        for variable, parts in reversed(terms.items()):
            pattern = al.Filter(al.Call("ISTRIPLE", (variable,)), pattern)
            for function, node in zip(("SUBJECT", "PREDICATE", "OBJECT"), parts, strict=True):
                numbered = self._numbered(node, "query")
                pattern = _with_part(pattern, al.Call(function, (variable,)), names.get(numbered, numbered))
        return pattern

    def _is_verb(self) -> bool:
        token = self._token
        return token.kind in ("variable", "iri", "name") or token.text == "a" or self._is("^", "!", "(")

    def _graph_node(self, raw: list[_RawTriple]) -> al.Node:
        """A node; triples of a collection or of a blank node's properties are added to ``raw``."""
        if self._skip("<<("):
            term = self._term_of(*self._triple_nodes(raw, reified=False))
            self._must(")>>")
            return term
        if self._skip("<<"):
            return self._reified(raw)
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
        """``(a b)``: the cells of an RDF list, followed by the triples of its members."""
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
        if self._token.kind != "blank":
            return self._term("a node: a variable, an IRI, a blank node or a literal")
        label = self._take()
        # Labels of a template are instantiated per solution and have nothing to do with those of the pattern.
        number = self._labels.setdefault(label.text, self._block_number) if self._scope != "template" else None
        if number not in (None, self._block_number):
            what = f"the blank node {label.text} also occurs in another group of patterns: use a variable for both"
            self._refuse(what, label)
        return al.Var(label.text)

    def _fresh(self) -> al.Var:
        """A new blank node without a label."""
        # The space keeps it apart from every label of the text.
        return al.Var(f"_: {next(self._fresh_names)}")

    def _numbered(self, node: al.Node, scope: str) -> al.Node:
        if not isinstance(node, al.Var) or not node.name.startswith("_:"):
            return node
        return al.Var(f"_:{self._numbers.setdefault((scope, node.name), len(self._numbers))}")

    def _expanded(
        self, subject: al.Node, way: al.Node | al.Path, item: al.Node, scope: str
    ) -> Iterator[al.TriplePattern]:
        """A triple as patterns, with ``p/q`` and ``^p`` expanded (18.2.2.4)."""
        match way:
            case al.Inverse(path=inner):
                yield from self._expanded(item, inner, subject, scope)
            # Only what 18.2.2.4 expands: alternatives and repetitions stay paths, as they need not be joins.
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
            self._weigh()
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else al.Alternative(tuple(choices))

    def _sequence(self) -> al.Path:
        steps = [self._step()]
        while self._skip("/"):
            self._weigh()
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
        # In ``:p +5`` the sign belongs to the number.
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


def _with_part(pattern: al.Pattern, part: al.Call, node: al.Node) -> al.Pattern:
    """The pattern with a part of a triple term bound to a node, or compared with it if that is bound already."""
    if isinstance(node, al.Var) and node not in al.pattern_variables(pattern):
        return al.Extend(pattern, node, part)
    return al.Filter(al.Call("SAMETERM", (part, node)), pattern)
