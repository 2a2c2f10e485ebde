"""Selection of the resources that are published, and their order.

Each query has an equal number of resources, drawn by the seed alone.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import count
from random import Random
from typing import Final, TypeVar

from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_expression, every_pattern, expressions, parts, with_names
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import Configuration, SepbmChannel


@dataclass(frozen=True, slots=True)
class VariedQuery:
    """A query with a variable for the constant that varies; ``own`` is the query's constant, if any."""

    body: al.Pattern
    names: tuple[str, ...]
    value: al.Var
    own: Term | None

    @property
    def general(self) -> al.Select:
        """The distinct rows for all values, with the value as the last column."""
        return _select(self.body, (*self.names, self.value.name))

    def channel(self, name: str, value: Term) -> SepbmChannel:
        """The channel for one value."""
        body = with_names(self.body, {self.value: value})
        form = al.Select(al.Project(body, tuple(map(al.Var, self.names))), self.names)
        return SepbmChannel(name, sparql(form) + "\n")


@dataclass(frozen=True, slots=True)
class ChannelShape:
    """Channels that share a query: by the value of its last column, or all of its rows (``value`` is ``None``)."""

    name: str
    form: al.Select
    value: al.Var | None
    channels: Mapping[Term, tuple[str, ...]]


def shapes(configuration: Configuration) -> Iterator[ChannelShape]:
    """The channels of a configuration, grouped by the query that answers them."""
    alike: dict[str, dict[Term, tuple[str, ...]]] = {}
    for name, (of, value) in configuration.about.alike.items():
        among = alike.setdefault(of, {})
        among[value] = (*among.get(value, ()), name)
    for channel in configuration.channels:
        if channel.name not in configuration.about.alike:
            yield from _shapes(channel, alike.get(channel.name, {}))


def _shapes(channel: SepbmChannel, alike: dict[Term, tuple[str, ...]]) -> Iterator[ChannelShape]:
    form = channel.form
    shape = varied(form) if alike else None
    if shape is None or shape.own is None:
        yield ChannelShape(channel.name, as_set(form), None, {"": (channel.name,)})
    else:
        alike = {**alike, shape.own: (channel.name, *alike.get(shape.own, ()))}
    if shape is not None:
        yield ChannelShape(channel.name, shape.general, shape.value, alike)


def as_set(form: al.Select) -> al.Select:
    """The query with DISTINCT."""
    return replace(form, pattern=al.Distinct(form.pattern))


def varied(form: al.Select) -> VariedQuery | None:
    """The query with a variable for what varies between derived channels, ``None`` if nothing can.

    That is the first constant that can be replaced, else a variable that can be fixed.
    """
    body = _body(form)
    if body is None:
        return None
    for constant in _constants(body):
        # A variable that the pattern does not have, so that replacing the constant joins nothing.
        fresh = next(var for n in count() if (var := al.Var(f"value{n}")) not in al.pattern_variables(body))
        # Everywhere, because a constant that occurs twice means the same resource.
        general = _replaced(body, constant, fresh)
        if fresh in _certain(general):
            return VariedQuery(general, form.variables, fresh, constant)
    others = [al.Var(name) for name in form.variables[1:]]
    others += [var for var in al.pattern_variables(body) if var.name not in form.variables and var.name[0] != "_"]
    for var in others:
        if var in _certain(body):
            return VariedQuery(body, tuple(name for name in form.variables if name != var.name), var, None)
    return None


def _body(form: al.Select) -> al.Pattern | None:
    """The projected pattern, in which a constant for a variable selects the rows with that value."""
    pattern = form.pattern
    while isinstance(pattern, al.Distinct | al.Reduced):
        pattern = pattern.pattern
    if not isinstance(pattern, al.Project):
        return None
    for part in every_pattern(pattern.pattern):
        trees = [expression for tree in expressions(part) for expression in every_expression(tree)]
        if not isinstance(part, al.BGP | al.Join | al.Union | al.Filter) or any(
            isinstance(t, al.Exists) for t in trees
        ):
            return None
    return pattern.pattern


def _ends(triple: al.TriplePattern) -> tuple[al.Node, ...]:
    """The terms of a triple pattern in places of resources; classes and properties are none."""
    return (triple.subject,) if triple.predicate == RDF_TYPE else (triple.subject, triple.object)


def _constants(body: al.Pattern) -> list[Term]:
    patterns = [part for part in every_pattern(body) if isinstance(part, al.BGP)]
    ends = (end for part in patterns for triple in part.patterns for end in _ends(triple))
    return [end for end in ends if isinstance(end, str)]


def _replaced(pattern: al.Pattern, constant: Term, var: al.Var) -> al.Pattern:
    """The pattern with a variable instead of a constant in its triple patterns."""
    if isinstance(pattern, al.BGP):
        return al.BGP(tuple(_turned(triple, constant, var) for triple in pattern.patterns))
    again: Callable[[al.Pattern], al.Pattern] = partial(_replaced, constant=constant, var=var)
    return parts(pattern, again, lambda tree: tree)


def _turned(triple: al.TriplePattern, constant: Term, var: al.Var) -> al.TriplePattern:
    subject = var if triple.subject == constant else triple.subject
    end = var if triple.object == constant and triple.predicate != RDF_TYPE else triple.object
    return replace(triple, subject=subject, object=end)


def _certain(pattern: al.Pattern) -> frozenset[al.Node]:
    """The variables that are bound to a resource in every solution."""
    match pattern:
        case al.BGP(patterns=patterns):
            return frozenset(end for triple in patterns for end in _ends(triple) if isinstance(end, al.Var))
        case al.Join(left=left, right=right):
            return _certain(left) | _certain(right)
        case al.Union(left=left, right=right):
            # A row may come from either side, and the value has to be in all rows.
            return _certain(left) & _certain(right)
        case al.Filter(pattern=inner):
            return _certain(inner)
        case _:
            return frozenset()


def _select(body: al.Pattern, names: tuple[str, ...]) -> al.Select:
    return al.Select(al.Distinct(al.Project(body, tuple(map(al.Var, names)))), names)


Item = TypeVar("Item", bound=Hashable)


class SelectionRule(StrEnum):
    """Which of an answer's IRIs are published as resources (the paper leaves it open)."""

    FIRST = "first"  # the first variable's: what the row is about
    ANY = "any"  # those of any variable: departments and universities too, which make many rows at once


MOST_DELETED: Final = 0.4
"""Maximum share of deletions: each resource is deleted at most once, and half of them are published again."""


def dealt(offered: Mapping[str, Sequence[Item]], limit: int) -> dict[str, list[Item]]:
    """Distribute at most ``limit`` items: names take turns, each the next item offered to it that none has taken.

    All have the same number unless some are offered too few; then the others have more. ``dealt({"a": [1, 2, 3],
    "b": [1, 4]}, 3)`` gives ``{"a": [1, 2], "b": [4]}``.
    """
    taken: dict[Item, None] = {}
    items: dict[str, list[Item]] = {name: [] for name in offered}
    left = {name: iter(items) for name, items in offered.items()}
    while left and len(taken) < limit:
        for name in [*left]:
            item = next((item for item in left[name] if item not in taken), None)
            if item is None:
                del left[name]
            elif len(taken) < limit:
                taken[item] = None
                items[name].append(item)
    return items


def distinct_resources(publications: int, deletes: float) -> int:
    """The number of resources of a sequence with a share of deletions, half of which are published again."""
    deleted = deletions(publications, deletes)
    return publications - deleted - deleted // 2


def deletions(publications: int, deletes: float) -> int:
    """The number of deletions: the share, rounded, and no more than there are resources to delete.

    Of 34 publications 40% are 13.6; 14 would leave 34 - 14 - 7 = 13 resources, so 13 delete.
    """
    deleted = round(publications * deletes)
    while deleted > publications - deleted - deleted // 2:
        deleted -= 1
    return deleted


def arranged(resources: Iterable[Term], publications: int, deletes: float, seed: int) -> Iterator[tuple[Term, int]]:
    """Resources in a drawn order, each with 1 (published) or -1 (deleted).

    Some are deleted after they were published; every other one of these is published again after that.
    """
    random = Random(seed)
    # Sorted, so that the draw depends on the seed alone and not on the order of the answers.
    listed = sorted(resources)
    gone = random.sample(listed, deletions(publications, deletes))
    turns = listed + gone + gone[: len(gone) // 2]
    random.shuffle(turns)
    seen: dict[Term, int] = {}
    for term in turns:
        seen[term] = seen.get(term, 0) + 1
        # The second turn of a resource deletes it, whichever of its turns that was before shuffling.
        yield term, -1 if seen[term] == 2 else 1


def publications(turns: Iterable[tuple[Term, int]], described: Mapping[Term, tuple[Triple, ...]]) -> list[Publication]:
    """The sequence: each publication adds or removes all statements about a resource (its bounded description)."""
    return [
        Publication(number, *((described[term], ()) if sign > 0 else ((), described[term])))
        for number, (term, sign) in enumerate(turns, 1)
    ]
