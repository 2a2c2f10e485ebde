"""The least and the greatest of terms of any kind, in pyoxigraph's order."""

from collections.abc import Sequence

import pyoxigraph as ox

from streamgauge.model.terms import Term
from streamgauge.wire.canonical import Canonical

_CANONICAL = Canonical()


def extreme(function: str, values: Sequence[Term]) -> Term | None:
    """MIN or MAX (``function``) of the values."""
    store = ox.Store()
    text = "\n".join(f"<urn:streamgauge:values> <urn:streamgauge:value> {value} ." for value in values)
    store.extend(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    query = f"SELECT ({function}(?value) AS ?extreme) WHERE {{ ?values <urn:streamgauge:value> ?value }}"
    solutions = store.query(query)
    if not isinstance(solutions, ox.QuerySolutions):
        raise TypeError("a SELECT gives solutions")
    found = next(solutions)[0]
    return None if found is None else _CANONICAL.term(found)
