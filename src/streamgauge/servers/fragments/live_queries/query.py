"""A live query: its form, and its ORDER BY and LIMIT apart from the part that is evaluated incrementally."""

from dataclasses import dataclass

from streamgauge.incremental import Bag, refuse
from streamgauge.incremental.operators import add_all, difference
from streamgauge.incremental.query_forms import apart, columns, shape, wanted
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model import algebra as al
from streamgauge.model.answer import AnswerKind
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Row, Term
from streamgauge.query import QueryError, parse_sparql, recognised
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import every_pattern
from streamgauge.spark.term_order import places
from streamgauge.sparql.expression import row_expression


class RefusedQueryError(MistakeError, ValueError):
    """A query that is not kept current; the sentence names what of it and says what to do."""


@dataclass(frozen=True, slots=True)
class AnswerOrder:
    """ORDER BY, LIMIT and OFFSET of a query as a whole: ``keys`` over the columns of what is kept, and DISTINCT."""

    keys: tuple[tuple[al.Expression, bool], ...]
    offset: int
    limit: int | None
    distinct: bool

    def sorted(self, rows: list[Row], names: tuple[str, ...]) -> list[Row]:
        """Rows over ``names`` in order; what SPARQL leaves open is decided by the rows' texts."""
        cells = [map(row_expression(key, names), rows) for key, _ in self.keys]
        keys: list[Row] = list(zip(*cells, strict=True)) if cells else [()] * len(rows)
        stand = places(keys, [down for _, down in self.keys])
        return [rows[at] for at in sorted(range(len(rows)), key=lambda at: (stand[at], repr(rows[at])))]


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query form; ``kept`` is the part without order, ``order`` what is done with its rows (``None``: nothing).

    Without LIMIT the order matters to whole answers only.
    """

    form: al.QueryForm
    kept: al.QueryForm
    order: AnswerOrder | None

    @property
    def kind(self) -> AnswerKind:
        """The kind of the answers."""
        match self.form:
            case al.Ask():
                return "boolean"
            case al.Construct():
                return "triples"
            case _:
                return "solutions"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the answers."""
        return columns(self.form)


def live_query(query: str | al.QueryForm) -> LiveQuery:
    """The query understood; QueryError for what is no SPARQL, RefusedQueryError for what is not kept current."""
    form = _parsed(query) if isinstance(query, str) else query
    if uses_timestamp(form):
        raise RefusedQueryError("timestamp(): it is of streams; facts have times of their own, leave it out")
    result = _apart(form)
    if why := refuse(result.kept, _names(form.pattern)):
        raise RefusedQueryError(why)
    return result


def _parsed(query: str) -> al.QueryForm:
    try:
        return parse_sparql(query)
    except QueryError as error:
        if (dialect := recognised(query)) is None:
            raise
        said = f"this query ({dialect}) has windows over streams: `streamgauge query` answers it"
        raise RefusedQueryError(f"{said}; what is kept current over Linked Data has none") from error


def _names(pattern: al.Pattern) -> tuple[Term, ...]:
    """Names of graphs under which all of a query is looked at: those that it says, and another one."""
    graphs = [each.name for each in every_pattern(pattern) if isinstance(each, al.Graph)]
    return (*dict.fromkeys(name for name in graphs if not isinstance(name, al.Var)), "<urn:streamgauge:any>")


def _apart(form: al.QueryForm) -> LiveQuery:
    try:
        kept, cut = apart(form)
    except UnsupportedError as error:
        raise RefusedQueryError(str(error)) from error
    return LiveQuery(form, kept, None if cut is None else AnswerOrder(cut.keys, cut.offset, cut.limit, cut.distinct))


class OrderedAnswer:
    """From the bag of what is kept to the answer: in order, cut, shaped."""

    def __init__(self, asked: LiveQuery, order: AnswerOrder) -> None:
        self._order, self._kept = order, wanted(asked.kept)
        self._names = wanted(asked.form)
        self._shape = shape(asked.form, self._names)
        self._cut: Bag = {}
        self._shown: Bag = {}

    def answer(self, bag: Bag) -> Bag:
        """The answer, solutions in order each where it stands first, what is kept being this bag now."""
        rows = self._order.sorted([row for row, count in bag.items() for _ in range(count)], self._kept)
        shown = [row[: len(self._names)] for row in rows]
        if self._order.distinct:
            shown = list(dict.fromkeys(shown))
        cut: Bag = {}
        for row in shown[self._order.offset :][: self._order.limit]:
            cut[row] = cut.get(row, 0) + 1
        if self._shape is None:
            return cut
        add_all(self._shown, self._shape.change(difference(cut, self._cut)))
        self._cut = cut
        return dict(self._shown)
