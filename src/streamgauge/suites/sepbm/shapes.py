"""Many channels alike: the queries with other constants, and one query with a column for the constant asks for all.

Of a query whose triple patterns name a resource, that is what differs; of another one a variable beside the first of
its answer gets a value. A query with neither has no channels alike.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_expression, every_pattern, expressions, parts, with_names
from streamgauge.suites.sepbm.configuration import Stored
from streamgauge.suites.sepbm.contract import SepbmChannel


@dataclass(frozen=True, slots=True)
class VariedQuery:
    """A query's pattern with a variable for what differs; ``own`` is the query's constant, if it has one."""

    body: al.Pattern
    names: tuple[str, ...]
    value: al.Var
    own: Term | None

    @property
    def general(self) -> al.Select:
        """The set of the rows for all values, the value as the last column."""
        return _select(self.body, (*self.names, self.value.name))

    def channel(self, name: str, value: Term) -> SepbmChannel:
        """The channel that asks for one value."""
        body = with_names(self.body, {self.value: value})
        form = al.Select(al.Project(body, tuple(map(al.Var, self.names))), self.names)
        return SepbmChannel(name, sparql(form) + "\n")


@dataclass(frozen=True, slots=True)
class ChannelShape:
    """Channels that one query answers: by the value of its last column, or all of its rows (``value`` is ``None``)."""

    name: str
    form: al.Select
    value: al.Var | None
    channels: Mapping[Term, tuple[str, ...]]


def shapes(configuration: Stored) -> Iterator[ChannelShape]:
    """The channels of a configuration by what they share; each is in one."""
    alike: dict[str, dict[Term, tuple[str, ...]]] = {}
    for name, (of, value) in configuration.about.alike.items():
        among = alike.setdefault(of, {})
        among[value] = (*among.get(value, ()), name)
    for channel in configuration.channels:
        if channel.name not in configuration.about.alike:
            yield from _shapes(channel, alike.get(channel.name, {}))


def _shapes(channel: SepbmChannel, alike: dict[Term, tuple[str, ...]]) -> Iterator[ChannelShape]:
    form = selected(channel)
    found = varied(form) if alike else None
    if found is None or found.own is None:
        yield ChannelShape(channel.name, as_set(form), None, {"": (channel.name,)})
    else:
        alike = {**alike, found.own: (channel.name, *alike.get(found.own, ()))}
    if found is not None:
        yield ChannelShape(channel.name, found.general, found.value, alike)


def selected(channel: SepbmChannel) -> al.Select:
    """The query of a channel; ValueError names one that is no SELECT."""
    form = parse_sparql(channel.query)
    if not isinstance(form, al.Select):
        raise ValueError(f"channel {channel.name}: a channel's query is a SELECT")
    return form


def as_set(form: al.Select) -> al.Select:
    """The query with each row once."""
    return replace(form, pattern=al.Distinct(form.pattern))


def varied(form: al.Select) -> VariedQuery | None:
    """The part of a query that differs between channels alike; ``None`` when nothing can."""
    body = _body(form)
    if body is None:
        return None
    for constant in _constants(body):
        fresh = next(var for n in count() if (var := al.Var(f"value{n}")) not in al.pattern_variables(body))
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
    """The projected pattern, where a constant for one of its variables means the rows with that value."""
    pattern = form.pattern
    while isinstance(pattern, al.Distinct | al.Reduced):
        pattern = pattern.pattern
    if not isinstance(pattern, al.Project):
        return None
    for part in every_pattern(pattern.pattern):
        trees = [each for tree in expressions(part) for each in every_expression(tree)]
        if not isinstance(part, al.BGP | al.Join | al.Union | al.Filter) or any(
            isinstance(t, al.Exists) for t in trees
        ):
            return None
    return pattern.pattern


def _ends(triple: al.TriplePattern) -> tuple[al.Node, ...]:
    """Where a resource may stand in a triple pattern; classes and properties are no resources."""
    return (triple.subject,) if triple.predicate == RDF_TYPE else (triple.subject, triple.object)


def _constants(body: al.Pattern) -> list[Term]:
    patterns = [part for part in every_pattern(body) if isinstance(part, al.BGP)]
    ends = (end for part in patterns for triple in part.patterns for end in _ends(triple))
    return [end for end in ends if isinstance(end, str)]


def _replaced(pattern: al.Pattern, constant: Term, var: al.Var) -> al.Pattern:
    """The pattern with a variable in the place of a constant in its triple patterns."""
    if isinstance(pattern, al.BGP):
        return al.BGP(tuple(_turned(triple, constant, var) for triple in pattern.patterns))
    again: Callable[[al.Pattern], al.Pattern] = partial(_replaced, constant=constant, var=var)
    return parts(pattern, again, lambda tree: tree)


def _turned(triple: al.TriplePattern, constant: Term, var: al.Var) -> al.TriplePattern:
    subject = var if triple.subject == constant else triple.subject
    end = var if triple.object == constant and triple.predicate != RDF_TYPE else triple.object
    return replace(triple, subject=subject, object=end)


def _certain(pattern: al.Pattern) -> frozenset[al.Node]:
    """The variables that stand for a resource in every solution."""
    match pattern:
        case al.BGP(patterns=patterns):
            return frozenset(end for triple in patterns for end in _ends(triple) if isinstance(end, al.Var))
        case al.Join(left=left, right=right):
            return _certain(left) | _certain(right)
        case al.Union(left=left, right=right):
            return _certain(left) & _certain(right)
        case al.Filter(pattern=inner):
            return _certain(inner)
        case _:
            return frozenset()


def _select(body: al.Pattern, names: tuple[str, ...]) -> al.Select:
    return al.Select(al.Distinct(al.Project(body, tuple(map(al.Var, names)))), names)
