"""SPARQL 1.1 queries as algebra: recursive descent over the grammar (19.8) with the translation of section 18.2.

The text is one that pyoxigraph accepts, so the reader decides what the text means and looks no further for mistakes.
What is beyond SPARQL 1.1 is refused. ``tests/query/test_reader.py`` holds the algebra against rdflib's parser.

    ?x :p/^:q [ :r 5 ]    is    ?x :p _:0 . _:1 :q _:0 . _:1 :r 5    (blank nodes numbered by first appearance)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import Final, NoReturn, TypeAlias

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, XSD, Term, datatype
from streamgauge.query.errors import refusal
from streamgauge.query.prologue import Prologue, string_value
from streamgauge.query.stamps import FUNCTION, TIMESTAMP, WORD
from streamgauge.query.tokens import Token

_EMPTY: Final = al.BGP(())
_BEYOND: Final = "this goes beyond SPARQL 1.1, or is nested too deeply: write it in SPARQL 1.1"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIRST, _REST, _NIL = (f"<{_RDF}{name}>" for name in ("first", "rest", "nil"))

_ANY: Final = 1 << 30
_ARITIES: Final[dict[tuple[int, int], str]] = {
    (0, 0): "NOW RAND UUID STRUUID",
    (0, 1): "BNODE",
    (1, 1): """STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY HOURS
        MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC BOUND""",
    (2, 2): "CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER LANGMATCHES SAMETERM STRLANG STRDT",
    (3, 3): "IF",
    (2, 3): "REGEX SUBSTR",
    (3, 4): "REPLACE",
    (0, _ANY): "COALESCE CONCAT",
}
_BUILT_IN: Final = {name: arity for arity, names in _ARITIES.items() for name in names.split()}
"""Built-in functions with the least and the most of their arguments."""
_SAME: Final = {"URI": "IRI", "ISURI": "ISIRI"}
_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
_RELATION: Final = 3
_BINDING: Final = {
    **{"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5},
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">="), _RELATION),
}
"""How closely binary operators bind."""
_PARTS: Final = ("OPTIONAL", "MINUS", "GRAPH", "BIND", "VALUES")
_TRUTH: Final = ("true", "false")

_RawTriple: TypeAlias = tuple[al.Node, al.Node | al.Path, al.Node]
"""A triple as written: paths whole, blank nodes under names of the text."""


def read_query(text: str, found: Sequence[Token], prologue: Prologue) -> al.QueryForm:
    """The form of a query that pyoxigraph accepts; QueryError where the text goes beyond SPARQL 1.1."""
    return _QueryReader(text, found, prologue).form()


class _Cursor:
    """The place in the tokens of a text, from the end of its prologue on, and the terms there."""

    def __init__(self, text: str, found: Sequence[Token], prologue: Prologue) -> None:
        self._text, self._found, self._prologue, self._at = text, found, prologue, prologue.end
        self._end = Token("sign", "", len(text))

    @property
    def _token(self) -> Token:
        return self._found[self._at] if self._at < len(self._found) else self._end

    def _beyond(self) -> NoReturn:
        raise refusal(_BEYOND, self._text, self._token.start)

    def _take(self) -> Token:
        token = self._token
        self._at += 1
        return token

    def _is(self, *signs: str) -> bool:
        """Whether one of these signs is next."""
        token = self._token
        return token.kind == "sign" and token.text in signs

    def _skip(self, sign: str) -> bool:
        """Step over a sign, if it is next."""
        if self._token.text == sign:
            self._at += 1
            return True
        return False

    def _must(self, sign: str) -> None:
        if not self._skip(sign):
            self._beyond()

    def _word(self) -> str:
        """The keyword that is next, in upper case; empty for anything else."""
        token = self._token
        return token.text.upper() if token.kind == "word" else ""

    def _says(self, *words: str) -> bool:
        """Step over a keyword, if it is one of these."""
        if self._word() in words:
            self._at += 1
            return True
        return False

    def _must_say(self, *words: str) -> None:
        if not self._says(*words):
            self._beyond()

    def _variable(self) -> al.Var:
        if self._token.kind != "variable":
            self._beyond()
        return al.Var(self._take().text[1:])

    def _iri(self) -> Term:
        if self._token.kind not in ("iri", "name"):
            self._beyond()
        return f"<{self._prologue.iri(self._take())}>"

    def _is_signed_number(self) -> bool:
        """Whether a sign is next that is part of the number after it, as in ``-5``."""
        if self._token.text not in ("+", "-") or self._at + 1 >= len(self._found):
            return False
        following = self._found[self._at + 1]
        return following.kind == "number" and following.start == self._token.end

    def _term(self) -> Term:
        """An IRI or a literal."""
        if self._token.kind in ("iri", "name"):
            return self._iri()
        sign = self._take().text if self._is_signed_number() else ""
        token = self._token
        if token.kind == "number":
            self._at += 1
            kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
            return f'"{sign}{token.text}"^^<{XSD}{kind}>'
        if token.kind == "string":
            parts = [self._take()]
            if self._token.kind == "language":
                parts.append(self._take())
            elif self._is("^^"):
                parts += [self._take(), self._take()]
            return self._prologue.literal(parts)
        if token.text not in _TRUTH:
            self._beyond()
        return f'"{self._take().text}"^^<{XSD}boolean>'


class _TripleReader(_Cursor):
    """Triples of one subject, with paths, collections and blank nodes (4.1, 4.2, 9.1)."""

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


@dataclass(frozen=True, slots=True)
class _Solutions:
    """What stands behind SELECT and its columns: WHERE with grouping, HAVING and VALUES; ORDER BY; LIMIT, OFFSET."""

    pattern: al.Pattern
    order: tuple[tuple[al.Expression, bool], ...]
    limits: dict[str, int]

    def ordered(self, pattern: al.Pattern) -> al.Pattern:
        return al.OrderBy(pattern, self.order) if self.order else pattern

    def sliced(self, pattern: al.Pattern) -> al.Pattern:
        return al.Slice(pattern, self.limits.get("OFFSET", 0), self.limits.get("LIMIT")) if self.limits else pattern


class _QueryReader(_TripleReader):
    """Expressions, groups and query forms."""

    _aggregates: dict[al.Aggregate, al.Var] | None = None
    """The aggregates of the SELECT whose columns, HAVING or ORDER BY are read, with the variables for them."""

    def form(self) -> al.QueryForm:
        """The whole query."""
        if self._says("ASK"):
            form: al.QueryForm = al.Ask(self._modified())
        elif self._says("CONSTRUCT"):
            form = self._construct()
        else:
            self._must_say("SELECT")
            pattern, variables = self._select()
            form = al.Select(pattern, tuple(var.name for var in variables))
        if self._at != len(self._found):
            self._beyond()
        return form

    def _construct(self) -> al.Construct:
        """CONSTRUCT; the short form CONSTRUCT WHERE has its triples as template too (16.2.4)."""
        short = self._says("WHERE")
        start = self._at
        if not short:
            while not self._skip("}"):
                self._at += 1
        pattern = self._modified()
        end, self._at = self._at, start
        self._must("{")
        template: list[al.TriplePattern] = []
        while not self._skip("}"):
            template.extend(self._same_subject("template"))
            self._skip(".")
        self._at = end
        return al.Construct(tuple(template), pattern)

    def _select(self) -> tuple[al.Pattern, tuple[al.Var, ...]]:
        """SELECT (18.2.4, 18.2.5) and its variables; ``*`` is every visible one, blank nodes left out."""
        around, self._aggregates = self._aggregates, {}
        distinct = self._word() if self._word() in ("DISTINCT", "REDUCED") else ""
        self._says("DISTINCT", "REDUCED")
        columns = [] if self._skip("*") else self._columns()
        solutions = self._solutions(self._aggregates)
        self._aggregates = around
        pattern = solutions.pattern
        for var, expression in columns:
            if expression is not None:
                pattern = al.Extend(pattern, var, expression)
        every = (var for var in al.pattern_variables(pattern) if not var.name.startswith("_:"))
        variables = tuple(var for var, _ in columns) or tuple(every)
        pattern = al.Project(solutions.ordered(pattern), variables)
        if distinct:
            pattern = al.Distinct(pattern) if distinct == "DISTINCT" else al.Reduced(pattern)
        return solutions.sliced(pattern), variables

    def _columns(self) -> list[tuple[al.Var, al.Expression | None]]:
        found: list[tuple[al.Var, al.Expression | None]] = []
        while self._token.kind == "variable" or self._is("("):
            if self._skip("("):
                expression = self._expression()
                self._must_say("AS")
                found.append((self._variable(), expression))
                self._must(")")
            else:
                found.append((self._variable(), None))
        return found or self._beyond()

    def _modified(self) -> al.Pattern:
        """The WHERE of an ASK or CONSTRUCT under its solution modifiers."""
        solutions = self._solutions({})
        self._aggregates = None
        return solutions.sliced(solutions.ordered(solutions.pattern))

    def _solutions(self, aggregates: dict[al.Aggregate, al.Var]) -> _Solutions:
        self._aggregates = None
        self._says("WHERE")
        pattern, keys = self._group(), self._keys()
        self._aggregates = aggregates
        having, order, limits = self._having(), self._order(), self._limits()
        if keys is not None or aggregates:
            made = tuple((var, aggregate) for aggregate, var in aggregates.items())
            pattern = al.Group(pattern, keys or (), made)
        if having:
            pattern = al.Filter(reduce(_both, having), pattern)
        if self._says("VALUES"):
            pattern = _join(pattern, self._values())
        return _Solutions(pattern, order, limits)

    def _keys(self) -> tuple[tuple[al.Var, al.Expression], ...] | None:
        if not self._says("GROUP"):
            return None
        self._must_say("BY")
        found: list[tuple[al.Var, al.Expression]] = []
        while self._begins_constraint() or self._token.kind == "variable":
            if not self._skip("("):
                expression = self._variable() if self._token.kind == "variable" else self._call()
                named = None
            else:
                expression = self._expression()
                named = self._variable() if self._says("AS") else None
                self._must(")")
            own = expression if isinstance(expression, al.Var) else al.Var(f".key{len(found)}")
            found.append((named or own, expression))
        return tuple(found)

    def _having(self) -> list[al.Expression]:
        found: list[al.Expression] = []
        if self._says("HAVING"):
            while self._begins_constraint():
                found.append(self._constraint())
        return found

    def _order(self) -> tuple[tuple[al.Expression, bool], ...]:
        if not self._says("ORDER"):
            return ()
        self._must_say("BY")
        found: list[tuple[al.Expression, bool]] = []
        while True:
            word = self._word()
            if self._token.kind == "variable":
                found.append((self._variable(), False))
            elif self._says("ASC", "DESC") or self._begins_constraint():
                found.append((self._constraint(), word == "DESC"))
            else:
                return tuple(found)

    def _limits(self) -> dict[str, int]:
        found: dict[str, int] = {}
        while (word := self._word()) in ("LIMIT", "OFFSET") and word not in found:
            self._at += 1
            if not self._token.text.isdigit():
                self._beyond()
            found[word] = int(self._take().text)
        return found

    # Groups

    def _group(self) -> al.Pattern:
        """A group, its FILTERs applied to the whole of it."""
        pattern, filters = self._open_group()
        return al.Filter(reduce(_both, filters), pattern) if filters else pattern

    def _open_group(self) -> tuple[al.Pattern, list[al.Expression]]:
        """The pattern and the FILTERs of a group, apart; triples on both sides of a FILTER are one BGP."""
        self._must("{")
        if self._says("SELECT"):
            pattern, _ = self._select()
            self._must("}")
            return pattern, []
        pattern = _EMPTY
        block: list[al.TriplePattern] = []
        filters: list[al.Expression] = []
        while not self._skip("}"):
            if self._says("FILTER"):
                filters.append(self._constraint())
            elif self._word() in _PARTS or self._is("{"):
                pattern, block = self._part(_join(pattern, al.BGP(tuple(block)))), []
            else:
                block.extend(self._same_subject())
            self._skip(".")
        return _join(pattern, al.BGP(tuple(block))), filters

    def _part(self, left: al.Pattern) -> al.Pattern:
        if self._says("OPTIONAL"):
            right, filters = self._open_group()
            return al.LeftJoin(left, right, reduce(_both, filters) if filters else None)
        if self._says("MINUS"):
            return al.Minus(left, self._group())
        if self._says("GRAPH"):
            name = self._node()
            return _join(left, al.Graph(name, self._group()))
        if self._says("VALUES"):
            return _join(left, self._values())
        if self._says("BIND"):
            self._must("(")
            expression = self._expression()
            self._must_say("AS")
            var = self._variable()
            self._must(")")
            return al.Extend(left, var, expression)
        groups = [self._group()]
        while self._says("UNION"):
            groups.append(self._group())
        return _join(left, reduce(al.Union, groups))

    def _values(self) -> al.Values:
        variables: list[al.Var] = []
        several = self._skip("(")
        while self._token.kind == "variable":
            variables.append(self._variable())
        if several:
            self._must(")")
        self._must("{")
        rows: list[tuple[Term | None, ...]] = []
        while not self._skip("}"):
            if several:
                self._must("(")
            rows.append(tuple(None if self._says("UNDEF") else self._term() for _ in variables))
            if several:
                self._must(")")
        return al.Values(tuple(variables), tuple(rows))

    # Expressions

    def _begins_constraint(self) -> bool:
        word = self._word()
        known = word in _BUILT_IN or word in _AGGREGATES or word in ("EXISTS", "NOT")
        return known or self._is("(") or self._token.kind in ("iri", "name")

    def _constraint(self) -> al.Expression:
        """An expression in brackets, or a call."""
        return self._bracketed() if self._skip("(") else self._call()

    def _bracketed(self) -> al.Expression:
        expression = self._expression()
        self._must(")")
        return expression

    def _expression(self, least: int = 1) -> al.Expression:
        """An expression of operators that bind at least as closely as ``least``; all group from the left."""
        left = self._unary()
        while (binding := self._binding()) >= least:
            if self._word():
                negated = self._says("NOT")
                self._must_say("IN")
                inside = al.Call("IN", (left, *self._arguments()))
                left = al.Call("!", (inside,)) if negated else inside
            else:
                operator = self._take().text
                left = al.Call(operator, (left, self._expression(binding + 1)))
        return left

    def _binding(self) -> int:
        """How closely the operator that is next binds, 0 for none; a sign after an operand is an operator."""
        if self._token.kind == "sign":
            return _BINDING.get(self._token.text, 0)
        return _RELATION if self._word() in ("IN", "NOT") else 0

    def _unary(self) -> al.Expression:
        if self._is("!", "+", "-") and not self._is_signed_number():
            return al.Call(self._take().text, (self._primary(),))
        return self._primary()

    def _primary(self) -> al.Expression:
        if self._token.kind == "variable":
            return self._variable()
        if self._skip("("):
            return self._bracketed()
        if self._token.kind == "word" and self._token.text not in _TRUTH:
            return self._call()
        at, term = self._at, self._term()
        if self._is("("):
            self._at = at
            return self._call()
        return term

    def _arguments(self) -> list[al.Expression]:
        """Expressions in brackets, none at all among them."""
        self._must("(")
        found: list[al.Expression] = []
        if self._skip(")"):
            return found
        found.append(self._expression())
        while self._skip(","):
            found.append(self._expression())
        self._must(")")
        return found

    def _call(self) -> al.Expression:
        """EXISTS, an aggregate, a built-in function or a function by IRI."""
        if self._says("EXISTS"):
            return al.Exists(self._inner_group())
        if self._says("NOT"):
            self._must_say("EXISTS")
            return al.Call("!", (al.Exists(self._inner_group()),))
        name = self._word()
        if name in _AGGREGATES and self._aggregates is not None:
            self._at += 1
            return self._aggregate(name, self._aggregates)
        if not name:
            function = self._iri()
            operator = TIMESTAMP if function in (FUNCTION, WORD) else function
            return al.Call(operator, tuple(self._arguments()))
        least, most = _BUILT_IN.get(name) or self._beyond()
        self._at += 1
        arguments = self._arguments()
        if not least <= len(arguments) <= most:
            self._beyond()
        call = al.Call(_SAME.get(name, name), tuple(arguments))
        return self._resolved(call) if call.operator == "IRI" else call

    def _inner_group(self) -> al.Pattern:
        """The group of an EXISTS, whose aggregates are none of those around it."""
        around, self._aggregates = self._aggregates, None
        pattern = self._group()
        self._aggregates = around
        return pattern

    def _resolved(self, call: al.Call) -> al.Expression:
        """``IRI("relative")`` of a constant under a BASE is that IRI: the algebra has no BASE."""
        (argument,) = call.arguments
        if self._prologue.base is None or not isinstance(argument, str) or datatype(argument) != f"{XSD}string":
            return call
        try:
            iri = self._prologue.resolve(parse_term(argument).value)
        except ValueError:
            return call
        return call if iri is None else f"<{iri}>"

    def _aggregate(self, name: str, known: dict[al.Aggregate, al.Var]) -> al.Var:
        self._must("(")
        distinct = self._says("DISTINCT")
        argument = None if name == "COUNT" and self._skip("*") else self._expression()
        separator = " "
        if self._skip(";"):
            self._must_say("SEPARATOR")
            self._must("=")
            separator = string_value(self._take().text)
        self._must(")")
        aggregate = al.Aggregate(name, argument, distinct, separator)
        return known.setdefault(aggregate, al.Var(f".agg{len(known)}"))


def _both(left: al.Expression, right: al.Expression) -> al.Expression:
    return al.Call("&&", (left, right))


def _join(left: al.Pattern, right: al.Pattern) -> al.Pattern:
    """Join, without identity operands (18.2.2.8)."""
    if left == _EMPTY:
        return right
    return left if right == _EMPTY else al.Join(left, right)
