"""Aggregates over conditional rows, and choices among bags of rows."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.worlds.components import components
from streamgauge.oracle.worlds.conditions import ALWAYS, Condition, OpenChoice, Variable, both, chosen, limit, worlds
from streamgauge.oracle.worlds.openings import CURRENT
from streamgauge.sparql.aggregates import aggregate
from streamgauge.sparql.blocks import Solution

ConditionalRow: TypeAlias = tuple[Solution, Condition]
Valuation: TypeAlias = Callable[[Solution], Any]
Arguments: TypeAlias = tuple[Hashable, ...]
"""The values of a row that the aggregates of its group read."""
_ROW: Final = '"*"'


def as_choice(bags: Sequence[Sequence[ConditionalRow]], reason: str) -> Iterator[ConditionalRow]:
    """The rows of one of several bags, as conditional rows under one new choice; equal bags are one option.

    Rows that several bags contain are yielded once, under all of their options: the n-th copy of a row exists in the
    bags that have at least n copies.
    """
    # A bag as a hashable value: each row with its multiplicity.
    different = list({frozenset(Counter(map(_name, bag)).items()): bag for bag in bags}.values())
    limit(len(different), (condition for bag in different for _, condition in bag))
    if len(different) == 1:
        yield from different[0]
        return
    choice = OpenChoice(tuple(range(len(different))), reason)
    places: dict[Hashable, tuple[ConditionalRow, list[int]]] = {}
    for place, bag in enumerate(different):
        copies: Counter[Hashable] = Counter()
        for row in bag:
            name = _name(row)
            copies[name] += 1
            # Worked example: the bags {r, r} and {r, s} give r under both options, its second copy under the first,
            # and s under the second.
            places.setdefault((name, copies[name]), (row, []))[1].append(place)
    for (solution, own), members in places.values():
        case = own if len(members) == len(different) else both(own, chosen(choice, *members))
        assert case is not None
        yield solution, case


def _name(row: ConditionalRow) -> Hashable:
    return frozenset(row[0].items()), frozenset(row[1].items())


class Grouping:
    """Grouping and aggregation (18.5) of conditional rows: each group is split into its own cases.

    Choices that only the rows of one group depend on are replaced by one choice among the group's results. So COUNT
    over 100 rows that may or may not exist has 101 options instead of 2^100 cases.
    """

    def __init__(
        self, group: a.Group, valuation: Callable[[a.Expression], Valuation], fixed: Mapping[str, Term]
    ) -> None:
        """``valuation`` compiles an expression; ``fixed`` are the terms that EXISTS substitutes for variables."""
        self._fixed, self._openings = fixed, CURRENT.get()
        self._keys = [(variable.name, valuation(key)) for variable, key in group.keys]
        self._sets = [
            (variable.name, aggregation, None if aggregation.argument is None else valuation(aggregation.argument))
            for variable, aggregation in group.aggregates
        ]

    def rows(self, ungrouped: Iterable[ConditionalRow], *, visible: bool = False) -> Iterator[ConditionalRow]:
        """One row for each group in each of its cases; ``visible`` keeps all choices of its rows."""
        groups: dict[Row, list[tuple[Condition, Arguments]]] = {} if self._keys else {(): []}
        for row, condition in ungrouped:
            for (key, arguments), case in self._openings.outcomes(partial(self._read, row), condition):
                groups.setdefault(key, []).append((case, arguments))
        # The number of groups that read a choice: one that a single group reads may be hidden in it (``_parted``).
        users: Counter[Variable] = Counter()
        for members in groups.values():
            users.update({variable for condition, _ in members for variable in condition})
        if visible:
            # Counted once more, every choice has several readers and stays visible.
            users.update(list(users))
        self._openings.refuse_alike(list(groups), "rows are grouped by inexact numbers that may be equal")
        for key, members in groups.items():
            names = {name: term for (name, _), term in zip(self._keys, key, strict=True) if term is not None}
            for row, case in self._grouped(members, users):
                yield {**names, **row}, case

    def _read(self, row: Solution) -> tuple[Row, Arguments]:
        """The key of a row's group, and the arguments of its aggregates."""
        openings = self._openings
        key = tuple(None if (term := value(row)) is None else openings.identified(term) for _, value in self._keys)
        return key, tuple(self._argument(row, aggregation, value) for _, aggregation, value in self._sets)

    def _argument(self, row: Solution, aggregation: a.Aggregate, value: Valuation | None) -> Hashable:
        if value is None:
            if not aggregation.distinct:
                return _ROW
            terms = ((name, self._openings.identified(term)) for name, term in row.items())
            return frozenset((name, term) for name, term in terms if term is not None)
        term: Term | None = value(row)
        if aggregation.function == "COUNT" and not aggregation.distinct:
            return None if term is None else _ROW
        return self._openings.identified(term) if aggregation.distinct and term is not None else term

    def _grouped(
        self, members: list[tuple[Condition, Arguments]], users: Mapping[Variable, int]
    ) -> Iterator[ConditionalRow]:
        if all(not condition for condition, _ in members):
            yield from self._finished([arguments for _, arguments in members], ALWAYS)
            return
        named, hidden = self._parted(members, users)
        bags = self._bags(hidden)
        for present, world in worlds(named):
            # Sorted, so that equal bags are equal tuples; by repr, because the arguments are of kinds that do not
            # compare.
            totals = {tuple(sorted((*bag, *present), key=repr)) for bag in bags}
            limit(len(totals), [world])
            # A group with a key exists only where it has rows, one without a key always.
            outcomes = [self._finished(total, world) if total or not self._keys else [] for total in totals]
            reasons = dict.fromkeys(variable.reason for condition, _ in members for variable in condition)
            yield from as_choice(outcomes, "; ".join(reasons))

    def _finished(self, total: Sequence[Arguments], condition: Condition) -> list[ConditionalRow]:
        """The aggregates over a bag of arguments, in all cases of the decisions that they meet."""

        def run() -> Solution:
            solution: Solution = {}
            for place, (name, aggregation, _) in enumerate(self._sets):
                values: list[Any] = [arguments[place] for arguments in total]
                if aggregation.distinct and self._openings.any:
                    self._refuse_alike(set(values))
                if aggregation.argument is None and aggregation.distinct:
                    values = [_ROW] * len(set(values))
                plain = aggregation.distinct and aggregation.argument is not None
                term = aggregate(aggregation.function, values, distinct=plain, separator=aggregation.separator)
                if term is not None:
                    solution[name] = term
            return solution

        return self._openings.outcomes(run, condition)

    def _refuse_alike(self, values: Collection[Any]) -> None:
        """Raise OpenError if two of these terms, or solutions as sets of pairs, may be equal."""
        solutions = [dict(value) if isinstance(value, frozenset) else {"": value} for value in values]
        names = sorted({name for solution in solutions for name in solution})
        rows = [tuple(map(solution.get, names)) for solution in solutions]
        self._openings.refuse_alike(rows, "inexact numbers that may be equal are made distinct")

    def _parted(
        self, members: Sequence[tuple[Condition, Arguments]], users: Mapping[Variable, int]
    ) -> tuple[list[tuple[Condition, Any]], list[list[tuple[Condition, Any]]]]:
        """The rows whose choices remain visible (``named``), and components of rows whose choices end in this group.

        A choice stays visible if it is shared, if another group reads it, or if a term of the answer is open by it.
        """
        shown = {
            variable
            for _, arguments in members
            for term in arguments
            if (variable := self._openings.variable(term)) is not None
        }
        shown |= {variable for term in self._fixed.values() if (variable := self._openings.variable(term)) is not None}
        named: list[tuple[Condition, Any]] = []
        hidden: list[list[tuple[Condition, Any]]] = []
        for rows in components(members, lambda member: member[0]):
            variables = {variable for condition, _ in rows for variable in condition}
            if variables and not any(
                variable.shared or users[variable] > 1 or variable in shown for variable in variables
            ):
                hidden.append(rows)
            else:
                named += rows
        return named, hidden

    def _bags(self, hidden: Iterable[Sequence[tuple[Condition, Any]]]) -> list[tuple[Arguments, ...]]:
        """All bags of arguments that the rows with hidden choices may form."""
        bags: set[tuple[Arguments, ...]] = {()}
        for rows in hidden:
            # Different worlds often have equal bags: COUNT over 100 rows needs only how many of them exist, 101 bags.
            own = {tuple(sorted(present, key=repr)) for present, _ in worlds(rows)}
            bags = {tuple(sorted((*bag, *more), key=repr)) for bag in bags for more in own}
            limit(len(bags), (condition for condition, _ in rows))
        return list(bags)
