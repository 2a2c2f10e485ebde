"""Re-evaluation by columns: facts as tables of numbers in DuckDB, each query evaluated again after each change.

This is fast without being incremental. Patterns, UNION and FILTER regex are supported.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from streamgauge.formats.canonical import parse_term
from streamgauge.model import algebra as al
from streamgauge.model.extras import missing
from streamgauge.model.terms import RDF_TYPE, Row, Term, Triple
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import AnswerChange, Publication, Strategy
from streamgauge.servers.broker.evaluation import Evaluating
from streamgauge.suites.sepbm import UnusableSystemError
from streamgauge.suites.sepbm.adapters import Clock
from streamgauge.suites.sepbm.adapters.broker_inprocess import InProcessBroker

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ENDS: Final = ("s", "o")


@dataclass
class TermNumbers:
    """Terms as numbers, in order of appearance."""

    numbers: dict[Term, int] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)

    def number(self, term: Term) -> int:
        """The number of a term, a new one for a new term."""
        number_ = self.numbers.get(term)
        if number_ is None:
            number_ = self.numbers[term] = len(self.terms)
            self.terms.append(term)
        return number_


class _Table(NamedTuple):
    """The table of the facts of a class (subjects) or a property (pairs)."""

    name: str
    columns: tuple[str, ...]


class FactTables:
    """Facts and terms in a database."""

    def __init__(self, database: "DuckDBPyConnection") -> None:
        self.database, self.dictionary = database, TermNumbers()
        self._tables: dict[tuple[Term, Term | None], _Table] = {}
        self._said = 0
        database.execute("CREATE TABLE term (id BIGINT, text VARCHAR)")

    def of(self, predicate: Term, end: Term | None) -> _Table:
        """The table of a property, or with ``end`` of a class, created empty if it is new."""
        # A class has a table of its own: a query names its classes, and would scan the members of all others too.
        key = predicate, end if predicate == RDF_TYPE else None
        table = self._tables.get(key)
        if table is None:
            table = _Table(f"t{len(self._tables)}", _ENDS[:1] if predicate == RDF_TYPE else _ENDS)
            self._tables[key] = table
            self.database.execute(
                f"CREATE TABLE {table.name} ({', '.join(f'{column} BIGINT' for column in table.columns)})"
            )
        return table

    def insert(self, triples: Iterable[Triple]) -> None:
        """Insert facts that are not stored."""
        for table, rows in self._grouped(triples):
            columns = {
                name: pa.array(column) for name, column in zip(table.columns, zip(*rows, strict=True), strict=True)
            }
            self._append(table.name, pa.table(columns))
        self._say()

    def remove(self, triples: Iterable[Triple]) -> None:
        """Delete facts that are stored."""
        for table, rows in self._grouped(triples):
            listed = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
            self.database.execute(f"DELETE FROM {table.name} WHERE ({', '.join(table.columns)}) IN (VALUES {listed})")

    def _grouped(self, triples: Iterable[Triple]) -> Iterator[tuple[_Table, list[tuple[int, ...]]]]:
        number = self.dictionary.number
        placed = [
            (self.of(predicate, end), (number(subject), number(end))) for subject, predicate, end in triples
        ]  # fmt: skip
        # `groupby` joins neighbours only.
        placed.sort(key=lambda item: item[0].name)
        for table, rows_of_table in groupby(placed, key=lambda item: item[0]):
            yield table, [row[: len(table.columns)] for _, row in rows_of_table]

    def _say(self) -> None:
        """Store the texts of new terms, for conditions."""
        terms, first = self.dictionary.terms, self._said
        if first < len(terms):
            self._said = len(terms)
            texts = [_text(term) for term in terms[first:]]
            self._append("term", pa.table({"id": range(first, len(terms)), "text": pa.array(texts, pa.string())}))

    def _append(self, name: str, rows: pa.Table) -> None:
        self.database.register("rows", rows)
        self.database.execute(f"INSERT INTO {name} SELECT * FROM rows")
        self.database.unregister("rows")


def _text(term: Term) -> str | None:
    """The text of a literal that a condition tests; ``None`` for other terms."""
    if term[0] != '"':
        return None
    return term[1:-1] if term[-1] == '"' and "\\" not in term else str(getattr(parse_term(term), "value", ""))


def statement(tables: FactTables, form: al.QueryForm) -> str:
    """Translate a SELECT to SQL with one column per variable and distinct rows; ValueError for an unsupported part."""
    if not isinstance(form, al.Select):
        raise ValueError("the strategy columns evaluates SELECT queries only")
    pattern = form.pattern
    while isinstance(pattern, al.Project | al.Distinct):
        pattern = pattern.pattern
    inner, there = _sql(tables, pattern)
    if absent := [name for name in form.variables if name not in there]:
        raise ValueError(f"?{absent[0]} is never bound: leave it out to evaluate by columns")
    return f"SELECT DISTINCT {_columns(form.variables)} FROM ({inner})"


def _columns(variables: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in variables)


def _sql(tables: FactTables, pattern: al.Pattern) -> tuple[str, tuple[str, ...]]:
    """A pattern as SQL, and its columns."""
    match pattern:
        case al.BGP(patterns=patterns) if patterns:
            return _joined(tables, patterns)
        case al.Union(left=left, right=right):
            (one, columns), (two, others) = _sql(tables, left), _sql(tables, right)
            both = [name for name in columns if name in others]
            # Columns that only one side binds are left out: `statement` refuses a query that selects one of them.
            chosen = _columns(both)
            return f"SELECT {chosen} FROM ({one}) UNION ALL SELECT {chosen} FROM ({two})", tuple(both)
        case al.Filter(condition=al.Call("REGEX", (al.Var(name), str(text))), pattern=inner):
            inner_sql, columns = _sql(tables, inner)
            condition = f"regexp_matches(term.text, {_quoted(_text(text) or '')})"
            return (
                f'SELECT {_columns(columns)} FROM ({inner_sql}) JOIN term ON term.id = "{name}" WHERE {condition}',
                columns,
            )
    raise ValueError(f"{type(pattern).__name__} is not evaluated by columns: only patterns, UNION and FILTER regex are")


def _joined(tables: FactTables, patterns: Sequence[al.TriplePattern]) -> tuple[str, tuple[str, ...]]:
    # A worked example: `?x a ub:Student . ?x ub:takes ?c`, where t0 has the students and t1 the pairs of `takes`:
    #
    #     SELECT j0.s AS "x", j1.o AS "c" FROM t0 j0, t1 j1 WHERE j1.s = j0.s
    bound: dict[str, str] = {}
    sources, conditions = [], []
    for place, pattern in enumerate(patterns):
        table = _table(tables, pattern)
        sources.append(f"{table.name} j{place}")
        for name, node in zip(table.columns, (pattern.subject, pattern.object), strict=False):
            column = f"j{place}.{name}"
            if not isinstance(node, al.Var):
                conditions.append(f"{column} = {tables.dictionary.number(node)}")
            elif bound.setdefault(node.name, column) != column:
                conditions.append(f"{column} = {bound[node.name]}")
    chosen = ", ".join(f'{column} AS "{name}"' for name, column in bound.items())
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {chosen} FROM {', '.join(sources)}{where}", tuple(bound)


def _table(tables: FactTables, pattern: al.TriplePattern) -> _Table:
    predicate, end = pattern.predicate, pattern.object
    if not isinstance(predicate, str):
        raise ValueError("a variable or a path for a property is not evaluated by columns: name the property")
    if predicate == RDF_TYPE and not isinstance(end, str):
        raise ValueError("a variable for a class is not evaluated by columns: name the class")
    return tables.of(predicate, end if isinstance(end, str) else None)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class _ChannelTable:
    """A query as SQL, and the table that has its answer."""

    statement: str
    answer: str
    variables: tuple[str, ...]


class ColumnStrategy(Evaluating):
    """A broker's strategy: after each step every query is evaluated again and compared with its last answer."""

    complete = True

    def __init__(self, rules: Rules, database: "DuckDBPyConnection") -> None:
        super().__init__(rules)
        self._closure, self._tables, self._database = self.stored.closure, FactTables(database), database
        self._asked: dict[str, _ChannelTable] = {}
        self._loaded = False

    def load(self, triples: Iterable[Triple]) -> None:
        """Insert many facts with their consequences."""
        there = set(self._closure.facts.match(None, None, None)) if self._loaded else set()
        self._closure.load(triples)
        self._loaded = True
        self._tables.insert(fact for fact in self._closure.facts.match(None, None, None) if fact not in there)

    def create(self, channel: str, form: al.QueryForm, prepared: object = None) -> tuple[str, ...]:  # noqa: ARG002
        """Register a query; ValueError for an unsupported part of it."""
        text = statement(self._tables, form)
        variables = form.variables if isinstance(form, al.Select) else ()
        table = self._asked[channel] = _ChannelTable(text, f"a{channel}", variables)
        self._database.execute(f"CREATE TABLE {table.answer} AS {text}")
        return variables

    def drop(self, channel: str) -> None:
        """Stop evaluating the channel's query."""
        self._database.execute(f"DROP TABLE {self._asked.pop(channel).answer}")

    def rows(self, channel: str) -> Iterable[Row]:
        """The rows of an answer."""
        return self._terms(f"SELECT * FROM {self._asked[channel].answer}")

    def size(self, channel: str) -> int:
        """The number of rows of an answer."""
        (row,) = self._database.execute(f"SELECT count(*) FROM {self._asked[channel].answer}").fetchall()
        return int(row[0])

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """The differences after several publications, any of which may be the cause."""
        changed = [self._change(publication) for publication in publications]
        if any(changed):
            causes = tuple(publication.number for publication in publications)
            for name, question in self._asked.items():
                added, removed = self._differences(question)
                if added or removed:
                    yield AnswerChange(name, causes, added, removed)

    def _change(self, publication: Publication) -> bool:
        came, went = self._closure.change(publication.added, publication.removed)
        if went:
            self._tables.remove(went)
        if came:
            self._tables.insert(came)
        return bool(came or went)

    def _differences(self, table: _ChannelTable) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """Evaluate a query again; rows are fetched only if the answer changed."""
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS {table.statement}")
        added = self._terms(f"SELECT * FROM fresh EXCEPT SELECT * FROM {table.answer}")
        count = f"SELECT (SELECT count(*) FROM fresh), (SELECT count(*) FROM {table.answer})"
        ((now, before),) = self._database.execute(count).fetchall()
        removed: tuple[Row, ...] = ()
        # Answers are sets: if no row has left, there are as many as before and the added ones, and the second EXCEPT
        # is saved.
        if before + len(added) != now:
            removed = self._terms(f"SELECT * FROM {table.answer} EXCEPT SELECT * FROM fresh")
        if added or removed:
            self._database.execute(f"CREATE OR REPLACE TABLE {table.answer} AS SELECT * FROM fresh")
        return added, removed

    def _terms(self, query: str) -> tuple[Row, ...]:
        terms = self._tables.dictionary.terms
        return tuple([tuple([terms[cell] for cell in row]) for row in self._database.execute(query).fetchall()])

    def evaluate(self, now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """Nothing: no evaluation is deferred."""
        return iter(())


ABOUT: Final = "all queries evaluated again by columns, in DuckDB (needs the extra `columns`)"
OPTIONS: Final[Mapping[str, str]] = {}


def start(_options: Mapping[str, str], clock: Clock) -> InProcessBroker:
    """A broker whose queries DuckDB evaluates; UnusableSystemError if it is not installed."""
    if lack := missing("columns"):
        raise UnusableSystemError(lack)
    import duckdb

    def make(rules: Rules) -> Strategy:
        return ColumnStrategy(rules, duckdb.connect(":memory:"))

    return InProcessBroker(make, None, None, clock)
