"""The evaluators under test over one case, and whether what they give is one of the legal answers.

Numbers that an expression computed are compared by value (their lexical form is the implementation's), all other
terms as terms; language tags without regard to case.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import isclose

from streamgauge.incremental import SnapshotContents, Snapshots, UnsupportedError
from streamgauge.incremental.crossovers import BY_NUMBERS
from streamgauge.incremental.drivers.content import WindowContent
from streamgauge.incremental.plan import unheard
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.terms import Row, Triple
from streamgauge.query.instants import NOW_GRAPH, now_fact
from streamgauge.query.traversal import children, expressions
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.incremental.evaluation import Evaluator
from tests.sparql.simple.choices import ExpressionError
from tests.sparql.simple.drawn import Case
from tests.sparql.simple.patterns import Dataset, Legal, answers
from tests.sparql.simple.values import Computed, Number, is_literal, split, value

Evaluate = Callable[[Case], tuple[Row, ...] | None]
"""The rows of an evaluator, ``None`` where it refuses the query by name."""


def windows(dataset: Dataset) -> tuple[StreamWindow, ...]:
    """An unnamed window for the default graph, a named one for each other."""
    names = (None, *(name[1:-1] for name in dataset.named))
    return tuple(StreamWindow(f"urn:stream:{name or ''}", Window(1, 1), name) for name in names)


def by_definition(case: Case) -> tuple[Row, ...] | None:
    """The definition's rows."""
    over = windows(case.dataset)
    held = (case.dataset.default, *case.dataset.named.values())
    contents = tuple((Arrival(item.stream, 0, None, tuple(one)),) for item, one in zip(over, held, strict=True))
    query = ContinuousQuery(case.form, over)
    try:
        refuse(query, RSPQL)
        return Snapshot(query).at(0).rows(contents)
    except RefusedError:
        return None


def by_changes(case: Case) -> tuple[Row, ...] | None:
    """The incremental evaluator's rows, after half of the triples came first, and one more went again."""
    try:
        evaluator = Evaluator(case.form, names=tuple(case.dataset.named), ranked=True)
    except UnsupportedError:
        return None
    extra = (("<urn:a>", "<urn:p>", "<urn:gone>"),)
    evaluator.feeds(NOW_GRAPH)[0]((now_fact(0),))
    for name, triples in ((None, case.dataset.default), *case.dataset.named.items()):
        enter, leave = (evaluator.enter, evaluator.leave) if name is None else evaluator.feeds(name)
        enter(tuple(triples[: len(triples) // 2]) + extra)
        evaluator.settle()
        leave(extra)
        enter(tuple(triples[len(triples) // 2 :]))
        evaluator.settle()
    return _columns(case, evaluator.variables, evaluator.solutions())


def by_snapshots(case: Case, least: int = BY_NUMBERS) -> tuple[Row, ...] | None:
    """The rows of the incremental evaluator's operators over a whole content, by numbers from ``least`` triples on."""
    contents = SnapshotContents(again=True, least=least, in_columns=True)
    try:
        evaluator = Snapshots(case.form, contents, names=tuple(case.dataset.named), ranked=True)
    except UnsupportedError:
        return None
    for name, triples in ((None, case.dataset.default), *case.dataset.named.items()):
        contents.bind(name, content_of(triples))
    contents.bind(NOW_GRAPH, content_of([now_fact(0)]))
    contents.look()
    evaluator.settle()
    contents.release()
    return _columns(case, evaluator.variables, evaluator.solutions())


def content_of(triples: Iterable[Triple]) -> WindowContent:
    """A content that holds some triples."""
    content = WindowContent(unheard, unheard)
    content.enter(0, tuple(triples), None)
    return content


def _columns(case: Case, variables: Sequence[str], bag: object) -> tuple[Row, ...]:
    rows = tuple(Counter(bag).elements())  # type: ignore[call-overload]
    if not isinstance(case.form, al.Select):
        return rows
    at = [list(variables).index(name) for name in case.form.variables]
    return tuple(tuple(row[place] for place in at) for row in rows)


EVALUATORS: dict[str, Evaluate] = {
    "definition": by_definition,
    "changes": by_changes,
    "snapshots": by_snapshots,
    "numbers": partial(by_snapshots, least=0),
}


def legal_answers(case: Case) -> list[Legal]:
    """Every legal answer; OpenError where the specification leaves it open."""
    return list(answers(case.form, case.dataset, 60))


def agrees(legal: Sequence[Legal], rows: tuple[Row, ...]) -> bool:
    """Whether the rows are one of the legal answers."""
    return any(_matches(list(item.rows), list(rows)) for item in legal)


def _matches(wanted: list[Row], received: list[Row]) -> bool:
    """Whether the bags are equal: each wanted row takes a found one that is equal to it."""
    if len(wanted) != len(received):
        return False
    if not wanted:
        return True
    first, *others = wanted
    return any(
        _matches(others, received[:at] + received[at + 1 :])
        for at, row in enumerate(received)
        if row not in received[:at] and all(map(cell_matches, first, row))
    )


def cell_matches(wanted: str | None, received: str | None) -> bool:
    """Whether a term is the wanted one, a computed number by value."""
    if wanted == received:
        return True
    if wanted is None or received is None or not (is_literal(wanted) and is_literal(received)):
        return False
    one, other = split(wanted), split(received)
    if one[1:] != other[1:] and not (one[2] and one[2].lower() == other[2].lower()):
        return False
    if not isinstance(wanted, Computed):
        return one[0] == other[0]
    try:
        return _number_matches(value(wanted), value(received))
    except ExpressionError:
        return False


def _number_matches(wanted: object, received: object) -> bool:
    """Decimals to 18 places (F&O lets an implementation round there), floating numbers exactly."""
    if not isinstance(wanted, Number) or not isinstance(received, Number):
        return False
    if wanted.number != wanted.number:
        return received.number != received.number
    if isinstance(wanted.number, Fraction) and isinstance(received.number, Fraction):
        return abs(wanted.number - received.number) <= max(1, abs(wanted.number)) * Fraction(1, 10**17)
    return wanted.number == received.number or isclose(wanted.number, received.number, rel_tol=1e-15)


def smaller(case: Case) -> Iterator[Case]:
    """Cases with one part less."""
    data = case.dataset
    for at in range(len(data.default)):
        yield replace(case, dataset=replace(data, default=(*data.default[:at], *data.default[at + 1 :])))
    for name, triples in data.named.items():
        yield replace(case, dataset=replace(data, named={n: t for n, t in data.named.items() if n != name}))
        for at in range(len(triples)):
            fewer = (*triples[:at], *triples[at + 1 :])
            yield replace(case, dataset=replace(data, named={**data.named, name: fewer}))
    for pattern in _smaller_pattern(case.form.pattern, True):
        if isinstance(case.form, al.Select) and not _projects(pattern):
            continue
        form = replace(case.form, pattern=pattern)
        if isinstance(form, al.Select):
            form = replace(form, variables=tuple(var.name for var in al.pattern_variables(pattern)))
        yield replace(case, form=form)


def _projects(pattern: al.Pattern) -> bool:
    while isinstance(pattern, al.Slice | al.Distinct | al.Reduced):
        pattern = pattern.pattern
    return isinstance(pattern, al.Project)


def _smaller_pattern(pattern: al.Pattern, top: bool = False) -> Iterator[al.Pattern]:
    kept = isinstance(pattern, al.Project | al.Group | al.OrderBy | al.Slice) or _shows_aggregate(pattern)
    if not _shows_aggregate(pattern) and not (
        isinstance(pattern, al.Project) and isinstance(pattern.pattern, al.Extend | al.Group | al.OrderBy)
    ):
        yield from children(pattern)
    if isinstance(pattern, al.Project) and len(pattern.variables) > 1:
        for var in pattern.variables:
            yield replace(pattern, variables=tuple(variable for variable in pattern.variables if variable != var))
    if isinstance(pattern, al.BGP):
        for at in range(len(pattern.patterns)):
            yield al.BGP((*pattern.patterns[:at], *pattern.patterns[at + 1 :]))
        for at, triple in enumerate(pattern.patterns):
            if not isinstance(triple.predicate, str | al.Var):
                for path in _smaller_path(triple.predicate):
                    new = replace(triple, predicate=path)
                    yield al.BGP((*pattern.patterns[:at], new, *pattern.patterns[at + 1 :]))
    if isinstance(pattern, al.Values):
        for at in range(len(pattern.rows)):
            yield replace(pattern, rows=(*pattern.rows[:at], *pattern.rows[at + 1 :]))
    if not isinstance(pattern, al.BGP | al.Values) and not kept:
        yield al.BGP(())
    yield from _within(pattern)


def _shows_aggregate(pattern: al.Pattern) -> bool:
    tree = pattern.expression if isinstance(pattern, al.Extend) else None
    return isinstance(tree, al.Var) and tree.name.startswith(".")


def _smaller_path(path: object) -> Iterator[al.Path]:
    match path:
        case al.Inverse(path=inner) | al.Repeat(path=inner):
            yield inner
            yield from (replace(path, path=item) for item in _smaller_path(inner))
        case al.Sequence(steps=items) | al.Alternative(choices=items):
            yield from items


def _within(pattern: al.Pattern) -> Iterator[al.Pattern]:
    for name in ("left", "right", "pattern"):
        if hasattr(pattern, name):
            for item in _smaller_pattern(getattr(pattern, name)):
                yield replace(pattern, **{name: item})  # type: ignore[arg-type]
    for name in ("condition", "expression"):
        tree = getattr(pattern, name, None)
        if tree is not None:
            for item in _smaller_expression(tree):
                yield replace(pattern, **{name: item})  # type: ignore[arg-type]
    if isinstance(pattern, al.LeftJoin) and pattern.condition is not None:
        yield replace(pattern, condition=None)
    if isinstance(pattern, al.Group):
        for at, (var, aggregate) in enumerate(pattern.aggregates):
            for tree in () if aggregate.argument is None else _smaller_expression(aggregate.argument):
                new = (var, replace(aggregate, argument=tree))
                yield replace(pattern, aggregates=(*pattern.aggregates[:at], new, *pattern.aggregates[at + 1 :]))


def _smaller_expression(tree: al.Expression) -> Iterator[al.Expression]:
    match tree:
        case al.Call(operator=operator, arguments=arguments):
            if operator != "BOUND":
                yield from arguments
                for at, argument in enumerate(arguments):
                    for new in _smaller_expression(argument):
                        yield al.Call(operator, (*arguments[:at], new, *arguments[at + 1 :]))
            yield '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
        case al.Exists(pattern=pattern):
            yield '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
            yield from (al.Exists(item) for item in _smaller_pattern(pattern))


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that still fails, found by leaving out one part after the other."""
    while True:
        for item in smaller(case):
            if fails(item):
                case = item
                break
        else:
            return case


__all__ = ["EVALUATORS", "Triple", "agrees", "cell_matches", "expressions", "legal_answers", "shrunk", "smaller"]
