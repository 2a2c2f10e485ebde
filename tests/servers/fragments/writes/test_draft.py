"""Facts written one after the other are the facts that a plain model holds, in every style; nothing is left over."""

from collections.abc import Iterable
from itertools import count, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import VOCABULARIES, Label, Style, as_labelled
from streamgauge.servers.fragments.pages.dataset import DataSet, TooManyError, TripleMatch, located_facts
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import FactDraft, add, sweep
from tests.examples import examples
from tests.servers.fragments.changes import expire, remove, replace

STYLES = [
    Style(name, label, vocabulary, grouped)
    for name, label, vocabulary, grouped in product(methods(), Label, VOCABULARIES.values(), (True, False))
]
ALL = (None, None, None, None)
T = "<http://example.org/train#%s>"
TRIPLES = [(T % s, T % p, f'"{o}"') for s, p, o in product(("d1", "d2"), ("delay", "platform"), ("0S", "60S"))]


def dataset(style: Style, now: int = 1000) -> DataSet:
    return DataSet("trains", MemoryStore(), style, lambda: now)


def quads(data: DataSet) -> list[Quad]:
    return data.store.page(ALL, 0, 10_000)


def facts(data: DataSet) -> set[Fact]:
    return set(method(data.style.method).facts(quads(data), data.style))


@st.composite
def lasting(draw: st.DrawFn, label: Label) -> Fact:
    triple, initial = draw(st.sampled_from(TRIPLES)), draw(st.integers(-5, 5)) * 500
    if label is Label.INSTANT:
        return Fact(triple, initial, initial + 1)
    if draw(st.integers(0, 4)) == 0:
        return Fact(triple)
    return Fact(triple, initial, draw(st.one_of(st.none(), st.integers(1, 5).map(lambda n: initial + n * 500))))


def operations(label: Label) -> st.SearchStrategy[list[tuple[str, TripleMatch, list[Fact], int]]]:
    places = [
        st.one_of(st.none(), st.sampled_from(sorted({triple[place] for triple in TRIPLES}))) for place in range(3)
    ]
    given = st.lists(lasting(label), max_size=4)
    times = st.integers(-5, 8).map(lambda n: n * 500)
    return st.lists(
        st.tuples(st.sampled_from(["add", "add", "replace", "remove", "expire"]), st.tuples(*places), given, times),
        max_size=8,
    )


class Model:
    """The facts of each triple as a set of instants, or of the latest end: what the data set has to hold."""

    def __init__(self, label: Label, now: int) -> None:
        self.label, self.now, self.facts = label, now, set[Fact]()

    def add(self, given: Iterable[Fact]) -> None:
        for fact in given:
            same = {entry for entry in self.facts if entry.triple == fact.triple}
            self.facts -= same
            if self.label is Label.EXPIRATION:
                self.facts |= {as_labelled(fact, self.label)} if fact.final is None or fact.final > self.now else set()
            elif self.label is Label.INSTANT:
                self.facts |= same | {fact}
            else:
                self.facts |= united([*same, fact])

    def remove(self, wanted: TripleMatch) -> None:
        self.facts = {fact for fact in self.facts if not takes(wanted, fact)}

    def expire(self, wanted: TripleMatch, at: int) -> None:
        chosen = {fact for fact in self.facts if takes(wanted, fact)}
        self.facts -= chosen
        if self.label is Label.EXPIRATION and at <= self.now:
            return
        began = [fact for fact in chosen if fact.initial is None or fact.initial < at]
        self.facts |= {Fact(f.triple, f.initial, at if f.final is None else min(at, f.final)) for f in began}

    def replace(self, wanted: TripleMatch, given: list[Fact]) -> None:
        going = {f for f in self.facts if takes(wanted, f) and f.triple not in {fact.triple for fact in given}}
        for fact in going:
            self.expire(fact.triple, self.now)
        self.add(given)


def takes(wanted: TripleMatch, fact: Fact) -> bool:
    return all(term is None or term == of for term, of in zip(wanted, fact.triple, strict=True))


def united(given: list[Fact]) -> set[Fact]:
    """Intervals of one triple that touch as one, by the instants that begin or end something."""
    low, high = -(10**9), 10**9
    spans = sorted((low if f.initial is None else f.initial, high if f.final is None else f.final) for f in given)
    merged = [list(spans[0])]
    for begin, end in spans[1:]:
        if begin <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([begin, end])
    return {Fact(given[0].triple, None if a == low else a, None if b == high else b) for a, b in merged}


@pytest.mark.slow
@examples(40, prove=2000)
@given(style=st.sampled_from(STYLES), data=st.data())
def test_what_is_written_is_what_a_model_holds(style: Style, data: st.DataObject) -> None:
    held, model = dataset(style), Model(style.label, 1000)
    for what, wanted, come, at in data.draw(operations(style.label)):
        done(held, model, what, wanted, come, at)
        assert facts(held) == model.facts
        assert {fact.fact for fact in located_facts(held.store, (None, None, None), style)} == model.facts
        assert tidy(held)


def done(held: DataSet, model: Model, what: str, wanted: TripleMatch, given: list[Fact], at: int) -> None:
    match what:
        case "add":
            model.add(given)
            add(held, given)
        case "remove":
            model.remove(wanted)
            remove(held, [triple for triple in TRIPLES if takes(wanted, Fact(triple))])
        case "replace":
            model.replace(wanted, given)
            replace(held, wanted, given)
        case "expire" if held.style.label is not Label.INSTANT:
            model.expire(wanted, at)
            expire(held, wanted, at)


def tidy(held: DataSet) -> bool:
    """Whether the quads are as many as the facts need when they are written all at once, or fewer groups' more."""
    there = quads(held)
    numbers = count()
    anew = method(held.style.method).annotate(sorted(facts(held), key=str), held.style, lambda _: f"n{next(numbers)}")
    apart = method(held.style.method).annotate(
        sorted(facts(held), key=str), Style(**{**fields(held.style), "grouped": False}), lambda _: f"n{next(numbers)}"
    )
    linked = len(facts(held)) if held.style.method == "implicit" else 0
    return len(anew) <= len(there) <= len(apart) + linked and bool(there) == bool(facts(held))


def fields(style: Style) -> dict[str, object]:
    return {name: getattr(style, name) for name in ("method", "label", "vocabulary", "grouped", "border", "template")}


@pytest.mark.parametrize(
    ("name", "cost"), [("graphs", 2), ("singleton", 2), ("implicit", 2), ("reifiers", 2), ("reification", 400)]
)
def test_renewing_all_facts_of_a_group_changes_its_label(name: str, cost: int) -> None:
    held = dataset(Style(name))
    trains = [(T % f"d{n}", T % "delay", '"0S"') for n in range(200)]
    add(held, [Fact(triple, None, 11_000) for triple in trains])
    made = replace(held, (None, T % "delay", None), [Fact(triple, None, 21_000) for triple in trains])
    assert (made.added, made.removed) == (200, 200)
    assert len(made.quads.added) + len(made.quads.removed) == cost
    assert {end for quad in quads(held) for end in [held.store.nearest((*quad[:3], quad[3]), 1000)]} == {21_000}


def test_one_fact_of_a_group_changes_alone() -> None:
    held = dataset(Style())
    trains = [(T % f"d{n}", T % "delay", '"0S"') for n in range(200)]
    add(held, [Fact(triple, None, 11_000) for triple in trains])
    late = Fact((T % "d7", T % "delay", '"60S"'), None, 11_000)
    made = replace(held, (T % "d7", T % "delay", None), [late])
    assert len(made.quads.removed) == 1
    assert len(made.quads.added) == 2  # a graph of its own, as that of the others is not left by all of them
    assert facts(held) == {late, *(Fact(triple, None, 11_000) for n, triple in enumerate(trains) if n != 7)}


def test_intervals_of_a_triple_that_go_on_become_one() -> None:
    held = dataset(Style(label=Label.INTERVAL))
    for begin in range(0, 100_000, 10_000):
        add(held, [Fact(triple, begin, begin + 10_000) for triple in TRIPLES])
    assert facts(held) == {Fact(triple, 0, 100_000) for triple in TRIPLES}
    assert len(quads(held)) == len(TRIPLES) + 3


def test_several_changes_are_one() -> None:
    held = dataset(Style(label=Label.INTERVAL))
    heard = []
    held.listen(heard.append)
    draft = FactDraft(held)
    draft.add([Fact(TRIPLES[0], 0, 5000), Fact(TRIPLES[1], 0, 5000)])
    draft.expire((TRIPLES[0][0], None, TRIPLES[0][2]), 2000)
    draft.remove(TRIPLES[1])
    assert quads(held) == []
    made = draft.commit()
    assert facts(held) == {Fact(TRIPLES[0], 0, 2000)}
    assert (made.added, made.removed, len(heard)) == (1, 0, 1)


def test_what_changes_nothing_is_no_version() -> None:
    held = dataset(Style())
    add(held, [Fact(TRIPLES[0], None, 5000)])
    version = held.store.version
    assert add(held, [Fact(TRIPLES[0], None, 5000)]).quads.version == version
    assert remove(held, [TRIPLES[1]]).quads.version == version


def test_what_has_ended_is_swept() -> None:
    held = dataset(Style())
    add(held, [Fact(TRIPLES[0], None, 2000), Fact(TRIPLES[1], None, 3000), Fact(TRIPLES[2])])
    sweep(held, 2000)
    assert facts(held) == {Fact(TRIPLES[1], None, 3000), Fact(TRIPLES[2])}
    sweep(held, 3000)
    assert quads(held) == [(*TRIPLES[2], "")]


def test_a_pattern_touches_only_so_many() -> None:
    held = dataset(Style())
    add(held, [Fact(triple, None, 2000) for triple in TRIPLES])
    with pytest.raises(TooManyError, match="more than 3 facts match"):
        FactDraft(held, 3).remove((None, None, None))


def test_a_question_within_another_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[TripleMatch] = []

    def located(store, wanted, style):
        requests.append(wanted)
        return located_facts(store, wanted, style)

    data = dataset(Style())
    add(data, [Fact((f"<urn:s{n}>", "<urn:p>", f"<urn:s{n + 1}>"), 0, 9000) for n in range(5)])
    monkeypatch.setattr("streamgauge.servers.fragments.writes.located_facts", located)
    draft = FactDraft(data)
    assert len(draft.holding((None, "<urn:p>", None))) == 5
    assert draft.holding(("<urn:s1>", "<urn:p>", None)) == [("<urn:s1>", "<urn:p>", "<urn:s2>")]
    assert draft.holding(("<urn:s1>", "<urn:p>", "<urn:s3>")) == []
    draft.remove(("<urn:s1>", None, "<urn:s2>"))
    assert draft.holding(("<urn:s1>", "<urn:p>", None)) == []
    assert requests == [(None, "<urn:p>", None), ("<urn:s1>", None, "<urn:s2>")]


@pytest.mark.parametrize("place", [0, 1, 2, None])
def test_a_draft_looks_only_at_triples_that_can_match(monkeypatch: pytest.MonkeyPatch, place: int | None) -> None:
    """As an update deletes each of its solutions: 3,000 of them were gone through for each other, 9 million looks."""
    looks = count()
    monkeypatch.setattr("streamgauge.servers.fragments.writes.fits", lambda *_: bool(next(looks) + 1))
    data, many = dataset(STYLES[0]), 300
    triples = [(T % f"s{n}", T % f"p{n}", f'"{n}"') for n in range(many)]
    add(data, map(Fact, triples))
    draft = FactDraft(data)
    before = next(looks)
    for triple in triples:
        wanted = triple if place is None else tuple(term if at == place else None for at, term in enumerate(triple))
        draft.expire(wanted, 2000)
    assert next(looks) - before <= many + 1
    assert draft.commit().removed == many
