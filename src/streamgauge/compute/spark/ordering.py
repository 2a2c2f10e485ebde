"""The order of terms as far as SPARQL 1.1 defines it (15.1), and which rows LIMIT and OFFSET keep by it (no Spark).

What SPARQL leaves open (blank nodes, literals that "<" does not compare, equal keys) is never decided here.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

import pyoxigraph as ox

from streamgauge.compute.expressions import evaluate
from streamgauge.compute.numbers import Number, number
from streamgauge.model.algebra import Call, Var
from streamgauge.model.terms import XSD, Row, Term, datatype, is_blank, is_iri
from streamgauge.wire.canonical import Canonical, parse_term

Place = tuple[int, ...]
"""Where a row stands: smaller comes first, equal says that SPARQL does not tell."""

_CANONICAL = Canonical()
_TRUE = f'"true"^^<{XSD}boolean>'
_TIMES = frozenset(("dateTime", "date", "time"))
_ZONED = re.compile(r"(Z|[+-]\d\d:\d\d)\"\^\^")
_OPEN = "open"


def chosen(
    rows: Sequence[Row], found: Sequence[Place], distinct: bool, offset: int, limit: int | None
) -> list[int] | None:
    """The indexes of the rows that LIMIT and OFFSET keep, in order; ``None`` when SPARQL allows several answers."""
    stands: dict[Row, set[Place]] = {}
    for row, place in zip(rows, found, strict=True):
        stands.setdefault(row, set()).add(place)
    order = sorted(range(len(rows)), key=found.__getitem__)
    if distinct:
        order = list({rows[index]: index for index in reversed(order)}.values())
        order.sort(key=found.__getitem__)
    end = len(order) if limit is None else min(offset + limit, len(order))
    if offset >= end:
        return []
    cuts = [at for at in (offset, end) if 0 < at < len(order)]
    if distinct and cuts and any(len(several) > 1 for several in stands.values()):
        return None
    if any(_tied(rows, found, order, at) for at in cuts):
        return None
    return order[offset:end]


def _tied(rows: Sequence[Row], found: Sequence[Place], order: Sequence[int], at: int) -> bool:
    """Whether different rows that SPARQL does not order stand on both sides of a cut."""
    place = found[order[at]]
    return found[order[at - 1]] == place and len({rows[index] for index in order if found[index] == place}) > 1


def places(keys: Sequence[Row], descending: Sequence[bool]) -> list[Place]:
    """Where each row stands by its ORDER BY keys."""
    columns = [ranks([row[index] for row in keys]) for index in range(len(descending))]
    found = []
    for row in range(len(keys)):
        place: list[int] = []
        for ranked, down in zip(columns, descending, strict=True):
            rank, decided = ranked[row]
            place.append(-rank if down else rank)
            if not decided:
                place += [0] * (len(descending) - len(place))
                break
        found.append(tuple(place))
    return found


def ranks(terms: Sequence[Term | None]) -> list[tuple[int, bool]]:
    """Each term's rank, and whether terms of that rank are equal, so that the next key decides, or just not ordered."""
    distinct = list(dict.fromkeys(terms))
    groups: list[list[Term | None]] = [[None]]
    groups.append([term for term in distinct if term and is_blank(term)])
    groups += [[term] for term in sorted((term for term in distinct if term and is_iri(term)), key=_text)]
    literals = [term for term in distinct if term and not is_blank(term) and not is_iri(term)]
    kinds = {_kind(term) for term in literals}
    comparable = len(kinds) == 1 and _OPEN not in kinds
    groups += _ordered(literals, next(iter(kinds))) if comparable else [[*literals]]
    decided = {len(groups) - 1: len(literals) < 2} if not comparable else {}
    known = {term: (rank, rank != 1 and decided.get(rank, True)) for rank, group in enumerate(groups) for term in group}
    return [known[term] for term in terms]


def _text(term: Term) -> str:
    return parse_term(term).value if "\\" in term else term[1:-1] if is_iri(term) else term[1 : term.rindex('"')]


def _kind(term: Term) -> str:
    """What a literal can be compared with by "<": literals of one kind, unless it is OPEN."""
    known = number(term)
    if isinstance(known, Number):
        return _OPEN if known.value != known.value else "number"
    name = (datatype(term) or _OPEN).removeprefix(XSD)
    if name in _TIMES:
        return name + ("Z" if _ZONED.search(term) else "")
    return name if name in ("string", "boolean") else _OPEN


def _ordered(literals: Sequence[Term], kind: str) -> list[list[Term | None]]:
    """Literals of one kind in groups of equal ones, in order."""
    if kind in ("string", "boolean"):  # "false" is before "true"
        alone: list[list[Term | None]] = [[term] for term in sorted(literals, key=_text)]
        return alone
    order = _sorted(literals)
    less = evaluate(Call("<", (Var("a"), Var("b"))), ("a", "b"), list(pairwise(order)))
    groups: list[list[Term | None]] = [[order[0]]]
    for term, apart in zip(order[1:], less, strict=True):
        if apart == _TRUE:
            groups.append([])
        groups[-1].append(term)
    return groups


def _sorted(literals: Sequence[Term]) -> list[Term]:
    """Comparable literals in pyoxigraph's order."""
    values = [number(term) for term in literals]
    if len({value.kind for value in values if isinstance(value, Number)}) == 1:
        numbers = {term: value.value for term, value in zip(literals, values, strict=True) if isinstance(value, Number)}
        if len(numbers) == len(literals):
            return sorted(literals, key=numbers.__getitem__)
    store = ox.Store()
    text = "\n".join(f"<urn:streamgauge:s> <urn:streamgauge:p> {term} ." for term in literals)
    store.extend(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    found = store.query("SELECT ?term WHERE { ?s ?p ?term } ORDER BY ?term")
    assert isinstance(found, ox.QuerySolutions)
    return [_CANONICAL.term(row[0]) for row in found if row[0] is not None]
