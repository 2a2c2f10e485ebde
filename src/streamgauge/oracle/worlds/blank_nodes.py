"""Blank nodes of two bags of rows, compared by isomorphism.

Colour refinement (Weisfeiler-Leman) gives each blank node a colour from the rows that it is in; equal colours on both
sides are candidates for a match. Worked example: in (_:a p 1), (_:a q _:b), (_:c p 2) the first round tells _:a and
_:c apart by the constants beside them and _:b by its position, so each has one candidate and no search is needed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, pairwise, zip_longest
from operator import itemgetter
from typing import Final

from streamgauge.model.terms import Row, Term, blank_nodes, is_triple, triple_parts, with_blank_nodes
from streamgauge.oracle.worlds.components import components
from streamgauge.oracle.worlds.intervals import close, finite

MAX_CANDIDATES = 10_000
"""Maximum number of candidates that the exact search tries for one pair of components."""


Computed = Mapping[int, Mapping[Term | None, Term | None]]
"""Columns of computed terms, each with the representative of every term while blank nodes are matched."""


def renamed(expected: Sequence[Row], actual: Sequence[Row], computed: Computed | None = None) -> tuple[Row, ...]:
    """The actual rows with blank nodes renamed to those of the expected rows, to make as many rows as possible equal.

    Rows that share blank nodes form a component. Components are compared by colour refinement and matched exactly, by a
    bounded search if refinement leaves several candidates; the others are paired by similarity. A blank node without a
    counterpart gets a name that no expected row has.
    """
    if not has_blanks(actual):
        return tuple(actual)
    # Only rows with blank nodes take part: the others are the same under any renaming.
    names = _matching(_known(expected, computed or {}), _known(actual, computed or {}))
    fresh = count()

    def name(blank: Term) -> Term:
        if blank not in names:
            names[blank] = f"_:only-received-{next(fresh)}"
        return names[blank]

    return tuple(tuple(term and with_blank_nodes(term, name) for term in row) for row in actual)


def readings(
    expected: Sequence[Row], actual: Sequence[Row], computed: Collection[int], opened: Collection[int] = ()
) -> Iterator[Sequence[Row]]:
    """The actual rows with renamed blank nodes, in up to two ways.

    The first distinguishes blank nodes by computed numbers, up to tolerance; the second ignores computed columns and
    those of ``opened``, whose terms may be equal to several others.
    """
    if not has_blanks(expected) or not has_blanks(actual):
        yield actual
        return
    every = [*expected, *actual]
    wide = [row for row in every if len(row) > max(computed, default=0)]
    yield renamed(expected, actual, alike_numbers(wide, computed))
    if plain := {*computed, *opened}:
        columns = {at: [row[at] for row in every if len(row) > at] for at in plain}
        yield renamed(
            expected,
            actual,
            {at: {term: None for term in terms if not has_blanks([(term,)])} for at, terms in columns.items()},
        )


_label: Final = itemgetter(slice(2))


def has_blanks(rows: Collection[Row]) -> bool:
    """Whether some row contains a blank node: a term that begins with ``_:``, or a triple term with one."""
    # Two characters of each term suffice: ``_:`` begins a blank node, ``<<`` a triple term, which may contain one.
    labels = set(map(_label, filter(None, chain.from_iterable(rows))))
    return "_:" in labels or ("<<" in labels and any(any(_blanks(row)) for row in rows))


def _known(rows: Iterable[Row], computed: Computed) -> list[Row]:
    """The rows that contain blank nodes, with computed terms replaced by their representatives."""
    known = (
        tuple(computed[i].get(term, term) if i in computed else term for i, term in enumerate(row)) for row in rows
    )
    return [row for row in known if has_blanks((row,))]


def alike_numbers(rows: Sequence[Row], computed: Collection[int]) -> Computed:
    """For each computed column the representative of each number: the first of a chain of close neighbours."""
    neighbours: dict[int, dict[Term | None, Term | None]] = {}
    for place in computed:
        numbers = {(value, row[place]) for row in rows if (value := finite(row[place])) is not None}
        neighbours[place] = {}
        for (_, before), (_, term) in pairwise(sorted(numbers)):
            # Worked example: where 1.0 is close to 1.1 and 1.1 to 1.2, all three have the representative 1.0, although
            # 1.0 and 1.2 are not close. Renaming needs classes; ``fits`` decides about the numbers afterwards.
            neighbours[place][term] = neighbours[place].get(before, before) if close(before, term) else term
    return neighbours


def _blanks(row: Row) -> Iterator[Term]:
    return chain.from_iterable(blank_nodes(term) for term in row if term and term[0] in "_<")


Colours = dict[Term, int]


@dataclass
class _Palette:
    """Numbers for colours, shared by both sides so that equal structures have equal numbers."""

    numbers: dict[object, int] = field(default_factory=dict)
    choices: int = MAX_CANDIDATES

    def number(self, thing: object) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))


class _Component:
    """Rows connected by blank nodes, with the colours after each round of refinement."""

    def __init__(self, rows: list[Row], palette: _Palette) -> None:
        self.of: dict[Term, list[Row]] = defaultdict(list)
        for row in rows:
            for blank in set(_blanks(row)):
                self.of[blank].append(row)
        self.history = self.refined(dict.fromkeys(self.of, 0), palette)
        self.signature = tuple(sorted(self.history[-1].values()))

    def refined(self, colours: Colours, palette: _Palette) -> list[Colours]:
        """The colours after each round, until a round distinguishes no more blank nodes."""
        history = [colours]
        while True:
            last = history[-1]
            now = {blank: palette.number((last[blank], self._seen(blank, last, palette))) for blank in self.of}
            history.append(now)
            # A colour includes the one before, so classes are only ever split: as many as before means the same ones.
            if len(set(now.values())) == len(set(last.values())):
                return history

    def _seen(self, blank: Term, colours: Colours, palette: _Palette) -> tuple[int, ...]:
        return tuple(sorted(palette.number(_pattern(row, blank, colours)) for row in self.of[blank]))


def _pattern(row: Row, blank: Term, colours: Colours) -> tuple[object, ...]:
    return tuple(_part_pattern(term, blank, colours) if term else term for term in row)


def _part_pattern(term: Term, blank: Term, colours: Colours) -> object:
    if is_triple(term) and "_:" in term:
        return tuple(_part_pattern(part, blank, colours) for part in triple_parts(term))
    # Itself is True and no colour, so that (_:a p _:a) differs from (_:a p _:b) where both have one colour.
    return True if term == blank else colours.get(term, term)


def _matching(expected: Sequence[Row], actual: Sequence[Row]) -> dict[Term, Term]:
    """A mapping from received to expected blank nodes."""
    palette = _Palette()
    waiting: dict[tuple[int, ...], list[_Component]] = defaultdict(list)
    for group in components(expected, _blanks):
        component = _Component(group, palette)
        waiting[component.signature].append(component)
    names: dict[Term, Term] = {}
    odd: list[_Component] = []
    for group in components(actual, _blanks):
        component = _Component(group, palette)
        for other in waiting[component.signature]:
            # Anew for each pair: a pair that is hard to match takes nothing from the others.
            palette.choices = MAX_CANDIDATES
            names_of = _isomorphism(other, component, other.history[-1], component.history[-1], palette)
            if names_of is not None:
                names.update(names_of)
                waiting[component.signature].remove(other)
                break
        else:
            odd.append(component)
    names.update(_likeliest([one for left in waiting.values() for one in left], odd))
    return names


def _isomorphism(
    expected: _Component, actual: _Component, wanted: Colours, colours: Colours, palette: _Palette
) -> dict[Term, Term] | None:
    """A mapping from received to expected blank nodes under which all rows are equal.

    ``None`` if there is none, or none was found within ``MAX_CANDIDATES``. Picks the smallest class of equal colours,
    marks one expected member and each received one in turn, and refines again.
    """
    classes, others = _classes(wanted), _classes(colours)
    if {colour: len(blanks) for colour, blanks in classes.items()} != {c: len(blanks) for c, blanks in others.items()}:
        return None
    open_classes = [colour for colour, blanks in classes.items() if len(blanks) > 1]
    # A colour stands for the rows of its blank node, in the colours of their other blank nodes: where each blank node
    # has a colour of its own, equal colours mean equal rows.
    if not open_classes:
        return {others[colour][0]: blanks[0] for colour, blanks in classes.items()}
    colour = min(open_classes, key=lambda colour: len(classes[colour]))
    # The same mark on both sides, so that the marked nodes are taken for each other.
    mark = palette.number(None)
    first = expected.refined({**wanted, classes[colour][0]: mark}, palette)[-1]
    for candidate in others[colour]:
        palette.choices -= 1
        if palette.choices < 0:
            return None
        second = actual.refined({**colours, candidate: mark}, palette)[-1]
        deeper = _isomorphism(expected, actual, first, second, palette)
        if deeper is not None:
            return deeper
    return None


def _classes(colours: Colours) -> dict[int, list[Term]]:
    classes: dict[int, list[Term]] = defaultdict(list)
    for blank, colour in colours.items():
        classes[colour].append(blank)
    return classes


def _likeliest(expected: Sequence[_Component], actual: Sequence[_Component]) -> dict[Term, Term]:
    """A mapping between components without an exact match: blank nodes that had equal colours for the most rounds."""
    names: dict[Term, Term] = {}
    rounds = list(zip_longest(*(one.history for one in (*expected, *actual)), fillvalue={}))
    # From the last round, which tells most blank nodes apart, to the first, in which all are alike.
    for colours in reversed(rounds):
        taken, free = {*names.values()}, defaultdict[int, list[Term]](list)
        for blank, colour in _pairs(colours[: len(expected)]):
            if blank not in taken:
                free[colour].append(blank)
        for blank, colour in _pairs(colours[len(expected) :]):
            if blank not in names and free[colour]:
                names[blank] = free[colour].pop(0)
    return names


def _pairs(colours: Iterable[Colours]) -> Iterator[tuple[Term, int]]:
    return chain.from_iterable(of.items() for of in colours)
