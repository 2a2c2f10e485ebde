"""Rows for which implementations may decide a FILTER or HAVING either way (docs/semantics.md, terms and numbers).

``bounds.py`` finds the reports that may have such rows, ``latitude.py`` says for each which readings of its content
are possible: rows that only some of them have are undecided. Queries without a comparison of computed numbers have
none.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import R2S, Counting, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.expected.reports import ContentInspection, Expect, Look, expected_reports, together
from streamgauge.oracle.judging import choices
from streamgauge.oracle.judging.bounds import DecidableContents, Narrowed, bounded
from streamgauge.oracle.judging.choices import Operands, is_beyond
from streamgauge.oracle.judging.compare import computed_columns, exact_terms, fits, has_blanks
from streamgauge.oracle.judging.cuts import every_instant, whole
from streamgauge.oracle.judging.intervals import INTERVAL, OpenError, own
from streamgauge.oracle.judging.latitude import BINARY, COMPARISONS, STORED, Latitude, Possible
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_expression, every_pattern, expression_parts, expressions, parts
from streamgauge.semantics.arrivals import Contents
from streamgauge.semantics.definition import operator, streamed
from streamgauge.semantics.refusal import RefusedError

_TESTS: Final = frozenset({"BOUND", "SAMETERM", "ISIRI", "ISBLANK", "ISLITERAL", "DATATYPE", "LANG", "LANGMATCHES"})
_TEXTS: Final = frozenset({"STR", "STRLEN", "CONTAINS", "STRSTARTS", "STRENDS", "REGEX"})
"""Functions that read no number's value."""
_KNOWN: Final = COMPARISONS | BINARY | _TESTS | _TEXTS | {"&&", "||", "!", "IN"}
_SPINE: Final = (a.Project, a.Distinct, a.Reduced, a.OrderBy, a.Extend, a.Filter, a.Group)

MOST_PAIRED: Final = 300
"""Rows of a report, beside equal ones, for which partners are sought."""


class LimitedIntegers:
    """A query's answers by implementations that support integers of 18 digits only, over one content after another.

    They may raise an error for larger integers, or compute modulo their largest integer (F&O, 6.2). The query is
    evaluated for all of them at once: a comparison with such an integer may hold or not, as in ``latitude.py``, and a
    sum, difference or product becomes a literal that stands for the exact value, that value modulo 2^n (n from 61 to
    128), and an error:

        FILTER(?v > 5) over 2^63, 6, 5      possible: the rows of 2^63 and 6; certain: the row of 6; wrong: the row of 5
        SUM over 2^63 - 1 and 1             2^63, -2^63 or unbound; 2^63 - 1 is wrong

    Where an operation on such integers is none of these, or computed integers are joined, grouped or made distinct,
    no answer is excluded.
    """

    def __init__(self, query: ContinuousQuery, semantics: Semantics) -> None:
        self._columns = computed_columns(query.form)
        self._distinct = any(isinstance(each, a.Distinct) for each in every_pattern(query.form.pattern))
        self._fragile = _is_fragile(query.form.pattern)
        self._as_sets = semantics.answers is Counting.SET
        self._latitude: Latitude | None = None
        if isinstance(query.form, a.Select) and _is_decidable(query.form.pattern):
            form = replace(query.form, pattern=_hooked(query.form.pattern))
            self._latitude = Latitude(replace(query, form=form, sparql=sparql(form)), semantics, limited=True)

    def exclude(self, contents: Contents, said: Collection[Row]) -> bool:
        """Whether no implementation may send these rows for a content; ``False`` where that cannot be told."""
        if self._latitude is None:
            return False
        try:
            found = self._latitude.possible(contents)
        except (OpenError, RefusedError):
            return False
        if self._fragile and found.loose is not found.tight:
            return False
        if self._as_sets:
            found, said = Possible(*(tuple(dict.fromkeys(each)) for each in (found.loose, found.tight))), set(said)
        if not self._tells(found, said):
            return False
        rows = tuple(said)  # every row sent is to be a possible one, and every certain row is to be sent
        return not (self._all_fit(rows, found.loose) and self._all_fit(found.tight, rows))

    def _tells(self, found: Possible, said: Collection[Row]) -> bool:
        """Whether the possible answers are those between the tight and the loose one."""
        if (self._distinct or self._as_sets) and any(
            is_beyond(row[place]) for row in found.loose for place in self._columns
        ):
            return False
        return not has_blanks(said) and not has_blanks(found.loose)

    def _all_fit(self, rows: Sequence[Row], others: Sequence[Row]) -> bool:
        """Whether each row can be paired with one of the others; ``True`` also where too many are left to be paired.

        Equal rows first: whatever fits such a row fits all that its partner fits. Then row by row, along augmenting
        paths (Kuhn's algorithm).
        """
        wanted, given = Counter(rows), Counter(others)
        left, free = tuple((wanted - given).elements()), tuple((given - wanted).elements())
        if len(left) > MOST_PAIRED:
            return True
        places: dict[Row, list[int]] = defaultdict(list)
        for place, other in enumerate(free):
            places[exact_terms(other, self._columns)].append(place)
        taken: dict[int, int] = {}

        def is_paired(row: int, tried: set[int]) -> bool:
            fitting = [
                place for place in places[exact_terms(left[row], self._columns)] if self._fits(left[row], free[place])
            ]
            for place in sorted(fitting, key=taken.__contains__):
                if place not in tried:
                    tried.add(place)
                    if place not in taken or is_paired(taken[place], tried):
                        taken[place] = row
                        return True
            return False

        return all(is_paired(row, set()) for row in range(len(left)))

    def _fits(self, row: Row, other: Row) -> bool:
        return len(row) == len(other) and all(
            fits(row[place], other[place]) or fits(other[place], row[place]) for place in self._columns
        )


def _is_decidable(pattern: a.Pattern) -> bool:
    """Whether computed integers go into filters and the answer only, by operations whose outcomes are known."""
    spine = list(_spine(pattern))
    inner = [each for each in every_pattern(pattern) if not any(each is one for one in spine)]
    if any(isinstance(each, a.Slice | a.Extend | a.Group | a.Project) for each in inner):
        return False
    trees = [tree for each in every_pattern(pattern) for tree in expressions(each)]
    calls = (part for tree in trees for part in every_expression(tree) if isinstance(part, a.Call))
    return all(call.operator.upper() in _KNOWN for call in calls) and not any(
        map(_tests_variable, _conditions(pattern))
    )


def _spine(pattern: a.Pattern) -> Iterator[a.Pattern]:
    """The modifiers, filters and values that stand around the pattern of a query."""
    while isinstance(pattern, _SPINE):
        yield pattern
        pattern = pattern.pattern


def _conditions(pattern: a.Pattern) -> Iterator[a.Expression]:
    for each in every_pattern(pattern):
        if isinstance(each, a.Filter | a.LeftJoin) and each.condition is not None:
            yield each.condition


def _tests_variable(condition: a.Expression) -> bool:
    """Whether a condition takes the effective boolean value of a variable."""
    match condition:
        case a.Var():
            return True
        case a.Call(operator="&&" | "||" | "!", arguments=arguments):
            return any(map(_tests_variable, arguments))
        case _:
            return False


def _is_fragile(pattern: a.Pattern) -> bool:
    """Whether a doubtful comparison may change other rows than its own: below a grouping, or in an OPTIONAL."""
    for each in every_pattern(pattern):
        match each:
            case a.Group(pattern=inner) if any(True for _ in _conditions(inner)):
                return True
            case a.LeftJoin(right=right, condition=own) if own is not None or any(True for _ in _conditions(right)):
                return True
    return False


def _hooked(pattern: a.Pattern) -> a.Pattern:
    """The pattern with every comparison, MIN and MAX of stored terms as one of computed ones."""
    result = parts(pattern, _hooked, _hooked_expression)
    if not isinstance(result, a.Group):
        return result
    return replace(
        result, aggregates=tuple((variable, _hooked_aggregate(each)) for variable, each in result.aggregates)
    )


def _hooked_aggregate(each: a.Aggregate) -> a.Aggregate:
    if each.argument is None or each.function not in ("MIN", "MAX"):
        return each
    return replace(each, argument=a.Call(STORED, (each.argument,)))


def _hooked_expression(tree: a.Expression) -> a.Expression:
    match expression_parts(tree, _hooked, _hooked_expression):
        case a.Call(operator=operator, arguments=(first, *others)) if operator in COMPARISONS or operator == "IN":
            return a.Call(operator, (a.Call(STORED, (first,)), *others))
        case result:
            return result


@dataclass(frozen=True, slots=True)
class Doubt:
    """The undecided part of one expected report: ``rows`` is a bag; ``silent`` when it may not be due at all."""

    rows: tuple[Row, ...] = ()
    silent: bool = False


CERTAIN = Doubt()


class Possibilities:
    """The possible answers of the reports of one stream under one t0, each computed when it is asked for."""

    def __init__(self, look: Callable[[], Look], query: ContinuousQuery, semantics: Semantics) -> None:
        self._looking = cache(look)
        bare = whole(query)
        asked = bare.query if bare is not None else query
        self._semantics = semantics
        self._latitude: Callable[[], Latitude] = cache(lambda: Latitude(asked, semantics))
        self._narrowed: Callable[[], Narrowed] = cache(lambda: Narrowed(query))
        self._decidable: Callable[[], DecidableContents] = cache(lambda: DecidableContents(query))
        self._operands = Operands(query.form)
        self._limits: Callable[[], LimitedIntegers] = cache(lambda: LimitedIntegers(query, semantics))
        self._known: dict[DueReport, Possible | str] = {}

    def _look(self, due: DueReport) -> Contents:
        return self._looking()(due)

    def of(self, due: DueReport) -> Possible:
        """Both readings of a report's content; OpenError with the reason where intervals cannot tell."""
        if due not in self._known:
            self._known[due] = self._computed(due)
        found = self._known[due]
        if isinstance(found, str):
            raise OpenError(found)
        return found

    def certain(self, due: DueReport) -> bool:
        """Whether nothing of a report's content is open to intervals, so that ``of`` raises no error."""
        return self._decidable().include(self._look(due))

    def near(self, due: DueReport, rows: Sequence[Row], computed: frozenset[int], *coarse: Sequence[Row]) -> Possible:
        """Both readings, in terms: ``rows`` of the plain answer but where the ``coarse`` readings differ from them.

        OpenError with the reason where intervals cannot tell.
        """
        narrowed = self._narrowed()
        query = None
        if narrowed.possible and self.certain(due):
            keys = {narrowed.key(row) for row in _differing(rows, *coarse)}
            query = narrowed.to(keys)
        if query is None:
            return _named(self.of(due), rows, computed)
        sides: tuple[list[Row], list[Row]] = [], []
        for row in rows:
            sides[narrowed.key(row) in keys].append(row)
        far, inside = map(tuple, sides)
        found = _named(Latitude(query, self._semantics).possible(self._look(due)), inside, computed)
        return Possible((*far, *found.loose), (*far, *found.tight))

    def refuse(self, due: DueReport) -> None:
        """OpenError where the query reads numbers that implementations need not support."""
        for inside in self._look(due):
            for arrival in inside:
                self._operands.refuse(arrival.triples)

    def exclude(self, due: DueReport, said: Sequence[Row]) -> bool:
        """Whether rows are wrong for a report by all implementations, whatever numbers they support."""
        return self._limits().exclude(self._look(due), said)

    def _computed(self, due: DueReport) -> Possible | str:
        try:
            return self._latitude().possible(self._look(due))
        except (OpenError, RefusedError) as error:
            return str(error)


def possibilities(expect: Expect, query: ContinuousQuery, semantics: Semantics, t0: int) -> Possibilities | None:
    """The possible answers of what ``expect`` gives; ``None`` where it does not show the contents."""
    if not isinstance(expect, ContentInspection):
        return None
    return Possibilities(lambda: expect.look(query, semantics, t0), query, semantics)


Rows = Mapping[DueReport, tuple[Row, ...]]


def doubts(
    expect: Expect,
    query: ContinuousQuery,
    semantics: Semantics,
    advanced_to: int,
    t0: int,
    possible: Possibilities | None,
) -> tuple[tuple[ExpectedReport, ...], list[Doubt]]:
    """The expected reports without undecided rows, and beside each what is undecided about it; times in ms."""
    forms = bounded(query.form)
    if forms is None or isinstance(query.form.pattern, a.Slice):
        plain = expect(query, semantics, advanced_to, t0)
        return plain, [CERTAIN] * len(plain)
    every, plainly = every_instant(query, semantics), replace(query, r2s=R2S.RSTREAM)
    moved = [(replace(plainly, form=form, sparql=sparql(form)), every) for form in forms]
    asked = [(query, semantics), (plainly, every)][: 1 if every == semantics else 2]
    found = together(expect, [*asked, *moved], advanced_to, t0)
    plain, base, coarse = found[0], found[len(asked) - 1], found[len(asked) :]
    bags = {report.due: report.rows for report in base}
    near: list[Rows] = [{report.due: report.rows for report in one} for one in coarse]
    readings = _readings(bags, near, possible, computed_columns(query.form))
    if all(reading == bags for reading in readings):
        return plain, [CERTAIN] * len(plain)
    sizes, r2s = {report.due: report.content for report in base}, operator(query, semantics)
    others = [expected_reports(streamed(reading.items(), r2s, semantics), sizes, query, r2s) for reading in readings]
    return _agreed([plain, *others])


def _readings(
    plain: Rows, near: Sequence[Rows], possible: Possibilities | None, computed: frozenset[int]
) -> list[Rows]:
    """The loose and the tight reading of every instant, exact where the coarse ones differ."""
    loose, tight = dict(near[0]), dict(near[1])
    for due, rows in plain.items():
        found: Possible | None = Possible(loose[due], tight[due])
        if not _alike(loose[due], tight[due], rows) and possible is not None:
            found = _exact(possible, due, rows, computed, loose[due], tight[due])
        if found is None or _alike(found.loose, found.tight, rows):
            loose[due] = tight[due] = rows
        else:
            loose[due], tight[due] = found.loose, found.tight
    return [loose, tight]


def _alike(first: Sequence[Row], *others: Sequence[Row]) -> bool:
    if all(other == first for other in others):
        return True
    counted = Counter(first)
    return all(Counter(other) == counted for other in others)


def _differing(*bags: Sequence[Row]) -> set[Row]:
    """The rows that some bags have more often than others."""
    counted = [Counter(bag) for bag in bags]
    return {row for row in set().union(*counted) if len({count[row] for count in counted}) > 1}


def _exact(
    possible: Possibilities, due: DueReport, rows: Sequence[Row], computed: frozenset[int], *coarse: Sequence[Row]
) -> Possible | None:
    """Both readings, ``None`` where intervals cannot tell: what is compared with the plain answer is then unknown."""
    try:
        return possible.near(due, rows, computed, *coarse)
    except OpenError:
        return None


def _named(found: Possible, plain: Sequence[Row], computed: frozenset[int]) -> Possible:
    loose = named(found.loose, plain, computed)
    return Possible(loose, loose if found.tight is found.loose else named(found.tight, plain, computed))


def named(rows: Iterable[Row], plain: Sequence[Row], computed: frozenset[int]) -> tuple[Row, ...]:
    """Rows with interval literals as rows of terms: those of the plain answer that fit, else SPARQL's own value."""
    left = Counter(plain)
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in left:
        groups[exact_terms(row, computed)].append(row)
    found: list[Row] = []
    for row in rows:
        term = row if left[row] > 0 else _fitting(row, groups[exact_terms(row, computed)], left, computed)
        left[term] -= 1
        found.append(term)
    return tuple(found)


def _fitting(row: Row, others: Sequence[Row], left: Counter[Row], computed: frozenset[int]) -> Row:
    for other in others:
        if left[other] > 0 and all(fits(row[place], other[place]) for place in computed):
            return other
    return tuple(map(_own, row))


def _own(term: Term | None) -> Term | None:
    if choices.is_open(term):
        return choices.one_of(term or "")
    return own(term) if term and INTERVAL in term else term


def _agreed(versions: Sequence[Sequence[ExpectedReport]]) -> tuple[tuple[ExpectedReport, ...], list[Doubt]]:
    found: list[tuple[ExpectedReport, Doubt]] = []
    bags: list[dict[DueReport, ExpectedReport]] = [{report.due: report for report in one} for one in versions]
    every = {report.due: report for one in reversed(versions) for report in one}
    for due in sorted(every, key=lambda due: (due.instant, due.seen)):
        counted = [Counter(bag[due].rows) if due in bag else Counter[Row]() for bag in bags]
        certain, possible = counted[0].copy(), counted[0].copy()
        for other in counted[1:]:
            certain &= other
            possible |= other
        rest = possible - certain
        doubt = Doubt(tuple(rest.elements()), any(due not in bag for bag in bags))
        found.append((replace(every[due], rows=tuple(certain.elements())), doubt))
    return tuple(report for report, _ in found), [doubt for _, doubt in found]
