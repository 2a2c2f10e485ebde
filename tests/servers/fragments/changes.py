"""Changes of a data set, each at once."""

from collections.abc import Iterable

from streamgauge.model.fact import Fact
from streamgauge.model.terms import Triple
from streamgauge.servers.fragments.pages.dataset import DataSet, TripleMatch
from streamgauge.servers.fragments.writes import FactDraft, WriteResult


def remove(dataset: DataSet, triples: Iterable[Triple]) -> WriteResult:
    """Triples never held, their history included."""
    draft = FactDraft(dataset)
    for triple in triples:
        draft.remove(triple)
    return draft.commit()


def replace(dataset: DataSet, wanted: TripleMatch, facts: Iterable[Fact]) -> WriteResult:
    """Of the wanted triples only the given facts hold from now on."""
    draft = FactDraft(dataset)
    draft.replace(wanted, facts)
    return draft.commit()


def expire(dataset: DataSet, wanted: TripleMatch, at: int) -> WriteResult:
    """Wanted triples hold no longer from an instant (ms) on; what had ended by then stays."""
    draft = FactDraft(dataset)
    draft.expire(wanted, at)
    return draft.commit()
