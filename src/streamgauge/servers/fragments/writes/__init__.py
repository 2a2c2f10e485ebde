"""Changes of facts in a data set: add, remove, replace and expire, collected in a draft that becomes changes of quads.

If all facts of a group change their label together, the label is rewritten in place, so that renewing a thousand facts
changes a quad or two. With an expiration label only the latest version of a fact is kept; touching intervals of a
triple are merged (Taelman et al., ESWC 2016, 5.1: intervals of a fact do not overlap). All operations of a request are
applied to one draft.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as altered
from itertools import count, product
from typing import Final

from streamgauge.model.algebra import BGP
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term, Triple
from streamgauge.query.traversal import every_pattern
from streamgauge.query.updates import UpdateOperation
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.labels import FIRST, LAST, Bounds, Label, as_labelled, label_subject
from streamgauge.servers.fragments.pages.dataset import DataSet, LocatedFact, TooManyError, TripleMatch, located_facts
from streamgauge.servers.fragments.pages.selections import fits
from streamgauge.servers.fragments.store import QuadChanges
from streamgauge.sparql.algebra import UndefinedError
from streamgauge.sparql.expression import UnsupportedFunctionError
from streamgauge.sparql.needs import Looks, TooManySolutionsError, is_plain
from streamgauge.sparql.updates import change

MAX_PATTERN_FACTS: Final = 100_000
"""Facts that one request may change by a pattern."""

SWEPT: Final = 10_000
"""Ended quads that one sweep removes."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The effect of a write: numbers of facts added and removed (a new validity counts as both), and the quads."""

    added: int
    removed: int
    quads: QuadChanges


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change as quads, with the numbers of facts added (``come``) and removed (``gone``)."""

    come: int
    gone: int
    removed: list[Quad]
    added: list[ExpiringQuad]


def add(dataset: DataSet, facts: Iterable[Fact]) -> WriteResult:
    """Add facts in a change of their own."""
    draft = FactDraft(dataset)
    draft.add(facts)
    return draft.commit()


def sweep(dataset: DataSet, before: int) -> QuadChanges:
    """Remove quads that had ended by an instant (ms), ``SWEPT`` at most."""
    return dataset.change(dataset.store.expired(before, SWEPT), ())


class FactDraft:
    """Several changes that become one, each of which sees the effect of the earlier ones; ``commit`` applies them."""

    def __init__(self, dataset: DataSet, limit: int = MAX_PATTERN_FACTS) -> None:
        self._dataset, self._store, self._style, self._limit = dataset, dataset.store, dataset.style, limit
        self._now, self._version, self._open = dataset.clock(), dataset.store.version, False
        self._holding: dict[TripleMatch, list[Triple]] = {}
        self._before: dict[Triple, list[LocatedFact]] = {}
        self._after: dict[Triple, list[Fact]] = {}
        self._places: dict[tuple[int, Term], dict[Triple, None]] = {}
        self._fetched = set[TripleMatch]()

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts to the existing ones; a new expiration replaces that of the same triple."""
        label = self._style.label
        for fact in facts:
            facts_ = joined(self._of(fact.triple), as_labelled(fact, label), label)
            # A fact that has ended already replaces the earlier one, and would itself be swept at once.
            over = label is Label.EXPIRATION and fact.final is not None and fact.final <= self._now
            self._after[fact.triple] = [] if over else facts_

    def remove(self, wanted: TripleMatch) -> None:
        """Remove all facts of the selected triples, their past included."""
        for triple in self._matching(wanted):
            self._after[triple] = []

    def expire(self, wanted: TripleMatch, at: int) -> None:
        """End the facts of the selected triples at an instant (ms); earlier intervals stay."""
        for triple in self._matching(wanted):
            self._after[triple] = self._ended(triple, at)

    def replace(self, wanted: TripleMatch, facts: Iterable[Fact]) -> None:
        """End the selected triples now and add ``facts``; a triple that is in both continues."""
        come = list(facts)
        staying = {fact.triple for fact in come}
        for triple in self._matching(wanted):
            if triple not in staying:
                self._after[triple] = self._ended(triple, self._now)
        self.add(come)

    def end(self, triple: Triple, at: int) -> None:
        """End the facts of a triple that hold at an instant (ms); facts that begin later stay."""
        current = [fact for fact in self._of(triple) if fact.holds(at)]
        # `_of` has loaded the triple, so both dictionaries have it.
        self._after[triple] = [fact for fact in self._after[triple] if fact not in current]
        ended = (altered(fact, final=at) for fact in current if _begins(fact) < at)
        if self._style.label is not Label.EXPIRATION or at > self._now:
            self._after[triple] += ended

    def cached_holding(self, wanted: TripleMatch) -> list[Triple]:
        """``holding``, cached; only for calls between which the draft does not change."""
        facts = self._holding.get(wanted)
        if facts is None:
            facts = self._holding[wanted] = self.holding(wanted)
        return facts

    def holding(self, wanted: TripleMatch) -> list[Triple]:
        """The selected triples that hold now."""
        return [t for t in self._matching(wanted) if any(fact.holds(self._now) for fact in self._after[t])]

    def stale(self) -> bool:
        """Whether others have changed something since the draft began that it depends on.

        A draft that has read by a pattern depends on everything. Otherwise it depends on quads that mention a subject
        of its triples or of their annotations, wherever in the quad.
        """
        if self._store.version == self._version:
            return False
        # `None` if the store no longer knows the changes since then.
        changes = self._store.changed((None, None, None, None), self._version)
        if self._open or changes is None:
            return True
        known = {quad[0] for located in self._before.values() for fact in located for quad in (*fact.own, *fact.label)}
        known |= {triple[0] for triple in self._before}
        return any(not known.isdisjoint(quad) for quad in (*changes.added, *changes.removed))

    def commit(self) -> WriteResult:
        """Apply the change and return its effect."""
        planned = self.planned()
        if planned is None:
            return self.nothing()
        return WriteResult(planned.come, planned.gone, self._dataset.change(planned.removed, planned.added))

    def nothing(self) -> WriteResult:
        """The result of a change without an effect."""
        return WriteResult(0, 0, QuadChanges(self._store.version, (), ()))

    def planned(self, serial: str = "") -> PlannedChange | None:
        """The change as quads; ``None`` if it has no effect.

        ``serial`` becomes part of new names, so that changes which are planned concurrently use different ones.
        """
        triples = list(self._after)
        gone = [
            located for triple in triples for located in self._before[triple] if located.fact not in self._after[triple]
        ]
        before = {located.fact for triple in triples for located in self._before[triple]}
        come = [fact for triple in triples for fact in self._after[triple] if fact not in before]
        if not gone and not come:
            return None
        # Before `annotate`: names that become free are used again.
        removed, names = self._vacated(gone)
        added = method(self._style.method).annotate(come, self._style, _Names(self._dataset, names, serial))
        staying = self._shared_by_those_that_stay(triples)
        lasting = [(quad, _later(end, staying[quad]) if quad in staying else end) for quad, end in added]
        kept = {quad for quad, _ in lasting}
        return PlannedChange(
            len(come),
            len(gone),
            [quad for quad in removed if quad not in kept and quad not in staying],
            [*lasting, *((quad, end) for quad, end in staying.items() if quad in removed and quad not in kept)],
        )

    def _of(self, triple: Triple) -> list[Fact]:
        if triple not in self._after:
            self._know(triple, list(located_facts(self._store, triple, self._style)))
        return self._after[triple]

    def _know(self, triple: Triple, located: list[LocatedFact]) -> None:
        self._before[triple], self._after[triple] = located, [entry.fact for entry in located]
        for place in enumerate(triple):
            self._places.setdefault(place, {})[triple] = None

    def _matching(self, wanted: TripleMatch) -> list[Triple]:
        """The selected triples that have facts in the store or in the draft."""
        self._open = self._open or None in wanted
        # A match that was read contains this one: all its triples are in the draft.
        if not self._fetched.isdisjoint(_wider(wanted)):
            return self._known(wanted)
        facts_by_triple: dict[Triple, list[LocatedFact]] = {}
        for number, fact in enumerate(located_facts(self._store, wanted, self._style)):
            if number >= self._limit:
                raise TooManyError(f"more than {self._limit} facts match: name more of their triples")
            facts_by_triple.setdefault(fact.fact.triple, []).append(fact)
        for triple, facts in facts_by_triple.items():
            if triple not in self._after:
                self._know(triple, facts)
        self._fetched.add(wanted)
        return self._known(wanted)

    def _known(self, wanted: TripleMatch) -> list[Triple]:
        """The selected triples that the draft has loaded, in that order."""
        places = [(place, term) for place, term in enumerate(wanted) if term is not None]
        # The rarest bound term decides: an update with a thousand templates would otherwise pass over the draft a
        # thousand times.
        among = min((self._places.get(place, {}) for place in places), key=len, default=self._after)
        if len(places) == len(wanted):
            triple = (str(wanted[0]), str(wanted[1]), str(wanted[2]))
            return [triple] if triple in among else []
        return [triple for triple in among if fits((*triple, DEFAULT), (*wanted, None))]

    def _ended(self, triple: Triple, at: int) -> list[Fact]:
        """The facts of a triple, ended at ``at``; an expiration that has passed is dropped."""
        kept = [fact for fact in self._of(triple) if (FIRST if fact.initial is None else fact.initial) < at]
        ended = [fact if fact.final is not None and fact.final <= at else altered(fact, final=at) for fact in kept]
        return [fact for fact in ended if self._style.label is not Label.EXPIRATION or at > self._now]

    def _vacated(self, gone: Sequence[LocatedFact]) -> tuple[dict[Quad, None], dict[Triple, list[str]]]:
        """Quads to remove with facts, and the names of their annotations that become free, by triple.

        The quads of a group's label are removed only with the last quad of the group.
        """
        removed = dict.fromkeys(quad for located in gone for quad in located.own)
        names: dict[Triple, list[str]] = {}
        leaving = Counter(member for member, _ in set(_members(gone)))
        # The label stays as long as one member does, for which others may have been written since.
        empty = {member for member, number in leaving.items() if self._store.count(member) == number}
        for located in gone:
            if located.member is None or located.member in empty:
                removed.update(dict.fromkeys(located.label))
                if located.name is not None:
                    names.setdefault(located.fact.triple, []).append(located.name)
        return removed, names

    def _shared_by_those_that_stay(self, triples: Sequence[Triple]) -> dict[Quad, int | None]:
        """Quads of facts that remain, for triples of which other facts change, with the latest end of those facts."""
        staying: dict[Quad, int | None] = {}
        for triple in triples:
            for located in self._before[triple]:
                if located.fact in self._after[triple]:
                    for quad in located.own:
                        end = located.fact.final
                        staying[quad] = _later(end, staying[quad]) if quad in staying else end
        return staying


def _wider(wanted: TripleMatch) -> Iterator[TripleMatch]:
    """All matches that contain a match, itself included."""
    s, p, o = ((term, None) if term is not None else (None,) for term in wanted)
    return product(s, p, o)


class _Names:
    """Names for groups: preferably one that its facts leave unused, else a new one."""

    def __init__(self, dataset: DataSet, vacated: dict[Triple, list[str]], serial: str) -> None:
        self._store, self._style = dataset.store, dataset.style
        self._vacated, self._used = vacated, set[str]()
        start = f"{self._store.version + 1:x}{serial}"
        self._fresh = (f"{start}.{number:x}" for number in count())

    def __call__(self, facts: Sequence[Fact]) -> str:
        # Reusing a name leaves the quads that mention it unchanged: of a renewed group only the label's quads differ.
        own = (name for fact in facts for name in self._vacated.get(fact.triple, ()))
        name = next(name for candidates in (own, self._unused(facts)) for name in candidates if name not in self._used)
        self._used.add(name)
        return name

    def _unused(self, facts: Sequence[Fact]) -> Iterator[str]:
        starts = {f"{fact.triple[1][:-1]}-" for fact in facts}
        for name in self._fresh:
            subjects = [label_subject(self._style, name), *(f"{start}{name}>" for start in starts)]
            if not any(self._store.count((subject, None, None, DEFAULT)) for subject in subjects):
                yield name


def joined(facts: Sequence[Fact], fact: Fact, label: Label) -> list[Fact]:
    """The facts of a triple after adding one, as far as the label can express them.

    Intervals [0, 10) and [20, 30) with [10, 15) added become [0, 15) and [20, 30).
    """
    if label is Label.EXPIRATION:
        return [fact]
    if label is Label.INSTANT:
        return list(dict.fromkeys([*facts, fact]))
    touching = [other for other in facts if _begins(other) <= _ends(fact) and _begins(fact) <= _ends(other)]
    initial = min([fact, *touching], key=_begins).initial
    final = max([fact, *touching], key=_ends).final
    return [*(fact for fact in facts if fact not in touching), Fact(fact.triple, initial, final)]


def _begins(fact: Fact) -> int:
    return FIRST if fact.initial is None else fact.initial


def _ends(fact: Fact) -> int:
    return LAST if fact.final is None else fact.final


def _later(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _members(gone: Iterable[LocatedFact]) -> Iterator[tuple[Match, Quad]]:
    """The quads that make facts members of their groups, with the groups' matches."""
    for located in gone:
        if located.member is not None:
            yield from ((located.member, quad) for quad in located.own if fits(quad, located.member))


MAX_TRIPLES: Final = 100_000
"""Triples that the body of one request may have, in all its operations together."""


class TripleAllowance:
    """Counts the triples of a body against a limit."""

    def __init__(self, limit: int = MAX_TRIPLES) -> None:
        self._limit = self._left = limit

    def take(self) -> None:
        """Count a triple; TooManyError above the limit."""
        self._left -= 1
        if self._left < 0:
            raise TooManyError(f"the body has more than {self._limit} triples: send them in several requests")


ALONE: Final = 1_000_000
"""The cost of an operation that is always planned in a thread."""

MAX_LOOKUPS: Final = 50_000
"""Facts that the WHERE of an update may visit, and its templates produce."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of a request: ``apply`` adds it to a draft, ``cost`` estimates the number of facts it visits."""

    apply: Callable[[FactDraft], None]
    cost: Callable[[DataSet], int]


def addition(facts: Sequence[Fact]) -> Operation:
    """An operation that adds facts."""
    return Operation(lambda draft: draft.add(facts), lambda _: len(facts))


def replacement(wanted: TripleMatch, facts: Sequence[Fact]) -> Operation:
    """An operation that replaces the selected triples by facts from now on."""
    return Operation(lambda draft: draft.replace(wanted, facts), lambda data: _matching(data, wanted) + len(facts))


def expiration(wanted: TripleMatch, at: int | None) -> Operation:
    """An operation that ends the selected triples at ``at`` (ms), or without a time removes them with their past."""
    if at is None:
        return Operation(lambda draft: draft.remove(wanted), lambda data: _matching(data, wanted))
    return Operation(lambda draft: draft.expire(wanted, at), lambda data: _matching(data, wanted))


def modification(operation: UpdateOperation, at: int, bounds: Bounds) -> Operation:
    """DELETE and INSERT with a WHERE over the triples that hold now, as an operation (SPARQL 1.1 Update, 3.1.3).

    The cost is the number of templates times an upper bound of WHERE's solutions. ``apply`` raises TooManyError for
    too many solutions, and for a WHERE that is not supported.
    """

    def apply(draft: FactDraft) -> None:
        try:
            deleted, inserted = change(
                operation, lambda *pattern: draft.cached_holding(pattern), MAX_PATTERN_FACTS, Looks(MAX_LOOKUPS)
            )
        except TooManySolutionsError as error:
            raise TooManyError(str(error)) from error
        except (UndefinedError, UnsupportedFunctionError, RecursionError) as error:
            raise TooManyError(f"WHERE: {error}") from error
        for triple in deleted:
            draft.expire(triple, at)
        draft.add(Fact(triple, *bounds) for triple in inserted)

    def cost(dataset: DataSet) -> int:
        if operation.where is None:
            return len(operation.removed) + len(operation.added)
        size = len(operation.delete) + len(operation.insert)
        if not is_plain(operation.where):
            return ALONE
        patterns = sum(len(part.patterns) for part in every_pattern(operation.where) if isinstance(part, BGP))
        solutions: int = min(ALONE, _matching(dataset, (None, None, None)) ** patterns)
        return size * solutions

    return Operation(apply, cost)


def _matching(dataset: DataSet, wanted: TripleMatch) -> int:
    return dataset.store.count((*wanted, None))
