"""SPARQL 1.2 queries as algebra: recursive descent over the grammar (19.8) with the translation of section 18.2.

Errors are QueryErrors at the wrong token. Unsupported parts of SPARQL (SERVICE, FROM, DESCRIBE) are parsed to the end
and noted, so that mistakes elsewhere are reported too. Tested against the W3C's syntax tests (``tests/w3c``), rdflib's
parser and pyoxigraph's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, triple_term
from streamgauge.query.expressions import ExpressionReader
from streamgauge.query.text import Token, UnansweredError
from streamgauge.query.traversal import every_expression

_EMPTY: Final = al.BGP(())
_PARTS: Final = ("OPTIONAL", "MINUS", "GRAPH", "SERVICE", "BIND", "VALUES")
_DESCRIBE: Final = "DESCRIBE has no defined answer: write a CONSTRUCT"
_SERVICE: Final = "SERVICE is not supported: load the other server's data as static data instead"
_FROM: Final = "FROM is not supported: load the data as static data and leave FROM out, or name a stream"


@dataclass(slots=True)
class PlainQuery:
    """A SPARQL query: its form, the graphs of FROM and FROM NAMED (IRIs without brackets), and its unsupported parts.

    ``dataset`` is the error at the first FROM, for evaluators that cannot load graphs by name.
    """

    form: al.QueryForm
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    dataset: UnansweredError | None = None
    unanswered: UnansweredError | None = None
    notes: tuple[str, ...] = ()

    def answerable(self) -> "PlainQuery":
        """The query itself; UnansweredError for an unsupported part."""
        if (error := self.unanswered or self.dataset) is not None:
            raise error
        return self


@dataclass(frozen=True, slots=True)
class _Solutions:
    """The clauses after SELECT's columns: WHERE with grouping, HAVING and VALUES; ORDER BY; LIMIT and OFFSET."""

    pattern: al.Pattern
    order: tuple[tuple[al.Expression, bool], ...]
    limits: dict[str, int]
    grouped: bool
    having: al.Expression | None

    def ordered(self, pattern: al.Pattern) -> al.Pattern:
        return al.OrderBy(pattern, self.order) if self.order else pattern

    def sliced(self, pattern: al.Pattern) -> al.Pattern:
        offset, limit = self.limits.get("OFFSET", 0), self.limits.get("LIMIT")
        return pattern if not offset and limit is None else al.Slice(pattern, offset, limit)


class QueryReader(ExpressionReader):
    """The reader of groups and query forms."""

    def query(self) -> PlainQuery:
        """Read the whole query, up to the end of the text."""
        self._default_graphs: list[str] = []
        self._named_graphs: list[str] = []
        self._from: Token | None = None
        self._notes: list[str] = []
        form = self._form()
        if self._token.text:
            self._expect("the end of the query")
        return PlainQuery(
            form,
            tuple(self._default_graphs),
            tuple(self._named_graphs),
            None if self._from is None else UnansweredError(_FROM, self._text, self._from.start),
            self._unanswered,
            tuple(dict.fromkeys(self._notes)),
        )

    def _form(self) -> al.QueryForm:
        if self._says("ASK"):
            self._dataset()
            return al.Ask(self._modified(self._where))
        if self._says("CONSTRUCT"):
            return self._construct()
        if self._word() == "DESCRIBE":
            return self._describe()
        self._must_say("SELECT", "CONSTRUCT", "ASK")
        pattern, variables = self._select(dataset=True)
        return al.Select(pattern, tuple(var.name for var in variables))

    def _dataset(self) -> None:
        """Read FROM and FROM NAMED, which subqueries do not have."""
        while self._word() == "FROM":
            self._from = self._from or self._token
            self._at += 1
            graphs = self._named_graphs if self._says("NAMED") else self._default_graphs
            graphs.append(self._iri()[1:-1])

    def _describe(self) -> al.QueryForm:
        """DESCRIBE, which is parsed like a SELECT and noted as unsupported."""
        self._leave_unanswered(_DESCRIBE, self._take())
        if not self._skip("*"):
            if self._token.kind not in ("variable", "iri", "name"):
                self._expect("a variable, an IRI or *")
            while self._token.kind in ("variable", "iri", "name"):
                _ = self._variable() if self._token.kind == "variable" else self._iri()
        self._dataset()
        has_group = self._word() == "WHERE" or self._is("{")
        return al.Ask(self._modified(self._where if has_group else lambda: _EMPTY))

    def _construct(self) -> al.Construct:
        """CONSTRUCT; in the short form CONSTRUCT WHERE the triples are the template too (16.2.4)."""
        if not self._is("{"):
            self._dataset()
            self._must_say("WHERE")
            # The triples are read twice, because blank nodes of a template are numbered apart from those of the
            # pattern.
            start = self._at
            pattern = self._modified(lambda: self._block(tuple(self._template("query"))))
            end, self._at = self._at, start
            template = tuple(self._template("template"))
            self._at = end
            return al.Construct(template, self._made_terms(pattern, self._words[start]))
        token, template = self._token, tuple(self._template("template"))
        self._dataset()
        return al.Construct(template, self._made_terms(self._modified(self._where), token))

    def _template(self, scope: str) -> Iterator[al.TriplePattern]:
        """Triples in braces, without property paths."""
        self._must("{")
        yield from self._triples(scope)
        if not self._skip("}"):
            self._expect("a triple or the } of the template")

    def _made_terms(self, pattern: al.Pattern, token: Token) -> al.Pattern:
        """The pattern extended by the triple terms of the template, which starts at a token."""
        terms, self._terms = self._terms, {}
        for variable, parts in terms.items():
            if any(isinstance(node, al.Var) and node.name.startswith("_:") for node in parts):
                what = "a blank node in a triple term of a template is not supported: use BIND(BNODE() AS ?b)"
                self._leave_unanswered(what, token)
            pattern = al.Extend(pattern, variable, al.Call("TRIPLE", parts))
        return pattern

    # SELECT and solution modifiers

    def _select(self, dataset: bool = False) -> tuple[al.Pattern, tuple[al.Var, ...]]:
        """SELECT (18.2.4, 18.2.5) and its variables; ``*`` is all visible ones without blank nodes."""
        # A subquery has aggregates of its own.
        around, self._aggregates = self._aggregates, {}
        distinct = self._word() if self._word() in ("DISTINCT", "REDUCED") else ""
        self._says("DISTINCT", "REDUCED")
        star = self._token
        columns = [] if self._skip("*") else self._columns()
        if dataset:
            self._dataset()
        # The columns are read before WHERE, but their aggregates are collected in the same dictionary as those of
        # HAVING.
        solutions = self._solutions(self._where, self._aggregates)
        self._aggregates = around
        if not columns and solutions.grouped:
            self._refuse("SELECT * is not allowed with GROUP BY or an aggregate: name the columns", star)
        pattern = self._extended(solutions, columns)
        hidden = {al.Var(name) for name in self._hidden}
        visible = (var for var in al.pattern_variables(pattern) if not var.name.startswith("_:") and var not in hidden)
        variables = tuple(dict.fromkeys(var for var, _, _ in columns)) or tuple(visible)  # a set of names (18.2.4.4)
        pattern = al.Project(solutions.ordered(pattern), variables)
        if distinct:
            pattern = al.Distinct(pattern) if distinct == "DISTINCT" else al.Reduced(pattern)
        return solutions.sliced(pattern), variables

    def _columns(self) -> list[tuple[al.Var, al.Expression | None, Token]]:
        """The columns of SELECT, each with its expression and first token."""
        columns: list[tuple[al.Var, al.Expression | None, Token]] = []
        while self._token.kind == "variable" or self._is("("):
            token = self._token
            if self._skip("("):
                self._weigh(2)
                expression = self._expression()
                self._must_say("AS")
                columns.append((self._variable(), expression, token))
                self._must(")")
            else:
                columns.append((self._variable(), None, token))
        return columns or self._expect("a column: ?x, (expression AS ?x) or *")

    def _extended(self, solutions: _Solutions, columns: list[tuple[al.Var, al.Expression | None, Token]]) -> al.Pattern:
        """The solutions extended by the expressions of SELECT; QueryError for names that are taken or not grouped."""
        pattern = solutions.pattern
        seen: set[al.Var] = set()
        known = set(al.pattern_variables(pattern))
        for var, expression, token in columns:
            if var in seen and expression is not None:
                self._refuse(f"SELECT already has ?{var.name}: give the expression another name", token)
            if expression is not None and var in known:
                self._refuse(f"?{var.name} already has a value: give the expression another name", token)
            if solutions.grouped:
                self._check_grouped(expression or var, known, token)
            if expression is not None:
                # A note and not an error: the query is valid, but hardly what its author means.
                if solutions.having is not None and var in al.expression_variables(solutions.having):
                    self._notes.append(
                        f"HAVING uses ?{var.name}, which SELECT computes after it (SPARQL 18.2.4), so it is unbound "
                        "there: write the aggregate itself, as in HAVING (COUNT(*) > 1)"
                    )
                pattern = al.Extend(pattern, var, expression)
                known.add(var)
            seen.add(var)
        return pattern

    def _check_grouped(self, column: al.Expression, known: set[al.Var], token: Token) -> None:
        """Raise QueryError for a variable in SELECT that is not grouped."""
        for var in every_expression(column):
            if isinstance(var, al.Var) and var not in known:
                what = f"?{var.name} in SELECT is unbound: add it to GROUP BY, or use it in an aggregate"
                self._refuse(f"{what} such as COUNT(?{var.name})", self._mention(var, token))

    def _mention(self, var: al.Var, token: Token) -> Token:
        """The first token of a variable at or after another token."""
        first = self._words.index(token)
        return next((word for word in self._words[first:] if word.text[1:] == var.name), token)

    def _modified(self, where: Callable[[], al.Pattern]) -> al.Pattern:
        """The WHERE of an ASK or CONSTRUCT with its solution modifiers."""
        solutions = self._solutions(where, {})
        self._aggregates = None
        return solutions.sliced(solutions.ordered(solutions.pattern))

    def _where(self) -> al.Pattern:
        self._says("WHERE")
        if not self._is("{"):
            self._expect("WHERE { ... }")
        return self._group()

    def _solutions(self, where: Callable[[], al.Pattern], aggregates: dict[al.Aggregate, al.Var]) -> _Solutions:
        self._aggregates = None
        pattern = where()
        keys = self._keys(pattern)
        self._aggregates = aggregates
        # Aggregates in HAVING and ORDER BY belong to the same grouping as those of the columns.
        having, order, limits = self._having(), self._order(), self._limits()
        self._aggregates = None
        grouped = keys is not None or bool(aggregates)
        if grouped:
            computed = tuple((var, aggregate) for aggregate, var in aggregates.items())
            pattern = al.Group(pattern, keys or (), computed)
        condition = reduce(_both, having) if having else None
        if condition is not None:
            pattern = al.Filter(condition, pattern)
        if self._says("VALUES"):
            pattern = joined(pattern, self._values())
        return _Solutions(pattern, order, limits, grouped, condition)

    def _keys(self, pattern: al.Pattern) -> tuple[tuple[al.Var, al.Expression], ...] | None:
        if not self._says("GROUP"):
            return None
        self._must_say("BY")
        keys: list[tuple[al.Var, al.Expression]] = []
        taken = set(al.pattern_variables(pattern))
        while self._begins_constraint() or self._token.kind == "variable":
            token, named = self._token, None
            if not self._skip("("):
                expression = self._variable() if token.kind == "variable" else self._call()
            else:
                expression = self._expression()
                named = self._variable() if self._says("AS") else None
                self._must(")")
            if named in taken:
                self._refuse(f"?{named.name} already has a value: give the key another name", token)
            own = expression if isinstance(expression, al.Var) else al.Var(f".key{len(keys)}")
            keys.append((named or own, expression))
            taken |= {named} if named else set()
        return tuple(keys) or self._expect("a key: ?x, (expression AS ?x) or a function")

    def _having(self) -> list[al.Expression]:
        conditions: list[al.Expression] = []
        if self._says("HAVING"):
            conditions.append(self._condition())
            while self._begins_constraint():
                self._weigh()
                conditions.append(self._condition())
        return conditions

    def _order(self) -> tuple[tuple[al.Expression, bool], ...]:
        if not self._says("ORDER"):
            return ()
        self._must_say("BY")
        keys: list[tuple[al.Expression, bool]] = []
        while True:
            word = self._word()
            if self._token.kind == "variable":
                keys.append((self._variable(), False))
            elif self._says("ASC", "DESC"):
                self._must("(")
                keys.append((self._bracketed(), word == "DESC"))
            elif self._begins_constraint():
                keys.append((self._constraint("a key"), False))
            else:
                return tuple(keys) or self._expect("a key: ?x, DESC(?x) or an expression in brackets")

    def _limits(self) -> dict[str, int]:
        limits: dict[str, int] = {}
        while (word := self._word()) in ("LIMIT", "OFFSET") and word not in limits:
            self._at += 1
            if not (self._token.text.isascii() and self._token.text.isdigit()):
                self._expect(f"a whole number after {word}")
            limits[word] = _bounded(self._take().text)
        return limits

    # Groups

    def _group(self) -> al.Pattern:
        """A group, with its FILTERs applied to all of it (18.2.2.2)."""
        pattern, filters = self._open_group()
        return al.Filter(reduce(_both, filters), pattern) if filters else pattern

    def _open_group(self) -> tuple[al.Pattern, list[al.Expression]]:
        """The pattern and the FILTERs of a group; triples before and after a FILTER are one BGP (5.1.1)."""
        self._must("{")
        # A group begins new basic graph patterns, and what is open inside it is closed at its end.
        around = self._terms, self._block_number, self._scope, self._weight
        self._terms, self._block_number, self._scope = {}, next(self._blocks), "query"
        self._weigh()
        if self._says("SELECT"):
            pattern, _ = self._select()
            filters: list[al.Expression] = []
        else:
            pattern, filters = self._elements()
        self._must("}")
        self._terms, self._block_number, self._scope, self._weight = around
        return pattern, filters

    def _elements(self) -> tuple[al.Pattern, list[al.Expression]]:
        """The pattern and the FILTERs inside the braces of a group."""
        pattern: al.Pattern = _EMPTY
        filters: list[al.Expression] = []
        block = list(self._triples())
        while not self._is("}"):
            self._weigh(2)
            if self._says("FILTER"):
                filters.append(self._condition())
            elif self._word() in _PARTS or self._is("{"):
                pattern, block = self._part(joined(pattern, self._block(block))), []
                # Triples after such a part are another basic graph pattern, which may not share blank node labels with
                # the one before.
                self._block_number = next(self._blocks)
            else:
                self._expect("a triple, a part like OPTIONAL or FILTER, or the } of the group")
            self._skip(".")
            block.extend(self._triples())
        return joined(pattern, self._block(block)), filters

    def _part(self, left: al.Pattern) -> al.Pattern:
        if self._says("OPTIONAL"):
            # The FILTERs of an OPTIONAL are its condition: they see the variables of the left side (18.2.2.6).
            right, filters = self._open_group()
            return al.LeftJoin(left, right, reduce(_both, filters) if filters else None)
        if self._says("MINUS"):
            return al.Minus(left, self._group())
        if self._word() in ("GRAPH", "SERVICE"):
            token = self._take()
            if token.says("SERVICE"):
                self._leave_unanswered(_SERVICE, token)
                self._says("SILENT")
            name = self._variable() if self._token.kind == "variable" else self._iri()
            return joined(left, al.Graph(name, self._group()))
        if self._says("VALUES"):
            return joined(left, self._values())
        if self._says("BIND"):
            return self._bind(left)
        groups = [self._group()]
        while self._says("UNION"):
            self._weigh(2)
            groups.append(self._group())
        return joined(left, reduce(al.Union, groups))

    def _bind(self, left: al.Pattern) -> al.Pattern:
        self._must("(")
        expression = self._expression()
        self._must_say("AS")
        token, var = self._token, self._variable()
        self._must(")")
        # BIND ends the basic graph pattern, so only what is before it counts (18.2.1).
        if var in al.pattern_variables(left):
            self._refuse(f"?{var.name} already has a value: BIND needs a new variable", token)
        return al.Extend(left, var, expression)

    def _values(self) -> al.Values:
        variables: list[al.Var] = []
        several = self._skip("(")
        while self._token.kind == "variable" and (several or not variables):
            if (var := self._variable()) in variables:
                self._refuse(f"VALUES repeats ?{var.name}: leave one out", self._words[self._at - 1])
            variables.append(var)
        if several:
            self._must(")")
        elif not variables:
            self._expect("a variable, or variables in brackets")
        self._must("{")
        rows: list[tuple[Term | None, ...]] = []
        while not self._skip("}"):
            rows.append(self._data_row(len(variables)) if several else (self._cell(),))
        return al.Values(tuple(variables), tuple(rows))

    def _data_row(self, width: int) -> tuple[Term | None, ...]:
        """A row of VALUES in brackets; QueryError unless it has ``width`` terms."""
        token = self._token
        self._must("(")
        row: list[Term | None] = []
        while not self._skip(")"):
            row.append(self._cell())
        if len(row) != width:
            self._refuse(
                f"this row of VALUES has {len(row)} terms for {width} variables: write UNDEF for a missing one", token
            )
        return tuple(row)

    def _cell(self) -> Term | None:
        return None if self._says("UNDEF") else self._data()

    def _data(self) -> Term:
        """A constant: an IRI, a literal or a triple term of constants."""
        if not self._skip("<<("):
            return self._term("a constant or UNDEF")
        triple = self._iri(), self._predicate(), self._data()
        self._must(")>>")
        return triple_term(triple)


_ENDLESS: Final = 10**18
"""A LIMIT or OFFSET beyond any number of rows; Python refuses to parse numbers of thousands of digits."""


def _bounded(digits: str) -> int:
    """The number of a LIMIT or OFFSET, capped at ``_ENDLESS``."""
    short = digits.lstrip("0")[:20]
    return min(_ENDLESS, int(short or "0"))


def _both(left: al.Expression, right: al.Expression) -> al.Expression:
    return al.Call("&&", (left, right))


def joined(left: al.Pattern, right: al.Pattern) -> al.Pattern:
    """Join, simplified if an operand is the empty group (18.2.2.8)."""
    if left == _EMPTY:
        return right
    return left if right == _EMPTY else al.Join(left, right)
