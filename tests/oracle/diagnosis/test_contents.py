"""Contents of a simulated engine's windows: those of the definition, shared by cases with the same arrivals."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.element import StreamElement
from streamgauge.model.report import View
from streamgauge.model.semantics import Tick
from streamgauge.model.terms import Triple
from streamgauge.oracle.diagnosis.contents import Arrived
from streamgauge.oracle.diagnosis.faulty import MAX_STREAMS, Simulator
from streamgauge.oracle.diagnosis.models import Case, Stream
from streamgauge.query import parse
from streamgauge.semantics.arrivals import Arrival, arrived_triples, content
from streamgauge.semantics.profiles import profile
from tests.examples import examples

QUERY = parse(
    "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT5S] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }"
)
SEMANTICS = profile("rspql")


def triple(number: int) -> Triple:
    return f"<urn:{number}>", "<urn:p>" if number % 2 else "<urn:q>", '"1"'


def stream_of(sizes: Sequence[int], slide: int = 3) -> list[StreamElement]:
    """Elements of so many triples each, every ``slide`` ms, whose triples all differ."""
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return [
        StreamElement("urn:s", slide * (place // 2), place, tuple(triple(n) for n in range(end - size, end)))
        for place, (size, end) in enumerate(zip(sizes, ends, strict=True))
    ]


def flat(arrivals: Iterable[Arrival]) -> list[tuple[int, Triple]]:
    return [(arrival.time, triple) for arrival in arrivals for triple in arrival.triples]


def test_a_content_of_one_of_two_streams_has_its_own_elements_only() -> None:
    windows = (*QUERY.windows, replace(QUERY.windows[0], stream="urn:t", name="urn:v"))
    elements = [replace(item, stream=f"urn:{'st'[at % 2]}") for at, item in enumerate(stream_of([2, 1, 3, 2]))]
    arrived = Arrived(elements, windows, SEMANTICS, None)
    view = View(0, 4, 0, 3, 100)
    held = {stream: [item for _, item in flat(arrived.held(stream, view).inside)] for stream in ("urn:s", "urn:t")}
    assert held == {"urn:s": list(map(triple, (0, 1, 3, 4, 5))), "urn:t": list(map(triple, (2, 6, 7)))}


@given(st.data(), st.lists(st.integers(0, 4), max_size=8), st.sampled_from(Tick))
@examples(200, 5_000)
def test_a_content_has_the_triples_of_the_definition(data: st.DataObject, sizes: list[int], tick: Tick) -> None:
    elements, semantics = stream_of(sizes), replace(SEMANTICS, tick=tick)
    relevant = frozenset(item for element in elements for item in element.added if item[1] == "<urn:p>")
    arrived = Arrived(elements, QUERY.windows, semantics, relevant)
    ranked = arrived_triples(elements, QUERY.windows, semantics)
    first, last = sorted((data.draw(st.integers(-1, 13)), data.draw(st.integers(-1, 13))))
    after, seen = (data.draw(st.integers(0, len(ranked))) for _ in range(2))
    view = View(first, last + 1, first, last, seen, after)

    held = arrived.held("urn:s", view)
    expected = content(ranked, [arrival.time for arrival in ranked], "urn:s", view)

    assert flat(held.inside) == flat(expected)
    assert bool(held.inside) == bool(expected)
    assert flat(held.mattering) == [row for row in flat(expected) if row[1] in relevant]

    given_to_rule: list[Arrival] = []

    def every_second(inside: Sequence[Arrival], _: object) -> list[Arrival]:
        given_to_rule.extend(inside)
        return list(inside[::2])

    kept = arrived.ruled(held, every_second)
    assert given_to_rule == list(expected)
    assert flat(kept.inside) == flat(expected[::2])


def test_cases_under_which_no_element_is_late_share_the_contents_of_a_stream() -> None:
    stream = Stream(stream_of([3] * 20))
    simulator = Simulator(QUERY, stream)
    case = Case(QUERY, SEMANTICS, stream, 60, 0)
    other = replace(case, semantics=replace(SEMANTICS, notify_empty=not SEMANTICS.notify_empty, lateness=5), t0=0)
    due = simulator.candidates(replace(case, advanced_to=30_000))[0]

    assert simulator.contents(case, due)[0] is simulator.contents(other, due)[0]


def test_cases_with_other_late_elements_or_arrivals_have_contents_of_their_own() -> None:
    """The last element, at 4 s, comes after one at 12 s, which makes the report at 10 s due without a bound."""
    elements = [replace(item, time=time) for item, time in zip(stream_of([3, 3, 3]), (0, 12_000, 4_000), strict=True)]
    stream = Stream(elements)
    simulator = Simulator(QUERY, stream)

    def held(lateness: int, tick: Tick) -> tuple[list[Triple], int]:
        case = Case(QUERY, replace(SEMANTICS, lateness=lateness, tick=tick), stream, 20_000, 0)
        due = next(due for due in simulator.candidates(case) if due.instant == 10_000)
        return [item for _, item in flat(simulator.contents(case, due)[0].inside)], simulator.seen(case, 10_000)

    first, last = ([triple(number) for number in numbers] for numbers in (range(3), range(6, 9)))
    assert held(0, Tick.BATCH) == (first, 1)
    assert held(8_000, Tick.BATCH) == ([*first, *last], 2)
    assert held(8_000, Tick.TUPLE) == ([*first, *last], 6)
    assert held(0, Tick.TUPLE) == (first, 3)


def test_contents_of_streams_that_were_not_used_lately_are_let_go() -> None:
    simulator = Simulator(QUERY, Stream(stream_of([2, 2])))
    contents = []
    for shift in range(3 * MAX_STREAMS):
        stream = Stream([replace(element, time=element.time + shift) for element in stream_of([2, 2])])
        case = Case(QUERY, SEMANTICS, stream, 30_000, 0)
        contents.append(ref(simulator.contents(case, simulator.candidates(case)[0])[0]))

    assert sum(content() is not None for content in contents) <= MAX_STREAMS
