"""Whether some assignment of the choices gives exactly a received answer: a constraint search, smallest domain first.

Each possible row is either absent from the received answer, in the cases in which it does not exist, or one of the
received rows, in the cases in which it exists with these terms. Rows that share neither a choice nor a received row are
independent. A row with a single move is moved immediately; then the row with the fewest moves is branched on.

    possible: a if x > 50, b if x > 49, c          received: b, c
    c is received; a is absent: x <= 50; b is received: 49 < x <= 50. Right.          received: a, c: wrong
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term, datatype
from streamgauge.oracle.worlds import intervals
from streamgauge.oracle.worlds.algebra import PossibleRow
from streamgauge.oracle.worlds.components import components
from streamgauge.oracle.worlds.conditions import (
    ALWAYS,
    Condition,
    CutOffError,
    NumberOrder,
    NumberSpan,
    OpenNumber,
    Variable,
    both,
    chosen,
    cut_off,
    limit,
    none_of,
    worlds,
)
from streamgauge.oracle.worlds.intervals import TOLERANCE, UNIT
from streamgauge.oracle.worlds.openings import (
    CURRENT,
    Openings,
    OpenTerm,
    SentTexts,
    TextChoice,
)
from streamgauge.oracle.worlds.slices import Precedence
from streamgauge.sparql.values import FLOAT, INTEGER

MAX_STEPS: Final = 300_000
"""Moves after which a search is cut off, and the verdict is unknown (docs/judging.md)."""

Moves: TypeAlias = list[tuple[Row | None, Condition]]
"""The possible fates of a row: a received row, or absent (``None``), each with its condition."""

WaitingRow: TypeAlias = tuple[PossibleRow, dict[Row, Condition]]
"""A possible row, and the received rows that it may be, with the conditions."""

_Among: TypeAlias = Callable[[OpenTerm], OpenTerm]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two bags compared: the size of their intersection, and the rows that only one side has.

    ``retyped`` are the columns in which a number is equal but of another datatype.
    """

    common: int
    missing: tuple[Row, ...]
    surplus: tuple[Row, ...]
    retyped: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        """Whether the bags are unequal."""
        return bool(self.missing or self.surplus)


class PossibleAnswers:
    """The possible rows of one report, against which answers are tested; ``computed`` columns are compared by value."""

    def __init__(
        self,
        rows: Sequence[PossibleRow],
        openings: Openings,
        computed: frozenset[int],
        cut: a.Slice | None = None,
        *,
        exact_datatypes: bool = False,
        as_sets: bool = False,
    ) -> None:
        self.rows, self.openings, self.computed, self._cut = rows, openings, computed, cut
        self._exact_datatypes, self._as_sets = exact_datatypes, as_sets
        self._steps = 0

    @property
    def is_cut(self) -> bool:
        """Whether LIMIT or OFFSET slices the answer."""
        return self._cut is not None

    @property
    def is_certain(self) -> bool:
        """Whether only one answer is legal, apart from the values of inexact numbers."""
        return self._cut is None and not any(
            row.condition or any(map(self.openings.open_term, row.terms)) for row in self.rows
        )

    @property
    def variables(self) -> list[Variable]:
        """The choices that rows depend on."""
        variables = dict.fromkeys(variable for row in self.rows for variable in row.condition)
        opened = (self.openings.variable(term) for row in self.rows for term in row.terms)
        return list(dict.fromkeys((*variables, *(variable for variable in opened if variable is not None))))

    def admit(self, received: Sequence[Row]) -> bool:
        """Whether some world gives exactly these rows; CutOffError if the search takes too many steps."""
        self._steps = 0
        token = CURRENT.set(self.openings)
        try:
            if self._cut is not None:
                return self._is_slice(received, self._cut)
            return self._is_whole(received)
        finally:
            CURRENT.reset(token)

    # Terms
    def _options(self, received: Iterable[Row]) -> Iterator[dict[Row, Condition]]:
        """For each possible row, the received rows that it may be, with the conditions."""
        index = _Index(list(dict.fromkeys(received)))
        for row in self.rows:
            open_places = frozenset(place for place, term in enumerate(row.terms) if self._is_flexible(place, term))
            options = {}
            for other in index.alike(row.terms, open_places):
                case = self._row_condition(row, other)
                if case is not None:
                    options[other] = case
            yield options

    def _is_flexible(self, place: int, term: Term | None) -> bool:
        return term is not None and (place in self.computed or self.openings.is_open(term))

    def _row_condition(self, row: PossibleRow, other: Row) -> Condition | None:
        case: Condition | None = row.condition
        for place, (term, received) in enumerate(zip(row.terms, other, strict=True)):
            cell = self._cell(term, received, place in self.computed)
            case = None if cell is None or case is None else both(case, cell)
            if case is None:
                return None
        return case

    def _cell(self, term: Term | None, received: Term | None, computed: bool) -> Condition | None:
        """The condition under which a possible term is the received one; ``None`` if it never is."""
        if term == received:
            return ALWAYS
        if term is None:
            return None
        choice = self.openings.open_term(term)
        if choice is not None:
            if isinstance(choice, TextChoice):
                return chosen(choice, received) if choice.allowed(received) else None
            options = [
                option for option in choice.options if self._cell(_as_term(option), received, computed) is not None
            ]
            return chosen(choice, *options) if options else None
        if received is None:
            return None
        if computed and self._exact_datatypes and self._datatype(term) != datatype(received):
            return None
        number = self.openings.open_number(term)
        if number is not None:
            return _shown(number, received)
        return ALWAYS if computed and intervals.is_form_of(term, received) else None

    def _datatype(self, term: Term) -> str | None:
        number = self.openings.open_number(term)
        return datatype(term) if number is None else intervals.datatype_of(number.interval)

    # Whole answers
    def _is_whole(self, received: Sequence[Row]) -> bool:
        need = Counter(received)
        rest: list[WaitingRow] = []
        for row, options in zip(self.rows, self._options(received), strict=True):
            if row.condition or len(options) != 1:
                if not options and not row.condition:
                    return False
                rest.append((row, options))
                continue
            ((other, case),) = options.items()
            if case:
                rest.append((row, options))
            elif not self._take(need, other):
                return False
        # Cheap, and decides most wrong answers: a received row that no possible row can be.
        supplied = {other for _, options in rest for other in options}
        if any(times > 0 and other not in supplied for other, times in need.items()):
            return False
        return all(self._solve(component, need, ALWAYS) for component in components(rest, _linked))

    def _take(self, need: Counter[Row], other: Row) -> bool:
        if self._as_sets:
            # As a set, the received row is explained by one possible row, and any further one may be it too.
            need[other] = 0
            return True
        need[other] -= 1
        return need[other] >= 0

    def _moves(
        self, row: PossibleRow, options: dict[Row, Condition], need: Counter[Row], condition: Condition
    ) -> Moves:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise CutOffError(cut_off(self.variables))
        moves: Moves = [
            (other, case)
            for other, own in options.items()
            if (self._as_sets or need[other] > 0) and (case := both(condition, own)) is not None
        ]
        if row.condition:
            moves += [(None, case) for case in none_of([row.condition], condition)]
        return moves

    def _solve(self, rows: Sequence[WaitingRow], wanted: Counter[Row], condition: Condition) -> bool:
        """Whether the rows of a component can be moved such that all of their received rows are used."""
        own = {other for _, options in rows for other in options}
        need = Counter({other: wanted[other] for other in own})
        waiting = list(rows)
        while waiting:
            fewest: tuple[int, Moves] | None = None
            left: list[WaitingRow] = []
            supply: Counter[Row] = Counter()
            moved = False
            for row, options in waiting:
                moves = self._moves(row, options, need, condition)
                if not moves:
                    return False
                if len(moves) == 1:
                    # The condition of a forced move holds from now on, so it narrows the moves of all other rows.
                    ((other, condition),) = moves
                    moved = True
                    if other is not None:
                        self._take(need, other)
                    continue
                supply.update({other for other, _ in moves if other is not None})
                if fewest is None or len(moves) < len(fewest[1]):
                    fewest = len(left), moves
                left.append((row, options))
            waiting = left
            if moved or fewest is None:
                continue
            # More copies were received than the waiting rows can supply: no branch can succeed.
            if any(times > supply[other] for other, times in need.items()):
                return False
            return self._branch(waiting, need, *fewest)
        return not any(need.values())

    def _branch(self, waiting: list[WaitingRow], need: Counter[Row], place: int, moves: Moves) -> bool:
        rest = [*waiting[:place], *waiting[place + 1 :]]
        for other, case in moves:
            after = need.copy()
            if other is not None:
                self._take(after, other)
            if self._left(rest, after) and self._solve(rest, after, case):
                return True
        return False

    def _left(self, rest: Sequence[WaitingRow], need: Counter[Row]) -> bool:
        """Whether each unused received row may still be one of the remaining possible rows."""
        own = {other for _, options in rest for other in options}
        return all(times <= 0 or other in own for other, times in need.items())

    # Slices
    def _is_slice(self, received: Sequence[Row], cut: a.Slice) -> bool:
        waiting = [(row.condition, (row, own)) for row, own in zip(self.rows, self._options(received), strict=True)]
        return any(self._is_slice_of(members, received, cut, world) for members, world in worlds(waiting))

    def _is_slice_of(
        self, members: Sequence[WaitingRow], received: Sequence[Row], cut: a.Slice, world: Condition
    ) -> bool:
        precedence = Precedence([row.keys for row, _ in members])
        if len(received) != precedence.size(cut):
            return False
        places: dict[Row, list[int]] = defaultdict(list)
        for place, (_, options) in enumerate(members):
            for other in options:
                places[other].append(place)
        # Rows with the fewest candidates first, so that dead ends are met early.
        wanted = sorted(received, key=lambda other: (len(places[other]), repr(other)))

        def fill(at: int, kept: tuple[int, ...], condition: Condition) -> bool:
            if at == len(wanted):
                return precedence.is_slice(kept, cut)
            tried: set[object] = set()
            for place in places[wanted[at]]:
                row, options = members[place]
                # Interchangeable rows lead to the same dead end: one of them is tried.
                same = row.terms, row.keys, tuple(options[wanted[at]].items())
                if place in kept or same in tried:
                    continue
                tried.add(same)
                self._steps += 1
                if self._steps > MAX_STEPS:
                    raise CutOffError(cut_off(self.variables))
                case = both(condition, options[wanted[at]])
                if case is not None and fill(at + 1, (*kept, place), case):
                    return True
            return False

        return fill(0, (), world)

    def parts(self, sent: SentTexts) -> list[list[Counter[Row]]]:
        """The legal answers as parts: one bag of each, added up, is an answer. Parts share neither choices nor rows.

        Inexact numbers have their exact values. GROUP_CONCAT is either one of the received texts or one other order,
        which stands for all others. CutOffError if the bags of a part are too many.
        """
        token = CURRENT.set(self.openings)
        try:
            read = {variable for row in self.rows for variable in row.condition}
            # One object for each choice, by which its rows are known to be of one decision.
            among: _Among = cache(lambda choice: choice.among(sent))
            rows = [PossibleRow(*case, row.keys) for row in self.rows for case in self._texts(row, among, read)]
            if self._cut is not None:
                return [self._bags(rows)]
            shared = {row.terms for row in rows if row.condition}
            certain = [row for row in rows if row.terms not in shared]
            others = ((row, {row.terms: ALWAYS}) for row in rows if row.terms in shared)
            apart = [[row for row, _ in part] for part in components(others, _linked)]
            return [self._bags(part) for part in (certain, *apart)]
        finally:
            CURRENT.reset(token)

    def _texts(self, row: PossibleRow, among: _Among, read: Collection[Variable]) -> Iterator[tuple[Row, Condition]]:
        """A row with every combination of options of its open terms, with the conditions.

        Choices that conditions read keep all their options; others are reduced to those that matter (``among``).
        """
        cases: list[tuple[Row, Condition]] = [((), row.condition)]
        for term in row.terms:
            choice = self.openings.open_term(term)
            if choice is None:
                cases = [((*terms, self._legal(term)), condition) for terms, condition in cases]
                continue
            listed = choice if choice in read else among(choice)
            cases = [
                ((*terms, _as_term(option)), case)
                for terms, condition in cases
                for option in listed.options
                if (case := both(condition, chosen(listed, option))) is not None
            ]
            limit(len(cases), (condition for _, condition in cases))
        yield from cases

    def _bags(self, rows: Sequence[PossibleRow]) -> list[Counter[Row]]:
        """All bags of these rows over all worlds."""
        cases = worlds([(row.condition, row) for row in rows])
        bags = (bag for members, _ in cases for bag in self._of_world(members))
        return [Counter(dict(bag)) for bag in {frozenset(Counter(bag).items()) for bag in bags}]

    def _of_world(self, members: Sequence[PossibleRow]) -> Iterator[list[Row]]:
        rows = [member.terms for member in members]
        if self._as_sets:
            rows = list(dict.fromkeys(rows))
        if self._cut is None:
            yield rows
            return
        for places in Precedence([member.keys for member in members]).slices(self._cut):
            yield [rows[place] for place in places]

    def canonical(self, received: Collection[Row]) -> dict[Row, Row]:
        """Received rows that a possible row may be, mapped to the form with its exact numbers."""
        token = CURRENT.set(self.openings)
        own: dict[Row, Row] = {}
        try:
            for row, options in zip(self.rows, self._options(received), strict=True):
                for other in options:
                    own.setdefault(other, self._own(row, other))
        finally:
            CURRENT.reset(token)
        return own

    def _own(self, row: PossibleRow, received: Row) -> Row:
        """The received row with the numbers of the possible row."""
        return tuple(
            term_received if self.openings.open_term(term) is not None else self._legal(term)
            for term, term_received in zip(row.terms, received, strict=True)
        )

    # Scores
    def nearest(self, received: Sequence[Row]) -> Overlap:
        """The comparison with a legal answer near the received one, found greedily without backtracking."""
        token = CURRENT.set(self.openings)
        try:
            return self._nearest(received)
        finally:
            CURRENT.reset(token)

    def _nearest(self, received: Sequence[Row]) -> Overlap:
        need, common, condition = Counter(received), 0, ALWAYS
        self._steps = 0
        missing: list[Row] = []
        pairs = zip(self.rows, self._options(received), strict=True)
        # Certain rows with few options first: they leave the least to choose.
        rows = sorted(pairs, key=lambda pair: (bool(pair[0].condition), len(pair[1])))
        for row, options in rows:
            moves = self._moves(row, options, need, condition)
            other, case = moves[0] if moves else (None, both(condition, row.condition))
            condition = condition if case is None else case
            if other is not None:
                need[other] -= 1
                common += 1
            elif not moves:
                missing.append(self.legal(row))
        # Unary plus keeps positive counts only; under sets they may have become negative.
        return Overlap(common, tuple(missing), tuple((+need).elements()))

    def legal(self, row: PossibleRow) -> Row:
        """A possible row with one option for each open term."""
        return tuple(map(self._legal, row.terms))

    def _legal(self, term: Term | None) -> Term | None:
        number, choice = self.openings.open_number(term), self.openings.open_term(term)
        if number is not None:
            return intervals.own(number.interval)
        return term if choice is None else choice.any_option


def _as_term(option: object) -> Term | None:
    assert option is None or isinstance(option, str)
    return option


def _shown(number: OpenNumber, term: Term) -> Condition | None:
    """The condition that a number is the received one, up to a rounding of the datatype in which it was sent."""
    known, other = number.interval, intervals.read(term)
    if other is None or not intervals.fits(known, other):
        return None
    kind = max(known.kind, other.kind)
    # Integers are sent without rounding.
    if kind == INTEGER:
        return {number: NumberSpan(other.low, other.high).within(number.span)}
    relative = TOLERANCE[kind] if other.kind > known.kind and other.kind >= FLOAT else UNIT[kind]
    slack = relative * max(other.size, known.size if kind == FLOAT else 0, 1 if kind < FLOAT else 0)
    span = NumberSpan(other.low - slack, other.high + slack).within(number.span)
    return None if span.empty else {number: span}


class _Index:
    """An index of received rows by the terms at the places where a possible row has to be equal."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows, self._present = rows, frozenset(rows)
        self._known: dict[tuple[frozenset[int], int], dict[Row, list[Row]]] = {}

    def alike(self, row: Row, flexible: frozenset[int]) -> Sequence[Row]:
        """The received rows that are equal to a row, except at the flexible places."""
        if not flexible:
            return (row,) if row in self._present else ()
        places = [place for place in range(len(row)) if place not in flexible]
        key = flexible, len(row)
        if key not in self._known:
            index = self._known[key] = defaultdict(list)
            for other in self._rows:
                if len(other) == len(row):
                    index[tuple(other[place] for place in places)].append(other)
        return self._known[key].get(tuple(row[place] for place in places), ())


def _linked(waiting: WaitingRow) -> Iterator[object]:
    """The keys that connect a row to others: its choices, the numbers that these compare, and its received rows."""
    row, options = waiting
    for node in (*row.condition, *options, *(variable for case in options.values() for variable in case)):
        yield node
        if isinstance(node, NumberOrder):
            yield from (node.left, node.right)
