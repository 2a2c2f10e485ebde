"""Comparing bags of rows: terms exactly, computed numbers by value (SEMANTICS, terms and numbers)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import chain, pairwise
from operator import itemgetter
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.report import TiePool
from streamgauge.model.terms import XSD, Row, Term, datatype
from streamgauge.oracle.judging import choices, intervals
from streamgauge.oracle.judging.choices import legal

CHOICES = 10_000
"""How many choices the exact search of one component may try."""


Computed = Mapping[int, Mapping[Term | None, Term | None]]
"""Columns of computed terms, each with the terms that stand there for others when blank nodes are told apart."""


def renamed(expected: Sequence[Row], actual: Sequence[Row], computed: Computed | None = None) -> tuple[Row, ...]:
    """The actual rows with the expected rows' blank nodes, so that as much as possible is equal.

    Rows that share blank nodes are a component. Components are told apart by colour refinement and matched exactly, by
    a bounded search where refinement leaves a choice; the remaining ones are paired as alike as possible.

    A blank node without a counterpart gets a name that no expected row has.
    """
    if not has_blanks(actual):
        return tuple(actual)
    names = _matching(_known(expected, computed or {}), _known(actual, computed or {}))
    fresh = iter(range(len(actual) * max(map(len, actual))))

    def name(term: Term | None) -> Term | None:
        if term is None or not term.startswith("_:"):
            return term
        if term not in names:
            names[term] = f"_:only-received-{next(fresh)}"
        return names[term]

    return tuple(tuple(map(name, row)) for row in actual)


_initial: Final = itemgetter(0)


def has_blanks(rows: Iterable[Row]) -> bool:
    """Whether some row holds a blank node: the only terms that begin with ``_``."""
    return "_" in map(_initial, filter(None, chain.from_iterable(rows)))


def _known(rows: Iterable[Row], computed: Computed) -> list[Row]:
    """The rows with blank nodes by which these are told apart."""
    known = (
        tuple(computed[i].get(term, term) if i in computed else term for i, term in enumerate(row)) for row in rows
    )
    return [row for row in known if has_blanks((row,))]


def _alike_numbers(rows: Sequence[Row], computed: frozenset[int]) -> Computed:
    """For each computed column one number for all that may be equal: neighbours in order that are close."""
    found: dict[int, dict[Term | None, Term | None]] = {}
    for place in computed:
        numbers = {(value, row[place]) for row in rows if (value := number(row[place])) is not None}
        found[place] = {}
        for (_, before), (_, term) in pairwise(sorted(numbers)):
            found[place][term] = found[place].get(before, before) if close(before, term) else term
    return found


def _blanks(row: Row) -> Iterator[Term]:
    return (term for term in row if term is not None and term.startswith("_:"))


Colours = dict[Term, int]


@dataclass
class _Palette:
    """Numbers for colours, the same number for the same thing on both sides."""

    numbers: dict[object, int] = field(default_factory=dict)
    choices: int = CHOICES

    def number(self, thing: object) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))


class _Component:
    """Rows held together by blank nodes, with the colours of each round of refinement."""

    def __init__(self, rows: list[Row], palette: _Palette) -> None:
        self.rows = rows
        self.of: dict[Term, list[Row]] = defaultdict(list)
        for row in rows:
            for blank in set(_blanks(row)):
                self.of[blank].append(row)
        self.history = self.refined(dict.fromkeys(self.of, 0), palette)
        self.signature = tuple(sorted(self.history[-1].values()))

    def refined(self, colours: Colours, palette: _Palette) -> list[Colours]:
        """The colours after each round, until a round tells no more blank nodes apart."""
        rounds = [colours]
        while True:
            last = rounds[-1]
            now = {blank: palette.number((last[blank], self._seen(blank, last, palette))) for blank in self.of}
            rounds.append(now)
            if len(set(now.values())) == len(set(last.values())):
                return rounds

    def _seen(self, blank: Term, colours: Colours, palette: _Palette) -> tuple[int, ...]:
        return tuple(sorted(palette.number(_pattern(row, blank, colours)) for row in self.of[blank]))


def _pattern(row: Row, blank: Term, colours: Colours) -> tuple[object, ...]:
    return tuple(True if term == blank else colours.get(term, term) if term else term for term in row)


def _components(rows: Sequence[Row], palette: _Palette) -> list[_Component]:
    parent: dict[Term, Term] = {}

    def root(blank: Term) -> Term:
        while parent.setdefault(blank, blank) != blank:
            parent[blank] = blank = parent[parent[blank]]
        return blank

    for row in rows:
        first, *others = _blanks(row)
        for other in others:
            parent[root(other)] = root(first)
    groups: dict[Term, list[Row]] = defaultdict(list)
    for row in rows:
        groups[root(next(_blanks(row)))].append(row)
    return [_Component(group, palette) for group in groups.values()]


def _matching(expected: Sequence[Row], actual: Sequence[Row]) -> dict[Term, Term]:
    """Received blank node to expected one."""
    palette = _Palette()
    waiting: dict[tuple[int, ...], list[_Component]] = defaultdict(list)
    for component in _components(expected, palette):
        waiting[component.signature].append(component)
    names: dict[Term, Term] = {}
    odd: list[_Component] = []
    for component in _components(actual, palette):
        for other in waiting[component.signature]:
            palette.choices = CHOICES
            found = _isomorphism(other, component, other.history[-1], component.history[-1], palette)
            if found is not None:
                names.update(found)
                waiting[component.signature].remove(other)
                break
        else:
            odd.append(component)
    names.update(_likeliest([one for left in waiting.values() for one in left], odd))
    return names


def _isomorphism(
    expected: _Component, actual: _Component, wanted: Colours, given: Colours, palette: _Palette
) -> dict[Term, Term] | None:
    """Received to expected blank node so that the rows are equal; ``None`` when there is none (or none was found)."""
    classes, others = _classes(wanted), _classes(given)
    if {colour: len(found) for colour, found in classes.items()} != {c: len(found) for c, found in others.items()}:
        return None
    open_classes = [colour for colour, found in classes.items() if len(found) > 1]
    if not open_classes:
        names = {others[colour][0]: found[0] for colour, found in classes.items()}
        return names if Counter(expected.rows) == Counter(_with(names, actual.rows)) else None
    colour = min(open_classes, key=lambda colour: len(classes[colour]))
    mark = palette.number(("chosen", colour))
    first = expected.refined({**wanted, classes[colour][0]: mark}, palette)[-1]
    for candidate in others[colour]:
        palette.choices -= 1
        if palette.choices < 0:
            return None
        second = actual.refined({**given, candidate: mark}, palette)[-1]
        found = _isomorphism(expected, actual, first, second, palette)
        if found is not None:
            return found
    return None


def _classes(colours: Colours) -> dict[int, list[Term]]:
    classes: dict[int, list[Term]] = defaultdict(list)
    for blank, colour in colours.items():
        classes[colour].append(blank)
    return classes


def _with(names: Mapping[Term, Term], rows: Iterable[Row]) -> Iterator[Row]:
    return (tuple(None if term is None else names.get(term, term) for term in row) for row in rows)


def _likeliest(expected: Sequence[_Component], actual: Sequence[_Component]) -> dict[Term, Term]:
    """Blank nodes of components that differ, paired by the longest history of equal colours."""
    names: dict[Term, Term] = {}
    taken: set[Term] = set()
    depth = max((len(one.history) for one in (*expected, *actual)), default=0)
    for level in range(depth - 1, -1, -1):
        free: dict[int, list[Term]] = defaultdict(list)
        for one in expected:
            if level < len(one.history):
                for blank, colour in one.history[level].items():
                    if blank not in taken:
                        free[colour].append(blank)
        for other in actual:
            for blank, colour in (other.history[level] if level < len(other.history) else {}).items():
                if blank not in names and free[colour]:
                    names[blank] = free[colour].pop(0)
                    taken.add(names[blank])
    return names


TOLERANCE = {XSD + "float": Decimal("1e-5"), XSD + "double": Decimal("1e-9")}
"""Relative tolerance by datatype; xsd:decimal is exact to 18 digits, xsd:integer exact."""

_DECIMAL_DIGITS = Decimal("1e-18")
_COMPUTED = {XSD + name for name in ("float", "double", "decimal", "integer")}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two bags compared: the size of the intersection, what either side has alone, how many received are undecided.

    ``retyped`` are the columns of which some number is equal but of another datatype.
    """

    common: int
    missing: tuple[Row, ...]
    surplus: tuple[Row, ...]
    undecided: int = 0
    retyped: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        """Whether either side has rows alone."""
        return bool(self.missing or self.surplus)


Alike = Callable[[Row, Row], bool]
"""Whether a received row is equal to an expected one, of which the terms that are not computed are equal."""


def computed_columns(form: a.QueryForm) -> frozenset[int]:
    """The positions of variables that an aggregate or an expression binds; only these are compared by value."""
    if not isinstance(form, a.Select):
        return frozenset()
    bound = computed_variables(form.pattern)
    return frozenset(i for i, name in enumerate(form.variables) if a.Var(name) in bound)


def computed_variables(pattern: a.Pattern) -> frozenset[a.Var]:
    """The variables of a pattern that an aggregate or an expression binds."""
    match pattern:
        case a.Extend(pattern=inner, variable=variable, expression=expression):
            below = computed_variables(inner)
            plain = isinstance(expression, str) or (isinstance(expression, a.Var) and expression not in below)
            return below if plain else below | {variable}
        case a.Group(pattern=inner, keys=keys, aggregates=aggregates):
            below = computed_variables(inner)
            by = {variable for variable, key in keys if isinstance(key, a.Call) or key in below}
            return frozenset(by | {variable for variable, _ in aggregates})
        case a.BGP() | a.Values():
            return frozenset()
        case a.Join() | a.LeftJoin() | a.Union() | a.Minus():
            return computed_variables(pattern.left) | computed_variables(pattern.right)
        case _:
            return computed_variables(pattern.pattern)


def tolerance_sentence(form: a.QueryForm, retyped: Sequence[str], *, exact_datatypes: bool) -> str:
    """The verdict's note on the comparison of numbers; ``retyped`` are columns sent in another datatype."""
    if not computed_columns(form):
        return "terms compared exactly"
    said = (
        "computed numbers by value, inexact ones within what their operands allow (at least xsd:float 1e-5, xsd:double "
        "1e-9, xsd:decimal 18 digits); terms exactly"
    )
    if exact_datatypes:
        return f"{said}; datatypes exactly"
    if not retyped:
        return said
    names = ", ".join(f"?{name}" for name in retyped)
    return f"{said}; the datatype of {names} is another than expected and was left out (--exact-datatypes compares it)"


def overlap(
    expected: Sequence[Row],
    actual: Sequence[Row],
    computed: frozenset[int],
    doubtful: Sequence[Row] = (),
    equal: Alike | None = None,
    pools: Sequence[TiePool] = (),
) -> Overlap:
    """The bag intersection of expected and actual rows, and the rows that only one side has.

    Blank nodes are equal by isomorphism. Received rows that are not expected but ``doubtful`` (so near a bound that
    either is right) are counted as undecided and are on neither side. ``equal`` says which rows are equal but for
    computed numbers; within the tolerance of their datatypes unless given. A row of one of the ``pools`` may be sent
    in place of an expected row that came from the same. Computed numbers tell blank nodes apart first by their values,
    then, where rows are left, not at all: ``equal`` may allow more.
    """
    same = equal or (lambda row, other: alike(row, other, computed))
    known = (*expected, *doubtful, *(row for pool in pools for row in pool.rows[pool.take :]))

    def compared(received: Sequence[Row]) -> Overlap:
        wanted, given = Counter(expected), Counter(received)
        common = (wanted & given).total()
        missing, surplus = wanted - given, given - wanted
        retyped: set[int] = set()
        if computed and missing and surplus:
            common += _match_by_value(missing, surplus, computed, same, retyped)
        common += sum(_swap(missing, surplus, pool, computed, same) for pool in pools)
        undecided = _take(Counter(doubtful), surplus, computed, same) if doubtful and surplus else 0
        return Overlap(common, tuple(missing.elements()), tuple(surplus.elements()), undecided, frozenset(retyped))

    if not has_blanks(known) or not has_blanks(actual):
        return compared(actual)
    every = [row for row in (*known, *actual) if len(row) > max(computed, default=0)]
    found = compared(renamed(known, actual, _alike_numbers(every, computed)))
    if not computed or not found.surplus:
        return found
    nothing = {at: {row[at]: None for row in every if not has_blanks([row[at : at + 1]])} for at in computed}
    return min(found, compared(renamed(known, actual, nothing)), key=lambda each: len(each.surplus))


def _take(doubtful: Counter[Row], surplus: Counter[Row], computed: frozenset[int], same: Alike) -> int:
    """Take the doubtful rows out of the surplus; how many."""
    both = doubtful & surplus
    doubtful -= both
    surplus -= both
    return both.total() + (_match_by_value(doubtful, surplus, computed, same, set()) if computed else 0)


def _match_by_value(
    missing: Counter[Row], surplus: Counter[Row], computed: frozenset[int], same: Alike, retyped: set[int]
) -> int:
    """Pair rows that are equal but for numbers within tolerance; takes the pairs out of both bags."""
    candidates: dict[Row, list[Row]] = defaultdict(list)
    for row in surplus:
        candidates[exact_terms(row, computed)].append(row)
    found = 0
    for row in list(missing):
        for other in candidates[exact_terms(row, computed)]:
            pairs = min(missing[row], surplus[other])
            if pairs > 0 and len(row) == len(other) and same(row, other):
                missing[row] -= pairs
                surplus[other] -= pairs
                found += pairs
                retyped.update(
                    place for place in computed if datatype(row[place] or "") != datatype(other[place] or "")
                )
    return found


def _swap(missing: Counter[Row], surplus: Counter[Row], pool: TiePool, computed: frozenset[int], same: Alike) -> int:
    """Take out of both what is legal: rows of a pool that were sent in place of those taken from it; how many."""
    chosen = Counter(pool.rows[: pool.take])
    unsent = missing & chosen
    left, sent, rest = unsent.total(), Counter[Row](), surplus.copy()
    for row, times in Counter(pool.rows[pool.take :]).items():
        for other in list(rest):
            if row == other or (exact_terms(row, computed) == exact_terms(other, computed) and same(row, other)):
                pairs = min(times, rest[other], left)
                times, left = times - pairs, left - pairs
                rest[other] -= pairs
                sent[row] += pairs
    if pool.order and not left and not legal(chosen - unsent + sent, pool.rows, pool.order, pool.skipped):
        return 0
    surplus.clear()
    surplus.update(+rest)
    _remove(missing, pool, sent.total())
    return sent.total()


def _remove(missing: Counter[Row], pool: TiePool, times: int) -> None:
    for row in pool.rows[: pool.take]:
        if times and missing[row] > 0:
            missing[row] -= 1
            times -= 1


def alike(expected: Row, actual: Row, computed: frozenset[int]) -> bool:
    """Whether two rows are equal: terms exactly, computed numbers within tolerance."""
    return len(expected) == len(actual) and all(
        close(left, right) if i in computed else left == right
        for i, (left, right) in enumerate(zip(expected, actual, strict=True))
    )


def fits(possible: Term | None, actual: Term | None) -> bool:
    """Whether a received term is the expected one, or one of the numbers that an interval literal allows."""
    if possible == actual:
        return True
    if choices.is_beyond(possible) or choices.is_open(possible):
        return choices.allows(possible or "", actual)
    wanted, given = intervals.read(possible or ""), intervals.read(actual or "")
    return wanted is not None and given is not None and intervals.fits(wanted, given)


class Bags:
    """Expected and received bags of one run, compared pair by pair; what was compared is remembered."""

    def __init__(
        self,
        expected: Sequence[Sequence[Row]],
        actual: Sequence[Sequence[Row]],
        computed: frozenset[int] = frozenset(),
        doubtful: Sequence[Sequence[Row]] = (),
        equal: Callable[[int], Alike] | None = None,
        pools: Sequence[Sequence[TiePool]] = (),
    ) -> None:
        self._expected, self._actual, self._computed = expected, actual, computed
        self._equal, self._pools = equal, pools
        self._doubtful = doubtful
        self._counts: tuple[dict[int, Counter[Row]], dict[int, Counter[Row]]] = {}, {}
        self.similarity = lru_cache(maxsize=1 << 18)(self._similarity)
        self._blank = any(map(has_blanks, (*expected, *actual, *doubtful)))

    def overlap(self, i: int, j: int) -> Overlap:
        """Expected bag i beside received bag j."""
        equal = self._equal(i) if self._equal is not None else None
        pools = self._pools[i] if self._pools else ()
        return overlap(self._expected[i], self._actual[j], self._computed, self._doubt(i), equal, pools)

    def _doubt(self, i: int) -> Sequence[Row]:
        return self._doubtful[i] if self._doubtful else ()

    def _similarity(self, i: int, j: int) -> float:
        expected, actual = len(self._expected[i]), len(self._actual[j])
        if not self._blank and not self._doubt(i) and not (self._pools and self._pools[i]):
            if not self._computed:
                return similarity(self._common(i, j), expected, actual)
            if expected == actual == 1 and self._expected[i][0] == self._actual[j][0]:
                return 1.0
        both = self.overlap(i, j)
        return similarity(both.common, expected, actual - both.undecided)

    def _common(self, i: int, j: int) -> int:
        wanted = self._counted(0, i, self._expected)
        given = self._counted(1, j, self._actual)
        if len(wanted) > len(given):
            wanted, given = given, wanted
        return sum(min(count, given[row]) for row, count in wanted.items() if row in given)

    def _counted(self, side: int, place: int, bags: Sequence[Sequence[Row]]) -> Counter[Row]:
        known = self._counts[side]
        if place not in known:
            known[place] = Counter(bags[place])
        return known[place]


def exact_terms(row: Row, computed: frozenset[int]) -> Row:
    """The terms of a row that are compared exactly: all but those of computed columns."""
    return tuple(term for i, term in enumerate(row) if i not in computed)


def close(expected: Term | None, actual: Term | None) -> bool:
    """Whether two computed terms are equal: the same term, or numbers within the looser datatype's tolerance."""
    if expected == actual:
        return True
    (left, loose), (right, looser) = _measured(expected), _measured(actual)
    if left is None or right is None:
        return False
    if left == left.to_integral_value() and right == right.to_integral_value() and not max(loose, looser):
        return left == right
    difference = abs(left - right)
    relative = max(loose, looser)
    if relative:
        return difference <= relative * max(abs(left), abs(right))
    return difference <= _DECIMAL_DIGITS * max(Decimal(1), abs(left))


@lru_cache(maxsize=1 << 16)
def _measured(term: Term | None) -> tuple[Decimal | None, Decimal]:
    """A term's number and its datatype's tolerance; aligning compares each with many others."""
    return number(term), TOLERANCE.get(datatype(term or "") or "", Decimal(0))


def number(term: Term | None) -> Decimal | None:
    """The finite value of a numeric literal; ``None`` for anything else."""
    if term is None or datatype(term) not in _COMPUTED:
        return None
    try:
        value = Decimal(term[1 : term.rindex('"')])
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def similarity(common: int, expected: int, actual: int) -> float:
    """|E and A| / |E or A| of two bags by their sizes; 1 when both are empty."""
    either = expected + actual - common
    return common / either if either else 1.0
