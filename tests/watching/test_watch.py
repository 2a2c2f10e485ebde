"""``watch`` gives what the engine gives: from files, iterables and several sources, in threads or not."""

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgauge
from streamgauge.engines import load
from streamgauge.formats.lines import Advance
from streamgauge.formats.pipe import PipedSession, PipeError, Task
from streamgauge.formats.streams import write_stream
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.semantics import Borders, Clock, Origin, Report, Semantics, Tick
from streamgauge.query import QueryError, parse_sparql
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import RefusedError, meaningless
from streamgauge.sources import SourceError
from streamgauge.sources.contract import parse_address
from streamgauge.sources.named import is_live
from streamgauge.watching import WatchError, awatch, inputs, watch
from tests.notation import STREAM, stream
from tests.semantics.draw import semantics, streams, windows
from tests.servers.programs import PROGRAM, command

COUNT = f"""SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT5S STEP PT5S]
WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"""
TWO = """SELECT ?s FROM NAMED WINDOW <urn:v> ON <urn:a> [RANGE PT5S STEP PT5S]
FROM NAMED WINDOW <urn:w> ON <urn:b> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } WINDOW <urn:w> { ?s <urn:q> ?r } }"""
PAIRS = [(t * 1000, f'<urn:s{t}> <urn:p> "{t}" .') for t in range(12)]


def counts(answers):
    return [(answer.instant, int(row[0].split('"')[1])) for answer in answers for row in answer.added]


def test_pairs_of_time_and_text_with_the_last_windows_due():
    assert counts(watch(COUNT, PAIRS)) == [(5000, 5), (10_000, 5), (15_000, 2)]


class Opened:
    """A source that notes that it was closed."""

    refused, reasons = 0, ()

    def __init__(self) -> None:
        self.closed = False

    def items(self):
        return iter(())

    def close(self) -> None:
        self.closed = True


async def nothing():
    for item in ():
        yield item


@pytest.mark.parametrize("second", ["mqtt://away/topic", nothing()])
def test_sources_are_closed_if_another_one_is_refused(monkeypatch, second):
    opened = Opened()

    def open_source(url: str, *_: object, **_named: object) -> Opened:
        if url == "mqtt://away/topic":
            raise SourceError("mqtt://away/topic: no broker")
        return opened

    monkeypatch.setattr(inputs, "open_source", open_source)
    with pytest.raises((SourceError, WatchError)):
        watch(COUNT, "mqtt://here/topic", second)
    assert opened.closed


def test_where_time_ends():
    assert counts(watch(COUNT, PAIRS, end="stream")) == [(5000, 5), (10_000, 5)]
    assert counts(watch(COUNT, PAIRS, end=20_000))[-1] == (20_000, 0)


def test_a_stream_of_today_begins_where_it_is():
    base = 1_700_000_003_000
    result = counts(watch(COUNT, [(base + time, triples) for time, triples in PAIRS]))
    assert result == [(base + 2000, 2), (base + 7000, 5), (base + 12_000, 5)]


@pytest.mark.parametrize(
    "triples",
    [
        [("<urn:s>", "<urn:p>", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>')],
        '<urn:s> <urn:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    ],
)
def test_terms_keep_their_lexical_form(triples):
    query = COUNT.replace("(COUNT(*) AS ?n)", "?o")
    (answer,) = watch(query, [(1, triples)])
    assert answer.added == (('"01"^^<http://www.w3.org/2001/XMLSchema#integer>',),)


def test_rows_by_name():
    (answer,) = watch(COUNT.replace("(COUNT(*) AS ?n)", "?s ?missing"), PAIRS[:1])
    assert answer.rows() == [{"s": "<urn:s0>"}]
    (graph,) = watch(COUNT.replace("SELECT (COUNT(*) AS ?n)", "CONSTRUCT { ?s <urn:q> ?o }"), PAIRS[:1])
    assert graph.rows() == [{"subject": "<urn:s0>", "predicate": "<urn:q>", "object": '"0"'}]
    (truth,) = watch(COUNT.replace("SELECT (COUNT(*) AS ?n)", "ASK"), PAIRS[:1])
    assert truth.rows() == [{"answer": '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'}]


def test_files_by_path_and_by_stream_iri(tmp_path):
    elements = stream(" | ".join(f"{t * 1000}: s{t} p {t}." for t in range(12)))
    write_stream(elements, tmp_path / "all.nq")
    (tmp_path / "count.rq").write_text(COUNT)
    wanted = [(5000, 5), (10_000, 5), (15_000, 2)]
    assert counts(watch(tmp_path / "count.rq", tmp_path / "all.nq")) == wanted
    assert counts(watch(str(tmp_path / "count.rq"), f"{STREAM}={tmp_path / 'all.nq'}")) == wanted
    assert counts(watch(COUNT, {STREAM: tmp_path / "all.nq"})) == wanted
    with pytest.raises(SourceError, match="urn:other"):
        watch(COUNT, f"<urn:other>={tmp_path / 'all.nq'}")


@pytest.mark.parametrize("merge", [None, "arrival"])
def test_several_streams(merge):
    a = [(t * 1000, f"<urn:s{t}> <urn:p> <urn:o> .") for t in range(0, 12, 2)]
    b = [(t * 1000, f"<urn:s{t}> <urn:q> <urn:o> .") for t in range(0, 12, 3)]
    result = watch(TWO, {"urn:a": a, "urn:b": b}, merge=merge, lateness="1m" if merge else None)
    assert [(answer.instant, answer.added) for answer in result] == [
        (5000, (("<urn:s0>",),)),
        (10_000, (("<urn:s6>",),)),
        (15_000, ()),
    ]


def test_several_queries_by_name():
    results = list(watch({"count": COUNT, "rows": COUNT.replace("(COUNT(*) AS ?n)", "?s")}, PAIRS))
    assert [(name, len(answer.added)) for name, answer in results if name == "count"] == [("count", 1)] * 3
    assert [len(answer.added) for name, answer in results if name == "rows"] == [5, 5, 2]


def test_late_elements_are_counted_and_left_out():
    late = [(1000, PAIRS[1][1]), (7000, PAIRS[7][1]), (2000, PAIRS[2][1]), (12_000, PAIRS[3][1]), (3000, PAIRS[4][1])]
    watched = watch(COUNT, late, lateness=1000)
    assert counts(watched) == [(5000, 1), (10_000, 1), (15_000, 1)]
    assert (watched.late, watched.elements) == (2, 5)


def test_what_comes_after_its_time_was_over_is_late():
    watched = watch(COUNT, [(1000, PAIRS[1][1]), Advance(6000), (5500, PAIRS[2][1]), (7000, PAIRS[3][1])])
    assert counts(watched) == [(5000, 1), (10_000, 1)]
    assert watched.late == 1


def test_the_wall_clock_closes_windows_that_nothing_follows():
    now = [1000]
    more = threading.Event()

    def source():
        yield 1000, PAIRS[1][1]
        more.wait(300)

    def clock():
        now[0] += 1000
        return now[0]

    with watch(COUNT, source(), advance=clock) as answers:
        assert counts([next(answers)]) == [(5000, 1)]
        more.set()


@pytest.mark.slow
def test_leaving_early_leaves_no_thread():
    before = set(threading.enumerate())

    def endless():
        for time in range(10**9):
            yield time * 1000, PAIRS[0][1]

    with watch(COUNT, endless(), endless(), merge="arrival", lateness="1h") as answers:
        assert next(answers).instant
    assert list(answers) == []
    assert set(threading.enumerate()) <= before


def test_an_error_of_a_source_is_raised_once():
    def broken():
        yield PAIRS[0]
        raise OSError("gone")

    for merge in ("time", "arrival"):
        answers = watch(COUNT, broken(), broken(), merge=merge)
        with pytest.raises(OSError, match="gone"):
            list(answers)
        assert list(answers) == []


def test_asynchronously():
    async def source():
        for pair in PAIRS:
            yield pair

    async def run():
        result = [answer async for answer in awatch(COUNT, source())]
        plain = [answer async for answer in streamgauge.awatch(COUNT, PAIRS)]
        return result, plain

    result, plain = asyncio.run(run())
    assert counts(result) == counts(plain) == [(5000, 5), (10_000, 5), (15_000, 2)]


def test_leaving_an_asynchronous_watch_ends_it():
    async def forever():
        for time in range(10**9):
            yield time * 1000, PAIRS[0][1]
            await asyncio.sleep(0)

    async def run():
        async with awatch(COUNT, forever()) as answers:
            first = await anext(answers)
        task = asyncio.create_task(anext(awatch(COUNT.replace("PT5S STEP PT5S", "PT1H STEP PT1H"), silent())))
        await asyncio.sleep(0.05)
        task.cancel()
        return first

    async def silent():
        await asyncio.sleep(60)
        yield PAIRS[0]

    before = set(threading.enumerate())
    assert asyncio.run(run()).instant == 5000
    assert set(threading.enumerate()) <= before


@pytest.mark.server
def test_a_program_answers_while_nothing_comes(monkeypatch):
    monkeypatch.setattr("streamgauge.watching.load", lambda _name: PROGRAM)
    more = threading.Event()

    def source():
        yield from PAIRS[:6]
        assert more.wait(300)

    before = set(threading.enumerate())
    with watch(COUNT, source()) as answers:
        assert counts([next(answers)]) == [(5000, 5)]
        more.set()
        assert counts(answers) == [(10_000, 1)]
    assert set(threading.enumerate()) <= before


@pytest.mark.server
def test_a_program_that_fails_is_told(monkeypatch):
    program = SimpleNamespace(
        command=command,
        refuse=load("live").refuse,
        start=lambda query, chosen, emit: PipedSession(
            [sys.executable, "-c", "print('{\"ready\":true}', flush=True); input(); exit(3)"],
            Task("", "rspql", chosen),
            emit,
        ),
    )
    monkeypatch.setattr("streamgauge.watching.load", lambda _name: program)
    with pytest.raises(PipeError, match=r"exit code 3|stopped reading"):
        list(watch(COUNT, PAIRS))


@pytest.mark.server
def test_a_program_that_dies_while_nothing_comes_is_told_at_once(monkeypatch):
    """It reads one line and ends; the source has nothing more to say until the test is over."""
    words = [sys.executable, "-c", "print('{\"ready\":true}', flush=True); input(); input(); exit(3)"]
    program = SimpleNamespace(
        command=command,
        refuse=load("live").refuse,
        start=lambda _query, chosen, emit: PipedSession(words, Task("", "rspql", chosen), emit),
    )
    monkeypatch.setattr("streamgauge.watching.load", lambda _name: program)
    over = threading.Event()

    def source():
        yield PAIRS[0]
        assert over.wait(300)

    answers = watch(COUNT, source())
    failure: list[Exception] = []

    def take() -> None:
        try:
            next(answers)
        except PipeError as error:
            failure.append(error)

    taking = threading.Thread(target=take)
    taking.start()
    try:
        taking.join(40)
        assert [str(error) for error in failure if "exit code 3" in str(error)]
        assert not over.is_set()
    finally:
        over.set()
        taking.join(40)


LIVE = {
    "log.jsonl": False,
    "log.jsonl?follow=0": False,
    "log.jsonl?follow=1": True,
    "kafka://broker/topic": True,
    "kafka://broker/topic?until=close": True,
    "kafka://broker/topic?from=earliest&until=end": False,
    "mqtt://broker/topic": True,
}


@pytest.mark.parametrize("address", LIVE)
def test_which_sources_end_nobody_knows_when(address):
    assert is_live(parse_address(address)) is LIVE[address]


THREE, NESTED = ("<a:>", "<b:>", "<c:>"), "<<( <a:> <b:> <c:> )>>"


@pytest.mark.parametrize(
    ("query", "streams", "options", "error", "says"),
    [
        (COUNT, (), {}, WatchError, "no stream to watch"),
        ({}, (PAIRS,), {}, WatchError, "no query to watch"),
        ("nowhere.rq", (PAIRS,), {}, WatchError, "nowhere.rq: this query cannot be read"),
        ("SELECT * { ?s ?p ?o }", (PAIRS,), {}, QueryError, "this query has no stream"),
        (COUNT, (PAIRS,), {"lateness": "soon"}, WatchError, "lateness is 'soon'"),
        (COUNT, (PAIRS,), {"late": 1}, TypeError, "no option late"),
        (COUNT, (PAIRS,), {"semantics": "cqels-1.x"}, RefusedError, "no clock of its own"),
        (COUNT, ([("1", PAIRS[0][1])],), {}, WatchError, "'1' is not a time"),
        (COUNT, ([StreamElement(STREAM, 1, 5, (), (("<a>", "<b>", "<c>"),))],), {}, RefusedError, "element 5 removes"),
        (COUNT, ([7],), {}, WatchError, "7 is not a stream element"),
        (COUNT, ([(1, "<urn:s> <urn:p> .")],), {}, WatchError, "not triples"),
        (COUNT, ([(1, [("<a:>", "<b:>")])],), {}, WatchError, "element 0, triple 0: .* it has 2 terms"),
        (COUNT, ([(1, [THREE, ("<a:>",) * 4])],), {}, WatchError, "element 0, triple 1: .* it has 4 terms"),
        (COUNT, ([(1, [("<a:>", '"b"', "<c:>")])],), {}, WatchError, 'triple 0: .* it has the predicate "b": <IRI>'),
        (COUNT, ([(1, [('"a"', "<b:>", "<c:>")])],), {}, WatchError, 'triple 0: .* it has the subject "a"'),
        (COUNT, ([(1, [(NESTED, "<b:>", "<c:>")])],), {}, WatchError, "triple 0: .* it has the subject <<"),
        (COUNT, ([(1, [("<a:>", "<b:>", "c")])],), {}, WatchError, "triple 0: .* it has the object c: "),
        (COUNT, ([(1, [("<a:>", "<b:>", 3)])],), {}, WatchError, "triple 0: .* it has the object 3: the text"),
        (COUNT, ([(1, [("<a:>", "<b:>", '"c"@en--up')])],), {}, WatchError, "triple 0: not an N-Triples term"),
        (COUNT, ([(1, ["<a:> <b:> <c:> ."])],), {}, WatchError, "triple 0: '<a:> <b:> <c:> .' is not a triple"),
        (COUNT, ([StreamElement(STREAM, 1, 5, (THREE, ("<a:>", "<b:>")))],), {}, WatchError, "element 5, triple 1: "),
        (COUNT, ([StreamElement(STREAM, 1, 5, (("<a:>", None, "<b:>"),))],), {}, WatchError, "has the predicate None"),
        (COUNT, (PAIRS,), {"static": (("<a:>", "<b:>"),)}, WatchError, "static has .* not a triple: it has 2 terms"),
    ],
)
def test_what_cannot_be_watched(query, streams, options, error, says):
    with pytest.raises(error, match=says):
        list(watch(query, *streams, **options))


def test_an_asynchronous_source_needs_awatch():
    async def source():
        yield PAIRS[0]

    with pytest.raises(WatchError, match="awatch"):
        watch(COUNT, source())


@pytest.mark.server
def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, streamgauge; print([n for n in sys.modules if n.startswith(('rdflib', 'pyox', 'pyspark'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


SIMPLE = parse_sparql("SELECT ?s ?o { ?s <urn:p> ?o }")


def clocked(chosen: Semantics) -> bool:
    closes = Report.WINDOW_CLOSE in chosen.report or chosen.period is not None or chosen.tick is Tick.TIME
    return closes and chosen.borders is Borders.CLOSED_OPEN


@pytest.mark.slow
@given(st.data())
def test_the_answers_are_those_of_the_engine_from_its_own_t0_without_the_ones_before_anything(data):
    chosen, over = data.draw(semantics()), data.draw(windows())
    chosen = replace(chosen, origin=Origin.FIXED, t0=data.draw(st.integers(-3, 3)))
    query = ContinuousQuery(SIMPLE, over)
    later = data.draw(st.sampled_from([0, 7, 1000, 12_345]))
    elements = [
        replace(entry, time=entry.time + later, until=entry.until and entry.until + later) for entry in _own(data, over)
    ]
    if meaningless(query, chosen) or load("live").refuse(query, chosen) or not elements:
        return
    end = elements[-1].time + 5
    results = list(watch(query, elements, semantics=chosen, end=end))
    session = load("live").start(query, chosen, (plain := []).append)
    for element in elements:
        session.push(element)
    session.advance(end)
    if results != plain:
        first = elements[0].time - (chosen.lateness or 0)
        first += 1 if clocked(chosen) and all(entry.window.kind != "count" for entry in over) else 0
        assert [_unmoved(a, over) for a in results] == [_unmoved(a, over) for a in plain if a.instant >= first]


def _own(data, over: tuple[StreamWindow, ...]):
    return [entry for entry in data.draw(streams()) if entry.stream in {one.stream for one in over}]


def _unmoved(answer, over):
    """A landmark window, and a count-based one before its first triple, names t0, which was moved."""
    names_t0 = any(entry.window.kind != "time" for entry in over)
    return replace(answer, scope=None if names_t0 else answer.scope, added=tuple(sorted(answer.added)))


@pytest.mark.parametrize("name", sorted(name for name in PROFILES if PROFILES[name].clock is Clock.APPLICATION))
def test_profiles_by_name(name):
    refused = {Report.EXPIRATION in PROFILES[name].report: "expirations", name == "updates": "live keeps windows"}
    if True in refused:
        with pytest.raises(RefusedError, match=refused[True]):
            watch(COUNT, PAIRS, semantics=name)
        return
    assert list(watch(COUNT.replace("(COUNT(*) AS ?n)", "?s"), PAIRS, semantics=name, end=30_000))
