"""The queries that most people write, read from tokens straight to algebra; of all others rdflib's tree is made.

A SELECT or ASK that pyoxigraph accepts is read by recursive descent over SPARQL's grammar (SPARQL 1.1, 19.8), with the
translation of ``tree`` (18.2). Whatever is not covered (property paths, blank nodes, collections, subqueries, VALUES,
functions by IRI, signed numbers, CONSTRUCT) gives ``None``, and the text is read in the other way, thirty times slower.
Both ways give equal algebra; ``tests/query/test_direct.py`` holds them against each other.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final, NoReturn

from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, XSD, Term
from streamgauge.query.prologue import Prologue
from streamgauge.query.tokens import Token

EMPTY: Final = al.BGP(())

_ONE: Final = """STR LANG DATATYPE ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY HOURS MINUTES
SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISBLANK ISLITERAL ISNUMERIC BOUND"""
_TWO: Final = "CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER LANGMATCHES SAMETERM STRLANG STRDT"
_BUILT_IN: Final = {
    **dict.fromkeys(_ONE.split(), (1, 1)),
    **dict.fromkeys(_TWO.split(), (2, 2)),
    "IF": (3, 3),
    "REGEX": (2, 3),
    "SUBSTR": (2, 3),
    "REPLACE": (3, 4),
    "COALESCE": (1, 1 << 30),
    "CONCAT": (1, 1 << 30),
}
"""Built-in functions whose calls are their arguments one after the other: the least and the most of them."""
_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")
_RELATIONS: Final = ("=", "!=", "<", ">", "<=", ">=")
_NEXT: Final = ("OPTIONAL", "MINUS", "GRAPH", "BIND", "FILTER", "UNION")
_END: Final = Token("sign", "", -1)


class _OtherError(Exception):
    """Something that is not covered."""


def read_direct(found: Sequence[Token], prologue: Prologue) -> al.QueryForm | None:
    """The form of a query that pyoxigraph accepts; ``None`` where it is not covered."""
    try:
        return _Direct(found, prologue).form()
    except _OtherError:
        return None


class _Direct:
    """Reads tokens from the end of the prologue on; ``_OtherError`` at the first that is not covered."""

    def __init__(self, found: Sequence[Token], prologue: Prologue) -> None:
        self._found, self._prologue, self._at = found, prologue, prologue.end
        self._aggregates: dict[al.Aggregate, al.Var] | None = None

    @property
    def _token(self) -> Token:
        return self._found[self._at] if self._at < len(self._found) else _END

    def _other(self) -> NoReturn:
        raise _OtherError

    def _take(self) -> Token:
        token = self._token
        self._at += 1
        return token

    def _is(self, text: str) -> bool:
        """Whether a sign is next."""
        token = self._token
        return token.kind == "sign" and token.text == text

    def _skip(self, text: str) -> bool:
        """Step over a sign, if it is next."""
        if self._is(text):
            self._at += 1
            return True
        return False

    def _must(self, text: str) -> None:
        if not self._skip(text):
            self._other()

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

    def form(self) -> al.QueryForm:
        """The whole query."""
        if self._says("ASK"):
            self._says("WHERE")
            form: al.QueryForm = al.Ask(self._group())
        elif self._says("SELECT"):
            form = self._select()
        else:
            self._other()
        if self._at != len(self._found):
            self._other()
        return form

    def _select(self) -> al.Select:
        distinct = self._word()
        if not self._says("DISTINCT", "REDUCED"):
            distinct = ""
        self._aggregates = {}
        columns = self._columns()
        aggregates, self._aggregates = self._aggregates, None
        self._says("WHERE")
        pattern, keys = self._group(), self._keys()
        self._aggregates = aggregates
        having, order = self._having(), self._order()
        self._aggregates = None
        pattern = self._grouped(pattern, keys, aggregates, having)
        for var, expression in columns:
            if expression is not None:
                pattern = al.Extend(pattern, var, expression)
        variables = tuple(var for var, _ in columns) or al.pattern_variables(pattern)
        pattern = al.Project(al.OrderBy(pattern, order) if order else pattern, variables)
        if distinct:
            pattern = al.Distinct(pattern) if distinct == "DISTINCT" else al.Reduced(pattern)
        return al.Select(self._slice(pattern), tuple(var.name for var in variables))

    def _columns(self) -> list[tuple[al.Var, al.Expression | None]]:
        """The projection; empty for ``*``."""
        found: list[tuple[al.Var, al.Expression | None]] = []
        if self._skip("*"):
            return found
        while True:
            if self._token.kind == "variable":
                found.append((self._variable(), None))
            elif self._skip("("):
                expression = self._expression()
                if not self._says("AS"):
                    self._other()
                found.append((self._variable(), expression))
                self._must(")")
            elif found:
                return found
            else:
                self._other()

    def _keys(self) -> tuple[tuple[al.Var, al.Expression], ...] | None:
        """GROUP BY of variables."""
        if not self._says("GROUP"):
            return None
        if not self._says("BY"):
            self._other()
        found: list[tuple[al.Var, al.Expression]] = []
        while self._token.kind == "variable":
            var = self._variable()
            found.append((var, var))
        return tuple(found) if found else self._other()

    def _having(self) -> list[al.Expression]:
        found: list[al.Expression] = []
        if self._says("HAVING"):
            while self._skip("("):
                found.append(self._expression())
                self._must(")")
            if not found:
                self._other()
        return found

    def _order(self) -> tuple[tuple[al.Expression, bool], ...]:
        """ORDER BY of variables, ASC (...) and DESC (...)."""
        if not self._says("ORDER"):
            return ()
        if not self._says("BY"):
            self._other()
        found: list[tuple[al.Expression, bool]] = []
        while True:
            word = self._word()
            if self._token.kind == "variable":
                found.append((self._variable(), False))
            elif word in ("ASC", "DESC"):
                self._at += 1
                self._must("(")
                found.append((self._expression(), word == "DESC"))
                self._must(")")
            else:
                return tuple(found) if found else self._other()

    def _grouped(
        self,
        pattern: al.Pattern,
        keys: tuple[tuple[al.Var, al.Expression], ...] | None,
        aggregates: dict[al.Aggregate, al.Var],
        having: list[al.Expression],
    ) -> al.Pattern:
        if keys is not None or aggregates:
            made = tuple((var, aggregate) for aggregate, var in aggregates.items())
            pattern = al.Group(pattern, keys or (), made)
        return al.Filter(reduce(both, having), pattern) if having else pattern

    def _slice(self, pattern: al.Pattern) -> al.Pattern:
        said: dict[str, int] = {}
        while (word := self._word()) in ("LIMIT", "OFFSET") and word not in said:
            self._at += 1
            token = self._take()
            if token.kind != "number" or not token.text.isdigit():
                self._other()
            said[word] = int(token.text)
        return al.Slice(pattern, said.get("OFFSET", 0), said.get("LIMIT")) if said else pattern

    def _group(self) -> al.Pattern:
        """A group, its FILTERs applied to the whole of it."""
        pattern, filters = self._open()
        return al.Filter(reduce(both, filters), pattern) if filters else pattern

    def _open(self) -> tuple[al.Pattern, list[al.Expression]]:
        """The pattern and the FILTERs of a group, apart; triples on both sides of a FILTER are one BGP."""
        self._must("{")
        pattern: al.Pattern = EMPTY
        block: list[al.TriplePattern] = []
        filters: list[al.Expression] = []
        while not self._skip("}"):
            word = self._word()
            if word == "FILTER":
                self._at += 1
                filters.append(self._constraint())
            elif word in _NEXT or self._is("{"):
                pattern, block = self._part(join(pattern, al.BGP(tuple(block)))), []
            else:
                self._triples(block)
                continue
            self._skip(".")
        return join(pattern, al.BGP(tuple(block))), filters

    def _part(self, left: al.Pattern) -> al.Pattern:
        if self._says("OPTIONAL"):
            right, filters = self._open()
            return al.LeftJoin(left, right, reduce(both, filters) if filters else None)
        if self._says("MINUS"):
            return al.Minus(left, self._group())
        if self._says("GRAPH"):
            name = self._node()
            return join(left, al.Graph(name, self._group()))
        if self._says("BIND"):
            self._must("(")
            expression = self._expression()
            if not self._says("AS"):
                self._other()
            var = self._variable()
            self._must(")")
            return al.Extend(left, var, expression)
        groups = [self._group()]
        while self._says("UNION"):
            groups.append(self._group())
        return join(left, reduce(al.Union, groups))

    def _triples(self, block: list[al.TriplePattern]) -> None:
        """Triples of one subject."""
        subject = self._node()
        while True:
            predicate = self._predicate()
            block.append(al.TriplePattern(subject, predicate, self._node()))
            while self._skip(","):
                block.append(al.TriplePattern(subject, predicate, self._node()))
            if not self._skip(";"):
                break
            if self._is(".") or self._is("}") or self._is(";"):
                self._other()
        if not self._skip(".") and not (self._is("}") or self._is("{") or self._word() in _NEXT):
            self._other()

    def _predicate(self) -> al.Node:
        token = self._token
        if token.kind == "word" and token.text == "a":
            self._at += 1
            made: al.Node = RDF_TYPE
        elif token.kind == "variable":
            return self._variable()
        elif token.kind in ("iri", "name"):
            made = f"<{self._prologue.iri(self._take())}>"
        else:
            self._other()
        if self._token.kind == "sign":
            self._other()
        return made

    def _variable(self) -> al.Var:
        token = self._take()
        return al.Var(token.text[1:]) if token.kind == "variable" else self._other()

    def _node(self) -> al.Node:
        return self._variable() if self._token.kind == "variable" else self._term()

    def _term(self) -> Term:
        """An IRI, a literal, a number without a sign, true or false."""
        token = self._take()
        if token.kind in ("iri", "name"):
            return f"<{self._prologue.iri(token)}>"
        if token.kind == "number":
            kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
            return f'"{token.text}"^^<{XSD}{kind}>'
        if token.kind == "string":
            parts = [token]
            if self._token.kind == "language":
                parts.append(self._take())
            elif self._is("^^"):
                parts += [self._take(), self._take()]
            return self._prologue.literal(parts)
        if token.kind == "word" and token.text in ("true", "false"):
            return f'"{token.text}"^^<{XSD}boolean>'
        return self._other()

    def _constraint(self) -> al.Expression:
        if self._skip("("):
            expression = self._expression()
            self._must(")")
            return expression
        return self._call()

    def _expression(self) -> al.Expression:
        return self._chained(("||",), lambda: self._chained(("&&",), self._relation))

    def _chained(self, operators: Sequence[str], operand: Callable[[], al.Expression]) -> al.Expression:
        found = operand()
        while (token := self._token).kind == "sign" and token.text in operators:
            operator, after = self._take(), self._token
            if operator.text in ("+", "-") and after.kind == "number" and after.start == operator.end:
                self._other()
            found = al.Call(operator.text, (found, operand()))
        return found

    def _relation(self) -> al.Expression:
        left = self._sum()
        if self._token.kind == "sign" and self._token.text in _RELATIONS:
            return al.Call(self._take().text, (left, self._sum()))
        negated = self._says("NOT")
        if negated or self._word() == "IN":
            if not self._says("IN"):
                self._other()
            inside = al.Call("IN", (left, *self._list()))
            return al.Call("!", (inside,)) if negated else inside
        return left

    def _sum(self) -> al.Expression:
        return self._chained(("+", "-"), lambda: self._chained(("*", "/"), self._unary))

    def _unary(self) -> al.Expression:
        if self._skip("!"):
            return al.Call("!", (self._primary(),))
        return self._primary()

    def _primary(self) -> al.Expression:
        token = self._token
        if token.kind == "variable":
            return self._variable()
        if self._skip("("):
            expression = self._expression()
            self._must(")")
            return expression
        if token.kind == "word" and token.text not in ("true", "false"):
            return self._call()
        term = self._term()
        return self._other() if self._is("(") else term

    def _list(self) -> list[al.Expression]:
        """Arguments in brackets, at least one."""
        self._must("(")
        found = [self._expression()]
        while self._skip(","):
            found.append(self._expression())
        self._must(")")
        return found

    def _call(self) -> al.Expression:
        """EXISTS, an aggregate or a built-in function."""
        if self._says("EXISTS"):
            return al.Exists(self._group())
        if self._says("NOT"):
            return al.Call("!", (al.Exists(self._group()),)) if self._says("EXISTS") else self._other()
        name = self._word()
        if name in _AGGREGATES and self._aggregates is not None:
            self._at += 1
            return self._aggregate(name, self._aggregates)
        if name not in _BUILT_IN:
            self._other()
        self._at += 1
        least, most = _BUILT_IN[name]
        arguments = self._list()
        return al.Call(name, tuple(arguments)) if least <= len(arguments) <= most else self._other()

    def _aggregate(self, name: str, known: dict[al.Aggregate, al.Var]) -> al.Var:
        self._must("(")
        distinct = self._says("DISTINCT")
        argument = None if name == "COUNT" and self._skip("*") else self._expression()
        self._must(")")
        return known.setdefault(al.Aggregate(name, argument, distinct), al.Var(f".agg{len(known)}"))


def both(left: al.Expression, right: al.Expression) -> al.Expression:
    """Both hold."""
    return al.Call("&&", (left, right))


def join(left: al.Pattern, right: al.Pattern) -> al.Pattern:
    """Join, without identity operands (18.2.2.8)."""
    if left == EMPTY:
        return right
    return left if right == EMPTY else al.Join(left, right)
