"""Facts are in a data set from their update to the next, by every way of renewing them."""

import pytest

from streamgauge.model.element import StreamElement
from streamgauge.servers.fragments import DEFAULT
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.suites.crowds.fragments_server import DataSetRenewal
from streamgauge.suites.crowds.updates import FactRenewal, updates
from tests.suites.crowds.boards import DEPARTURES, elements

ALL = (None, None, None, None)
BEGINS = 1_700_000_000_000


def held(dataset, at):
    quads = dataset.store.page(ALL, 0, 10_000)
    if dataset.style is None:
        return {quad[:3] for quad in quads}
    return {fact.triple for fact in method(dataset.style.method).facts(quads, dataset.style) if fact.holds(at)}


def renewed(style, renewal, turns=4):
    now = [BEGINS]
    dataset = DataSet("d", MemoryStore(), style, lambda: now[0])
    renewing = DataSetRenewal(dataset, renewal, BEGINS)
    for update in updates(elements(turns, 1000), 100):
        now[0] = BEGINS + update.time
        renewing.apply(update)
        yield dataset, now[0], set(update.triples)


@pytest.mark.parametrize("label", [Label.EXPIRATION, Label.INTERVAL])
@pytest.mark.parametrize("name", methods())
@pytest.mark.parametrize("renewal", [FactRenewal.KEPT, FactRenewal.PUBLISHED])
def test_what_an_update_says_holds(name, label, renewal):
    style = Style(name, label)
    for dataset, now, triples in renewed(style, renewal):
        if renewal is FactRenewal.KEPT:
            assert held(dataset, now) == triples
        else:
            assert held(dataset, now) >= triples  # as published, an interval overlaps the next by the slack
        assert held(dataset, now + 1101) == set()


def test_without_times_only_the_triples_are_there():
    for dataset, _, triples in renewed(Style(), FactRenewal.PLAIN):
        assert set(dataset.store.page(ALL, 0, 1000)) == {(*triple, DEFAULT) for triple in triples}


def test_history_grows_as_published_and_not_where_it_is_kept():
    sizes = {
        renewal: [dataset.size for dataset, _, _ in renewed(Style(label=Label.INTERVAL), renewal, 8)]
        for renewal in (FactRenewal.KEPT, FactRenewal.PUBLISHED)
    }
    assert sizes[FactRenewal.PUBLISHED][-1] > 7 * sizes[FactRenewal.PUBLISHED][0]
    assert sizes[FactRenewal.KEPT][-1] < 2 * sizes[FactRenewal.KEPT][0]


def test_updates_are_elements_of_one_time_with_slack():
    result = list(updates(elements(3, 1000), 250))
    assert [(update.time, update.until) for update in result] == [(0, 1250), (1000, 2250), (2000, 3250)]
    assert {len(update.triples) for update in result} == {2 * DEPARTURES}
    with pytest.raises(ValueError, match="an element at 5 ms has no end"):
        list(updates([StreamElement("urn:s", 5, 0, (("<urn:a>", "<urn:b>", "<urn:c>"),))], 0))
