"""Notifications at a university against answers from scratch, the closure made from scratch too, after every step."""

import random
from collections import Counter

import pytest

from streamgauge.formats.streams import read_triples
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query import parse_sparql
from streamgauge.reasoning import read_rules
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.strategies import begin
from tests.servers.broker.campus import MORE, TEXTS, UB, described, rules
from tests.servers.broker.scratch import Scratch
from tests.servers.broker.world import Clock

QUERIES = TEXTS | MORE


class Changes:
    """Random publications: whole descriptions that come, go or come again, parts of them, links that nobody expects."""

    def __init__(self, descriptions, draw):
        self._all, self._draw = descriptions, draw
        self._resources = [description[0][0] for description in descriptions]

    def next(self):
        draw = self._draw
        graph = [triple for one in draw.sample(self._all, draw.choice((1, 1, 1, 3))) for triple in one]
        part = draw.sample(graph, draw.randint(1, len(graph)))
        kind = draw.choice(("publish", "publish part", "delete", "delete part", "move", "link"))
        if kind == "link":
            return kind, self._links(), ()
        if kind == "move":
            return kind, self._links(), part
        chosen = part if kind.endswith("part") else graph
        return kind, *((chosen, ()) if kind.startswith("publish") else ((), chosen))

    def _links(self):
        """Memberships and organizations as they come, in circles too."""
        draw, result = self._draw, []
        for _ in range(draw.randint(1, 4)):
            one, two = draw.choices(self._resources, k=2)
            name = draw.choice(("subOrganizationOf", "headOf", "takesCourse", "degreeFrom", "member", "a"))
            if name == "a":
                result.append((one, RDF_TYPE, f"<{UB}{draw.choice(('Course', 'Chair', 'Department', 'Person'))}>"))
            elif name == "subOrganizationOf":
                few = self._resources[:40]
                result.append((draw.choice(few), f"<{UB}{name}>", draw.choice(few)))
            else:
                result.append((one, f"<{UB}{name}>", two))
        return result


class Watch:
    """Channels that come and go, and what each has shown so far."""

    def __init__(self, made, scratch):
        self._made, self._scratch = made, scratch
        self._held, self._shown = {}, {}

    def toggle(self, name):
        if name in self._held:
            self._made.delete_channel(name)
            del self._held[name], self._shown[name]
        else:
            self._made.create_channel(name, QUERIES[name])
            self._held[name] = self._made.subscribe(name, "me", lambda: None)
            self._shown[name] = self._scratch.rows(parse_sparql(QUERIES[name]))
            assert set(self._made.rows(name)[1]) == self._shown[name]

    def check(self, numbers):
        """What was told makes each answer the one from scratch, by real differences of these publications alone."""
        told = 0
        for name, subscription in self._held.items():
            result, shown = subscription.take(), self._shown[name]
            told += len(result)
            assert [item.causes for item in result] == sorted({item.causes for item in result})
            for item in result:
                assert set(item.causes) <= numbers
                assert item.added or item.removed
                assert not shown & set(item.added)
                assert shown >= set(item.removed)
                shown -= set(item.removed)
                shown |= set(item.added)
            assert shown == self._scratch.rows(parse_sparql(QUERIES[name])), name
        return told


def exact(ontology, descriptions, steps, seed):
    """Steps of random publications, some of them waiting together; how many there were, and notifications."""
    draw, clock, scratch = random.Random(seed), Clock(), Scratch(ontology)
    facts = {triple for one in descriptions for triple in one}
    broker = Broker(begin("incremental", ontology), clock.wall, clock.steady)
    broker.load(facts)
    scratch.look(facts)
    watch, changes, counts = Watch(broker, scratch), Changes(descriptions, draw), Counter()
    for name in TEXTS:
        watch.toggle(name)
    for _ in range(steps):
        if draw.random() < 0.3:
            watch.toggle(draw.choice(sorted(QUERIES)))
        waiting = []
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            kind, added, removed = changes.next()
            counts[kind] += 1
            waiting.append(broker.submit(tuple(added), tuple(removed)))
            facts = (facts - set(removed)) | set(added)
        assert broker.step() == len(waiting)
        came, went = scratch.look(facts)
        counts["facts of the closure changed"] += len(came) + len(went)
        assert set(broker.facts()) == scratch.closure
        counts["notifications"] += watch.check({item.result().number for item in waiting})
    return counts


@pytest.mark.slow
def test_notifications_and_the_closure_are_those_from_scratch():
    counts = exact(rules(), described(departments=1)[::4], steps=40, seed=1)
    assert counts["notifications"] > 100


@pytest.mark.prove
def test_a_thousand_changes_of_a_university_are_told_exactly(shared_data, capsys):
    ontology = read_rules(read_triples(shared_data / "lubm" / "univ-bench.owl"))
    counts = exact(ontology, described(), steps=1000, seed=6)
    with capsys.disabled():
        print(f"\n1,000 steps at LUBM(1), extended: {dict(counts)}")
    assert counts["notifications"] > 1000


def heuristic(strategy, descriptions, seed):
    """Descriptions are published one by one, some deleted; which share of rows came with their publication."""
    draw, clock, scratch = random.Random(seed), Clock(), Scratch(rules())
    broker = Broker(begin(strategy, rules()), clock.wall, clock.steady)
    for name, text in TEXTS.items():
        broker.create_channel(name, text)
    held = {name: broker.subscribe(name, "me", lambda: None) for name in TEXTS}
    shown, facts, counts, published = {name: set() for name in TEXTS}, set(), Counter(), []

    def take(number):
        for name, subscription in held.items():
            now = scratch.rows(parse_sparql(TEXTS[name]))
            for notification in subscription.take():
                assert not shown[name] & set(notification.added)
                assert now >= set(notification.added)
                assert not now & set(notification.removed)
                counts["early"] += len(notification.added) if notification.causes == (number,) else 0
                counts["rows"] += len(notification.added)
                shown[name] = (shown[name] - set(notification.removed)) | set(notification.added)
            assert shown[name] <= now
            counts["missing for a while"] += len(now - shown[name])

    for one in descriptions:
        gone = draw.choice(published) if published and draw.random() < 0.1 else ()
        receipt = broker.update(one, gone)
        published.append(one)
        facts = (facts - set(gone)) | set(one)
        scratch.look(facts)
        take(receipt.number)
        clock.now += draw.random()
    broker.evaluate()
    take(-1)
    assert shown == {name: scratch.rows(parse_sparql(text)) for name, text in TEXTS.items()}
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["stringrs", "graphss"])
def test_a_heuristic_says_nothing_wrong_and_misses_nothing_at_the_end(strategy):
    every = described(departments=1)
    people = [one for one in every if "Student" in one[0][0]][:30]
    counts = heuristic(strategy, [*every[:30], *people], seed=2)
    assert counts["early"] > counts["rows"] / 10


@pytest.mark.prove
@pytest.mark.parametrize("strategy", ["stringrs", "graphss"])
def test_which_share_a_heuristic_tells_early_at_a_department(strategy, capsys):
    counts = heuristic(strategy, described(departments=1), seed=3)
    with capsys.disabled():
        print(f"\n{strategy}: {counts['early'] / counts['rows']:.1%} of {counts['rows']} rows early")
    assert counts["early"]
