"""From changes of solutions to changes of the answer: a boolean, triples, or the range of ORDER BY with LIMIT.

ORDER BY with LIMIT and OFFSET keeps rows sorted as far as the range and shows a range of positions; those behind it are
sorted by their first key only (``rows_behind``). An inserted or deleted row moves at most one row over each end of the
range, so its cost is logarithmic in the number of rows. With OFFSET 1 and LIMIT 2, the range of a c d e is c d. When b
is inserted at position 1, b enters the range at its front, and d, now behind its end, leaves: b c. When a is deleted, b
leaves at the front and d enters at the back: c d.

Rows with equal keys, and rows that SPARQL 1.1 (15.1) does not order, are sorted deterministically: by kind (unbound,
blank nodes, IRIs, literals; among literals, numbers before booleans and so on), then by the row's terms as text,
column by column.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import Any, Final, Protocol, TypeAlias

from sortedcontainers import SortedList

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.crossovers import FEW_ROWS
from streamgauge.incremental.operators import Bag, Stateful, add, collect
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.incremental.row_joins import FALSE, TRUE
from streamgauge.incremental.rows_behind import RowsBehind
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple, is_triple_of
from streamgauge.query.instants import calls_now
from streamgauge.query.traversal import answer_order, every_expression
from streamgauge.sparql.comparison import descending, value_key
from streamgauge.sparql.expression import VOLATILE
from streamgauge.sparql.values import read

TRIPLE_COLUMNS = ("subject", "predicate", "object")
_BLANK: Final = re.compile(r"_:\d+")


class AnswerStage(Protocol):
    """A stateful stage that maps changes to changes."""

    def change(self, delta: Bag) -> Bag:
        """The change of the answer."""

    def forget(self) -> None:
        """Reset: the next change starts from the empty state."""


class Boolean:
    """ASK: one row, true or false, from the first change on."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Return to the state before the first solution."""
        self._solutions = 0
        self._shown: Row | None = None

    def change(self, delta: Bag) -> Bag:
        """Replace the row if the boolean changed."""
        self._solutions += sum(delta.values())
        row: Row = (TRUE if self._solutions else FALSE,)
        if row == self._shown:
            return {}
        change: Bag = {row: 1}
        if self._shown is not None:
            change[self._shown] = -1
        self._shown = row
        return change


class Triples:
    """CONSTRUCT: the set of well-formed instances of the template.

    A blank node of the template is fresh per solution and stable while the solution exists: its label is derived from
    the solution and the number of its copy.
    """

    def __init__(self, template: Sequence[al.TriplePattern], names: Sequence[str]) -> None:
        self._template = [(triple.subject, triple.predicate, triple.object) for triple in template]
        self._at = {name: position for position, name in enumerate(names)}
        nodes = {node for nodes in self._template for node in nodes if isinstance(node, al.Var)}
        self._blank = sorted(node.name for node in nodes if is_fresh(node))
        self.forget()

    def forget(self) -> None:
        """Return to the state before the first solution."""
        self._found: Bag = {}
        self._copies: Bag = {}

    def change(self, delta: Bag) -> Bag:
        """The triples whose number of instances rose from 0 or fell to 0."""
        moved: Bag = {}
        for row, count in delta.items():
            before = self._found.get(row, 0)
            for copy in self._instances(before, before + count):
                for triple in self._triples(row, copy):
                    add(moved, triple, 1 if count > 0 else -1)
            add(self._found, row, count)
        change: Bag = {}
        for cells, count in moved.items():
            had = self._copies.get(cells, 0)
            add(self._copies, cells, count)
            if bool(had) != bool(had + count):
                change[cells] = 1 if count > 0 else -1
        return change

    def _instances(self, before: int, after: int) -> range:
        """The numbers of the copies that are added or removed; without blank nodes, all copies count as one."""
        # Each copy of a solution makes a blank node of its own (SPARQL 1.1, 16.2.1), so two equal solutions are two
        # triples.
        if self._blank:
            return range(min(before, after), max(before, after))
        return range(1) if bool(before) != bool(after) else range(0)

    def _triples(self, row: Row, copy: int) -> Iterator[Triple]:
        fresh = {name: _label(row, copy, name) for name in self._blank}
        for nodes in self._template:
            cells = [self._cell(node, row, fresh) for node in nodes]
            if _is_triple(cells):
                yield str(cells[0]), str(cells[1]), str(cells[2])

    def _cell(self, node: object, row: Row, fresh: dict[str, Term]) -> Term | None:
        if not isinstance(node, al.Var):
            return str(node)
        return fresh[node.name] if node.name in fresh else row[self._at[node.name]]


def is_fresh(node: al.Var) -> bool:
    """Whether a variable of a template represents a blank node."""
    return _BLANK.fullmatch(node.name) is not None


def _label(row: Row, copy: int, name: str) -> Term:
    # Made of the solution itself, the label is the same when the triple has to be taken back, without a table of
    # labels.
    digest = blake2b(repr((row, copy, name)).encode(), digest_size=12).hexdigest()
    return f"_:c{digest}"


def _is_triple(cells: Sequence[Term | None]) -> bool:
    subject, predicate, item = cells
    if subject is None or predicate is None or item is None:
        return False
    return is_triple_of(subject, predicate, item)


def shape(form: al.QueryForm, names: Sequence[str]) -> AnswerStage | None:
    """The last stage over solutions with ``names``; ``None`` for SELECT, whose answer is the solutions."""
    if isinstance(form, al.Ask):
        return Boolean()
    return Triples(form.template, names) if isinstance(form, al.Construct) else None


def columns(form: al.QueryForm) -> tuple[str, ...]:
    """The columns of a form's answer: its variables, those of a triple, or ``ask``."""
    if isinstance(form, al.Select):
        return form.variables
    return TRIPLE_COLUMNS if isinstance(form, al.Construct) else ("ask",)


def wanted(form: al.QueryForm) -> tuple[str, ...]:
    """The variables of solutions that the answer needs."""
    match form:
        case al.Select(variables=variables):
            return variables
        case al.Construct(template=template):
            template_variables = dict.fromkeys(var for triple in template for var in al.triple_variables(triple))
            return tuple(var.name for var in template_variables if not is_fresh(var))
        case _:
            return ()


Place: TypeAlias = tuple[Any, ...]
"""The sort key of a row: its ORDER BY keys, its terms as text, and the row itself."""

Key: TypeAlias = tuple[al.Expression, bool]
"""An expression of ORDER BY, and whether it is descending."""

_UNBOUND: Final = (0,)


@dataclass(frozen=True, slots=True)
class OrderedSlice:
    """ORDER BY, LIMIT, OFFSET and DISTINCT of a whole query; ``keys`` are over the columns of its solutions."""

    keys: tuple[Key, ...]
    offset: int
    limit: int | None
    distinct: bool


def apart(form: al.QueryForm) -> tuple[al.QueryForm, OrderedSlice | None]:
    """Separate a query from its order: the query, whose rows include the keys' variables, and the order or ``None``.

    UnsupportedError names an unsupported part of ORDER BY.
    """
    pattern, offset, limit, distinct = form.pattern, 0, None, False
    if isinstance(pattern, al.Slice):
        offset, limit, pattern = pattern.offset, pattern.limit, pattern.pattern
    if isinstance(form, al.Select):  # below another form they are a subquery's
        if isinstance(pattern, al.Distinct | al.Reduced):
            distinct, pattern = isinstance(pattern, al.Distinct), pattern.pattern
        assert isinstance(pattern, al.Project)
        pattern = pattern.pattern
    keys: tuple[Key, ...] = ()
    if isinstance(pattern, al.OrderBy):
        keys, pattern = pattern.keys, pattern.pattern
    if limit is None and not offset and not keys:
        return form, None
    _check(keys)
    read_ = sorted({var.name for key, _ in keys for var in al.expression_variables(key)})
    known = al.pattern_variables(pattern)
    names = tuple(dict.fromkeys((*wanted(form), *(name for name in read_ if al.Var(name) in known))))
    kept = al.Select(al.Project(pattern, tuple(map(al.Var, names))), names)
    return kept, OrderedSlice(keys, offset, limit, distinct)


def _check(keys: Sequence[Key]) -> None:
    for part in (part for key, _ in keys for part in every_expression(key)):
        if isinstance(part, al.Exists):
            raise UnsupportedError("EXISTS in ORDER BY: bind it to a variable first")
        if isinstance(part, al.Call) and part.operator.upper() in VOLATILE:
            raise UnsupportedError(f"{part.operator.upper()}: its value changes from call to call")


class Ranking(Stateful):
    """From changes of rows over ``names`` to changes of the range of OFFSET and LIMIT, over ``width`` columns.

    Every copy of a row has a place. With DISTINCT a row has one place, that of its first solution.
    """

    def __init__(self, cut: OrderedSlice, names: Sequence[str], width: int, effort: EvaluationBudget) -> None:
        self._keys = [(Batch(key, names, effort), down) for key, down in cut.keys]
        self._distinct, self._width, self._effort = cut.distinct, width, effort
        self._first = cut.offset
        self._end = None if cut.limit is None else cut.offset + cut.limit
        # A distinct row has the place of its first solution, so all of its solutions are kept in order.
        self._partial = self._end is not None and bool(self._keys) and not cut.distinct
        self.forget()

    def forget(self) -> None:
        """Return to the state before the first solution."""
        self._places = SortedList()
        self._solutions: dict[Row, SortedList] = {}
        # As long as there are rows behind, the places reach beyond the range, up to a first key.
        self._behind = RowsBehind()
        self._reached: Place = ()

    @property
    def held(self) -> int:
        """The number of places, of the solutions behind distinct rows, and of the rows behind all places."""
        return len(self._places) + sum(map(len, self._solutions.values())) + self._behind.held

    @property
    def empty(self) -> bool:
        """Whether there is no row: rows behind the places follow as these become few."""
        return not self._places

    def change(self, delta: Bag) -> Bag:
        """The change of the range; removals are applied first."""
        self._effort.spend(sum(map(abs, delta.values())))
        # Building a sorted list from all rows at once is much cheaper than inserting them one by one, and nothing is
        # shown yet.
        if not self._places and all(count > 0 for count in delta.values()):
            return self._begun(delta)
        change: Bag = {}
        # What goes first: otherwise a row that replaces another would push a third one out of the window for a moment.
        moves = self._near(sorted(delta.items(), key=_sign))
        for place, (_, count) in zip(self._placed([row for row, _ in moves]), moves, strict=True):
            for _ in range(abs(count)):
                for moved, sign in self._moved(place, 1 if count > 0 else -1):
                    add(change, moved[-1][: self._width], sign)
        return change

    def _begun(self, rows: Bag) -> Bag:
        """Fill the empty state in bulk."""
        if self._partial:
            self._behind.add(self._first_keys([*rows]), rows.items())
            self._fill()
            return self._range()
        placed = zip(self._placed(list(rows)), rows.values(), strict=True)
        places = [row for place, count in placed for row in (place,) * count]
        if self._distinct:
            for place in places:
                self._solutions.setdefault(place[-1][: self._width], SortedList()).add(place)
            places = [solutions[0] for solutions in self._solutions.values()]
        self._places = SortedList(places)
        return self._range()

    def _range(self) -> Bag:
        return collect((place[-1][: self._width], 1) for place in self._places.islice(self._first, self._end))

    def _first_keys(self, rows: Sequence[Row]) -> list[Place]:
        values, down = self._keys[0]
        return _keys(values.values(rows), down)

    def _near(self, moves: Sequence[tuple[Row, int]]) -> Sequence[tuple[Row, int]]:
        """The moves of rows up to the key that is reached; the others are counted behind it."""
        if not self._behind:
            return moves
        keys = self._first_keys([row for row, _ in moves])
        behind = [self._reached < key for key in keys]
        self._behind.add(compress(keys, behind), compress(moves, behind))
        return [move for move, is_behind in zip(moves, behind, strict=True) if not is_behind]

    def _fill(self) -> None:
        """Put rows in order that wait behind, until the places reach beyond the range."""
        if self._end is not None and self._behind and len(self._places) <= self._end:
            self._reached, rows = self._behind.take(self._end + 1 - len(self._places))
            placed = zip(self._placed([*rows]), rows.values(), strict=True)
            self._places.update([row for place, count in placed for row in (place,) * count])

    def _placed(self, rows: Sequence[Row]) -> list[Place]:
        """The places of rows."""
        columns = [_keys(values.values(rows), down) for values, down in self._keys]
        # None and str have no order in Python. The row itself follows, so that unbound and "" stay different.
        texts = [row if None not in row else tuple(cell or "" for cell in row) for row in rows]
        return list(zip(*columns, texts, rows, strict=True))

    def _moved(self, place: Place, sign: int) -> Iterator[tuple[Place, int]]:
        if self._distinct:
            yield from self._moved_distinct(place, sign)
        elif sign > 0:
            yield from self._enter(place)
        else:
            yield from self._leave(place)

    def _moved_distinct(self, place: Place, sign: int) -> Iterator[tuple[Place, int]]:
        """A distinct row moves if its first solution changes."""
        row = place[-1][: self._width]
        solutions = self._solutions.setdefault(row, SortedList())
        before = solutions[0] if solutions else None
        if sign > 0:
            solutions.add(place)
        else:
            solutions.remove(place)
        after = solutions[0] if solutions else None
        if not solutions:
            del self._solutions[row]
        # Only the first place of a distinct row is shown; others come and go unnoticed.
        if before != after:
            yield from () if before is None else self._leave(before)
            yield from () if after is None else self._enter(after)

    def _enter(self, place: Place) -> Iterator[tuple[Place, int]]:
        """Insert a place; yields the rows that cross the ends of the range."""
        at, first, end = self._places.bisect_left(place), self._first, self._end
        self._places.add(place)
        # Behind the range, or the range is empty (LIMIT 0).
        if end is not None and (at >= end or first >= end):
            return
        # Ahead of the range, all rows move back by one, and the row that now stands first enters; within it, the row
        # itself does.
        if max(at, first) < len(self._places):
            yield self._places[max(at, first)], 1
        if end is not None and end < len(self._places):
            yield self._places[end], -1

    def _leave(self, place: Place) -> Iterator[tuple[Place, int]]:
        """Delete a place; yields the rows that cross the ends of the range."""
        at, first, end = self._places.bisect_left(place), self._first, self._end
        # Read before the deletion: afterwards the positions are those of other rows.
        if end is None or (at < end and first < end):
            if max(at, first) < len(self._places):
                yield self._places[max(at, first)], -1
            if end is not None and end < len(self._places):
                yield self._places[end], 1
        del self._places[at]
        self._fill()


class RowOrder:
    """ORDER BY over complete answers, by keys that only read the answer's columns."""

    def __init__(self, keys: Sequence[Key], names: Sequence[str]) -> None:
        self._keys = [(Batch(key, names), down) for key, down in keys]

    @staticmethod
    def of(form: al.QueryForm) -> "RowOrder | None":
        """The order of a query; ``None`` if it has none, or reads anything but columns, such as NOW()."""
        pattern = answer_order(form)
        if pattern is None or not isinstance(form, al.Select):
            return None
        read_ = {var.name for key, _ in pattern.keys for var in al.expression_variables(key)}
        if read_ - {*form.variables} or any(calls_now(key) for key, _ in pattern.keys):
            return None
        return RowOrder(pattern.keys, form.variables)

    def sorted(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """The sorted rows; a stable sort."""
        columns = [_keys(values.values(rows), down) for values, down in self._keys]
        places = list(zip(*columns, strict=True))
        return tuple(rows[place] for place in sorted(range(len(rows)), key=places.__getitem__))


def _sign(change: tuple[Row, int]) -> bool:
    return change[1] > 0


def _keys(terms: Sequence[Term | None], down: bool) -> list[Place]:
    """The sort keys of terms; computed once per distinct term if these are few."""
    different = set(terms) if len(terms) > FEW_ROWS else ()
    if not different or 2 * len(different) > len(terms):
        return [_key(term, down) for term in terms]
    known = {term: _key(term, down) for term in different}
    return list(map(known.__getitem__, terms))


def _key(term: str | None, down: bool) -> Place:
    """The place of a term in the order: equal for terms that SPARQL has equal."""
    key = _UNBOUND if term is None else value_key(read(term))
    return tuple(map(descending, key)) if down else key
