"""SPARQL 1.1 queries as algebra: recursive descent over the grammar (19.8) with the translation of section 18.2.

The text is one that pyoxigraph accepts, so the reader decides what the text means and looks no further for mistakes.
Syntax beyond SPARQL 1.1 is refused. ``tests/query/test_reader.py`` holds the algebra against rdflib's parser.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term, datatype, triple_term
from streamgauge.query.stamps import FUNCTION, TIMESTAMP, WORD
from streamgauge.query.text import TRUTH, Prologue, Token, refusal, string_value
from streamgauge.query.triples import TripleReader

_EMPTY: Final = al.BGP(())

_ANY: Final = 1 << 30
_ARITIES: Final[dict[tuple[int, int], str]] = {
    (0, 0): "NOW RAND UUID STRUUID",
    (0, 1): "BNODE",
    (1, 1): """STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY HOURS
        MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC BOUND
        LANGDIR HASLANG HASLANGDIR ISTRIPLE SUBJECT PREDICATE OBJECT""",
    (3, 3): "IF TRIPLE STRLANGDIR",
    (2, 2): "CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER LANGMATCHES SAMETERM STRLANG STRDT",
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


def read_query(text: str, found: Sequence[Token], prologue: Prologue) -> al.QueryForm:
    """The form of a query that pyoxigraph accepts; QueryError where the text goes beyond SPARQL 1.1."""
    return _QueryReader(text, found, prologue).form()


@dataclass(frozen=True, slots=True)
class _Solutions:
    """The parts behind SELECT and its columns: WHERE with grouping, HAVING and VALUES; ORDER BY; LIMIT, OFFSET."""

    pattern: al.Pattern
    order: tuple[tuple[al.Expression, bool], ...]
    limits: dict[str, int]

    def ordered(self, pattern: al.Pattern) -> al.Pattern:
        return al.OrderBy(pattern, self.order) if self.order else pattern

    def sliced(self, pattern: al.Pattern) -> al.Pattern:
        return al.Slice(pattern, self.limits.get("OFFSET", 0), self.limits.get("LIMIT")) if self.limits else pattern


class _QueryReader(TripleReader):
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
        for variable, parts in self._terms.items():
            if any(isinstance(node, al.Var) and node.name.startswith("_:") for node in parts):
                what = "a blank node in a triple term of a template: make it by BIND(BNODE() AS ?b)"
                raise refusal(what, self._text, self._found[start].start)
            pattern = al.Extend(pattern, variable, al.Call("TRIPLE", parts))
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
        hidden = {al.Var(name) for name in self._hidden}
        every = (var for var in al.pattern_variables(pattern) if not var.name.startswith("_:") and var not in hidden)
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
        around, self._terms = self._terms, {}
        block: list[al.TriplePattern] = []
        filters: list[al.Expression] = []
        while not self._skip("}"):
            if self._says("FILTER"):
                filters.append(self._constraint())
            elif self._word() in _PARTS or self._is("{"):
                pattern, block = self._part(_join(pattern, self._block(block))), []
            else:
                block.extend(self._same_subject())
            self._skip(".")
        found = _join(pattern, self._block(block)), filters
        self._terms = around
        return found

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
            rows.append(tuple(None if self._says("UNDEF") else self._data() for _ in variables))
            if several:
                self._must(")")
        return al.Values(tuple(variables), tuple(rows))

    def _data(self) -> Term:
        """A constant: an IRI, a literal or a triple term of constants."""
        if not self._skip("<<("):
            return self._term()
        triple = self._data(), self._predicate(), self._data()
        self._must(")>>")
        return triple_term(triple)

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
                inside = al.Call("IN", _tags_lowered((left, *self._arguments())))
                left = al.Call("!", (inside,)) if negated else inside
            else:
                operator = self._take().text
                left = al.Call(operator, _tags_lowered((left, self._expression(binding + 1))))
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
        if self._skip("<<("):
            return self._triple_value()
        if self._token.kind == "word" and self._token.text not in TRUTH:
            return self._call()
        at, term = self._at, self._term()
        if self._is("("):
            self._at = at
            return self._call()
        return term

    def _triple_value(self) -> al.Expression:
        """The rest of ``<<( s p o )>>`` in an expression: a constant, or what TRIPLE gives of its parts."""
        subject, predicate, item = self._primary(), self._verb(), self._primary()
        self._must(")>>")
        if isinstance(subject, str) and isinstance(predicate, str) and isinstance(item, str):
            return triple_term((subject, predicate, item))
        return al.Call("TRIPLE", (subject, predicate, item))

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
        call = al.Call(_SAME.get(name, name), _tags_lowered(tuple(arguments)))
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


_TAG: Final = re.compile(r'"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{0,8})*"')


def _tags_lowered(operands: tuple[al.Expression, ...]) -> tuple[al.Expression, ...]:
    """The operands of a function or operator, constants beside LANG(...) in lower case: tags are, in the data.

    ``LANG(?o) = "en-GB"`` is to find ``"x"@en-GB``: tags are equal whatever their case (RDF 1.2, 3.4; RFC 5646, 2.1.1).
    """
    if not any(isinstance(each, al.Call) and each.operator == "LANG" for each in operands):
        return operands
    return tuple(each.lower() if isinstance(each, str) and _TAG.fullmatch(each) else each for each in operands)


def _both(left: al.Expression, right: al.Expression) -> al.Expression:
    return al.Call("&&", (left, right))


def _join(left: al.Pattern, right: al.Pattern) -> al.Pattern:
    """Join, without identity operands (18.2.2.8)."""
    if left == _EMPTY:
        return right
    return left if right == _EMPTY else al.Join(left, right)
