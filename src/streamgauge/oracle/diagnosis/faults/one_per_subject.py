"""A window keeps only the newest, or only the oldest, triples per key.

The key is a subject, a subject and predicate, or an object of one predicate (the sensor of an observation) in a *fact
group*: the connected triples of one element, those of a subject and of its objects. Newer groups replace older ones
with the same key.

Worked example: of ``0: s p a. | 1: r p b. | 2: s p c.`` the newest per subject are ``r p b`` and ``s p c``.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, Triple
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import Arrival

Keys: TypeAlias = Callable[[Sequence[Triple]], dict[Triple, tuple[Hashable, ...]]]
"""The keys of each triple of one element; a triple is kept while its element has one of its keys, or without keys."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """The newest and the oldest per subject, per subject and predicate, and per object of a predicate of the query."""
    kinds: dict[str, Keys] = {"subject": _subjects, "subject and predicate": _properties}
    kinds |= {f"object of {name}": partial(_objects, predicate=name) for name in _predicates(seen)}
    for kind, keys in kinds.items():
        for which in ("newest", "oldest"):
            sentence = f"Of what a window holds, only the {which} per {kind} is kept."
            rule = partial(_kept, keys=keys, newest=which == "newest")
            yield Fault(Part(f"{which} per {kind} only", sentence), partial(Case.holding, rule=rule), family="content")


def _predicates(seen: Seen) -> tuple[str, ...]:
    """The predicates of patterns whose object is a variable that is not the subject of another pattern."""
    patterns = every_pattern(seen.case.query.form.pattern)
    triples = [triple for bgp in patterns if isinstance(bgp, al.BGP) for triple in bgp.patterns]
    subjects = {triple.subject for triple in triples}
    return tuple(
        dict.fromkeys(
            triple.predicate
            for triple in triples
            if isinstance(triple.predicate, str) and isinstance(triple.object, al.Var) and triple.object not in subjects
        )
    )


def _kept(inside: Sequence[Arrival], element: Callable[[Arrival], int], keys: Keys, newest: bool) -> Iterable[Arrival]:
    """The arrivals with the triples of which no newer (or no older) element has all keys."""
    together: dict[int, list[Triple]] = defaultdict(list)
    for arrival in inside:
        together[element(arrival)] += arrival.triples
    # Of the whole element, also where arrivals are single triples: a fact group is not cut.
    keyed = {number: keys(triples) for number, triples in together.items()}
    holder: dict[Hashable, int] = {}
    for number, of_triples in keyed.items():  # in order of time
        for key in (key for triple in of_triples.values() for key in triple):
            holder[key] = number if newest else holder.get(key, number)
    for arrival in inside:
        number = element(arrival)
        left = tuple(triple for triple in arrival.triples if _holds(keyed[number][triple], number, holder))
        if left:
            yield arrival if len(left) == len(arrival.triples) else replace(arrival, triples=left)


def _holds(keys: tuple[Hashable, ...], number: int, holder: dict[Hashable, int]) -> bool:
    return not keys or any(holder[key] == number for key in keys)


def _subjects(triples: Sequence[Triple]) -> dict[Triple, tuple[Hashable, ...]]:
    return {triple: (triple[0],) for triple in triples}


def _properties(triples: Sequence[Triple]) -> dict[Triple, tuple[Hashable, ...]]:
    return {triple: (triple[:2],) for triple in triples}


def _objects(triples: Sequence[Triple], predicate: str) -> dict[Triple, tuple[Hashable, ...]]:
    """The objects of a predicate in a triple's fact group."""
    return _objects_of(tuple(triples), predicate)


@lru_cache(maxsize=4096)
def _objects_of(triples: tuple[Triple, ...], predicate: str) -> dict[Triple, tuple[Hashable, ...]]:
    """The objects of a predicate in each triple's fact group; cached, because an element is in many windows."""
    group = _groups(triples)
    objects: dict[Term, dict[Term, None]] = defaultdict(dict)
    for subject, name, term in triples:
        if name == predicate:
            objects[group(subject)][term] = None
    return {triple: tuple(objects.get(group(triple[0]), ())) for triple in triples}


def _groups(triples: Sequence[Triple]) -> Callable[[Term], Term]:
    """A function from a subject to the representative of its fact group (union-find with path halving)."""
    parent = {triple[0]: triple[0] for triple in triples}

    def top(subject: Term) -> Term:
        while parent[subject] != subject:
            parent[subject] = parent[parent[subject]]
            subject = parent[subject]
        return subject

    for subject, _predicate, term in triples:
        # An object that is a subject of the same element belongs to its fact group: an observation and its result
        # node.
        if term in parent:
            parent[top(term)] = top(subject)
    return top
