"""Queries over several processes say what one process says, and end together."""

import os
import signal
from collections import Counter
from dataclasses import replace
from itertools import groupby, islice

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import live, load
from streamgauge.formats.batches import NumberedTerms
from streamgauge.formats.pipe import PipeError
from streamgauge.harness.systems.pipe import RunLimits, program, record
from streamgauge.incremental.shards import session as shards_session
from streamgauge.incremental.shards.keys import Route, shard_key
from streamgauge.incremental.shards.messages import Word, failed_message
from streamgauge.incremental.shards.plan import plan
from streamgauge.incremental.shards.routes import shard_of
from streamgauge.incremental.shards.worker import Shard
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import R2S, Due, Report
from streamgauge.model.terms import triple_term
from streamgauge.query import parse, parse_sparql
from streamgauge.semantics.definition import operator
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError, StreamNameError, meaningless
from streamgauge.suites.conformance.cases import Scale
from streamgauge.suites.conformance.cases import asked as asked_tasks
from streamgauge.suites.conformance.cases import load as load_cases
from tests.engines.test_live import by_report, said_together
from tests.engines.test_live_batches import in_columns
from tests.examples import examples
from tests.notation import STREAM, stream
from tests.semantics.draw import OTHER, asked, semantics, streams, windows

CSPARQL = PROFILES["csparql"]
WINDOW = (StreamWindow(STREAM, Window(5, 5)),)


class InlineShard:
    """A shard in this process: the messages are those of a process, taken at once."""

    def __init__(self, number, receive, ended):
        self._number, self._receive, self._ended = number, receive, ended
        self.process, self.pid = self, os.getpid()
        self._shard = Shard(self._write)

    def send(self, pieces):
        data = b"".join(map(bytes, pieces))
        try:
            self._shard.take(Word(data[0]), data[5:])
        except Exception as error:
            self._write(failed_message(error))

    def _write(self, pieces):
        data = b"".join(map(bytes, pieces))
        self._receive(self._number, Word(data[0]), data[5:])

    def kill(self):
        pass

    def end(self, kill):
        pass


@pytest.fixture
def inline(monkeypatch):
    """Shards in this process."""
    monkeypatch.setattr(shards_session, "ShardProcess", InlineShard)


def pushed(session, elements, advance, sizes=(1,)):
    """Elements one by one, or in columns of sizes that come round."""
    numbers, number = NumberedTerms(), 0
    for alike, group in groupby(
        elements, lambda element: element.stream * (not element.removed and element.until is None)
    ):
        waiting = list(group)
        while waiting:
            size = sizes[number % len(sizes)]
            number += 1
            now, waiting = waiting[:size], waiting[size:]
            if alike and size > 1:
                numbers = numbers if len(numbers) < 9 else NumberedTerms()
                numbers.of([f"<{now[0].stream}>"])
                session.push_batch(in_columns(numbers, now))
            else:
                for element in now:
                    session.push(element)
    session.advance(advance)
    session.close()


def sharded(asked_for, elements, advance, shards=2, sizes=(1,)):
    answers: list = [[] for _ in asked_for]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards_session, "ShardProcess", InlineShard)
        session = live.start_all(
            [(query, chosen, answer.append) for (query, chosen), answer in zip(asked_for, answers, strict=True)], shards
        )
        pushed(session, elements, advance, sizes)
    return answers


def reports(asked_for, answers):
    """The reports of each query."""
    return [
        (query.form, by_report(own, chosen.grain, operator(query, chosen)))
        for (query, chosen), own in zip(asked_for, answers, strict=True)
    ]


def both(asked_for, elements, advance, shards, sizes):
    """The reports of queries over shards, and those in one process."""
    over_shards = sharded(asked_for, elements, advance, shards, sizes)
    return reports(asked_for, over_shards), reports(asked_for, said_together(asked_for, elements, advance))


TEXTS = [
    "SELECT ?s ?o ?v { ?s <urn:p> ?o ; <urn:q> ?v FILTER(?v > 1) }",
    "SELECT ?o ?v { ?s <urn:p> ?o ; <urn:q> ?v }",
    "SELECT ?s (COUNT(*) AS ?n) (AVG(?v) AS ?a) { ?s <urn:q> ?v } GROUP BY ?s",
    "SELECT ?s ?o ?v { ?s <urn:p> ?o . ?o <urn:q> ?v }",
    "SELECT ?s ?o ?v { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?v } }",
    "SELECT ?s { ?s <urn:p> ?o MINUS { ?s <urn:q> ?v } }",
    "SELECT ?s ?o { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> ?v } }",
    "SELECT DISTINCT ?s { { ?s <urn:p> ?o } UNION { ?s <urn:q> ?v } }",
    "SELECT ?s ?n { ?s <urn:p> ?o { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:q> ?v } GROUP BY ?s } }",
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "SELECT ?a ?b { ?a <urn:p> ?s . ?b <urn:p> ?s }",
    "SELECT (AVG(?v) AS ?a) { ?s <urn:p> ?o ; <urn:q> ?v }",
    "SELECT DISTINCT ?o { ?s <urn:p> ?o } ORDER BY ?o LIMIT 2",
    "SELECT ?r ?s ?o { ?r <urn:r> <<( ?s <urn:p> ?o )>> }",
    "SELECT ?s ?t ?d { ?s <urn:r> ?t OPTIONAL { ?s <urn:p> ?o } BIND(LANGDIR(OBJECT(?t)) AS ?d) }",
    "SELECT ?s (COUNT(DISTINCT ?t) AS ?n) { ?s <urn:r> ?t FILTER(isTRIPLE(?t)) } GROUP BY ?s",
    "ASK { ?s <urn:p> ?o ; <urn:q> ?v }",
    "CONSTRUCT { ?o <urn:is> ?v } { ?s <urn:p> ?o ; <urn:q> ?v }",
]


@st.composite
def keyed_streams(draw):
    """Elements of triples with two properties, whose subjects are objects too, and of triple terms of a third."""
    nodes = st.sampled_from([f"<urn:n{number}>" for number in range(5)])
    values = st.integers(0, 3).map(lambda item: f'"{item}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    terms = nodes | st.sampled_from(['"a"@en--ltr', '"a"@en--rtl', '"a"@en'])
    triple = st.one_of(
        st.tuples(nodes, st.just("<urn:p>"), nodes),
        st.tuples(nodes, st.just("<urn:q>"), values),
        st.tuples(nodes, st.just("<urn:r>"), nodes),
        st.tuples(nodes, st.just("<urn:r>"), st.builds(lambda s, o: triple_term((s, "<urn:p>", o)), nodes, terms)),
    )
    times = sorted(draw(st.lists(st.integers(0, 18), min_size=1, max_size=24)))
    on = st.sampled_from([STREAM, STREAM, STREAM, OTHER])
    return [
        StreamElement(draw(on), time, number, tuple(dict.fromkeys(draw(st.lists(triple, max_size=3)))))
        for number, time in enumerate(times)
    ]


@st.composite
def clocked(draw):
    """Semantics whose reports are decided by time for the most part."""
    chosen = draw(semantics())
    if draw(st.integers(0, 4)):
        report = draw(st.sampled_from([{Report.WINDOW_CLOSE}, {Report.WINDOW_CLOSE, Report.NON_EMPTY}]))
        chosen = replace(chosen, report=frozenset(report), period=None)
    late = draw(st.none() | st.integers(0, 4)) if chosen.due is Due.ALL else None
    return replace(chosen, lateness=late)


@pytest.mark.slow
@examples(20, prove=6000)
@given(st.data())
def test_shards_say_what_one_process_says(data):
    """Over the shapes that have a key and those that have none, every strategy, elements one by one or in columns."""
    size, slide = data.draw(st.sampled_from([(4, 4), (6, 2), (3, 4), (5, 5), (1, 1)]))
    over = [StreamWindow(STREAM, Window(size, slide))]
    if data.draw(st.integers(0, 3)) == 0:
        over.append(StreamWindow(OTHER, Window(size, slide)))
    elements, chosen = data.draw(keyed_streams()), data.draw(clocked())
    if chosen.lateness is not None:
        elements = data.draw(st.permutations(elements))
        elements = [replace(element, sequence=number) for number, element in enumerate(elements)]
    query = ContinuousQuery(parse_sparql(data.draw(st.sampled_from(TEXTS))), tuple(over))
    if data.draw(st.booleans()):
        query = query.with_static([triple for item in data.draw(keyed_streams()) for triple in item.added])
    if (
        STREAM not in {element.stream for element in elements}
        or meaningless(query, chosen)
        or live.refuse(query, chosen)
    ):
        return
    sizes = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    over_shards, in_one = both([(query, chosen)], elements, 24, data.draw(st.integers(2, 3)), sizes)
    assert over_shards == in_one


@pytest.mark.slow
@examples(10, prove=4000)
@given(st.data())
def test_any_queries_over_shards_say_what_one_process_says(data):
    """Any query, windows and semantics, alone or several: whatever is planned for them."""
    over, chosen = data.draw(windows()), data.draw(clocked())
    asked_for = [(data.draw(asked(over)), chosen) for _ in range(data.draw(st.integers(1, 3)))]
    elements = data.draw(streams())
    heard = not elements or any(element.stream in {item.stream for item in over} for element in elements)
    if not heard or any(meaningless(query, chosen) or live.refuse(query, chosen) for query, _ in asked_for):
        return
    shards, sizes = data.draw(st.integers(2, 3)), data.draw(st.lists(st.integers(1, 6), min_size=1))
    over_shards, in_one = both(asked_for, elements, 24, shards, sizes)
    assert over_shards == in_one


@pytest.mark.slow
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.prove), 40])
def test_conformance_cases_over_shards(every):
    """Each case under each semantics that `live` takes, with the answers that it has in one process."""
    kinds: Counter[str] = Counter()
    for task in islice(asked_tasks(load_cases(), None, Scale()), None, None, every):
        query, chosen, fed = task.case.query, task.semantics, task.case.stream
        if live.refuse(query, chosen) is None and {element.stream for element in fed} & set(query.streams):
            kinds[plan([(query, chosen)], 2).kind] += 1
            over_shards, in_one = both([(query, chosen)], fed, task.case.advance, 2, [1, 3])
            assert over_shards == in_one
    assert {"one", "variable", "windows"} <= kinds.keys()


def key_of(text):
    return shard_key(parse_sparql(text))


def test_the_key_is_the_variable_that_most_patterns_have():
    key = key_of("SELECT ?s ?v { ?o <urn:sensor> ?s ; <urn:result> ?r . ?r <urn:value> ?v }")
    assert key is not None
    assert (key.name, key.disjoint, key.shared) == ("o", False, 1 / 3)
    assert key.routes.of == {
        "<urn:sensor>": Route.SUBJECT,
        "<urn:result>": Route.SUBJECT,
        "<urn:value>": Route.EVERYWHERE,
    }


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT * { ?s <urn:p> ?o . ?o <urn:q> ?v }", "o"),
        ("SELECT * { ?s ?p ?o }", "s"),
        ("SELECT ?s { ?s <urn:p> ?o } GROUP BY ?s", "s"),
        ("SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }", None),
        ("SELECT DISTINCT ?o { ?s <urn:p> ?o }", "o"),
        ("SELECT DISTINCT ?p { ?s ?p ?o }", None),
        ("SELECT * { ?s <urn:p> ?o } LIMIT 3", None),
        ("SELECT * { ?s <urn:p>+ ?o }", None),
        ("SELECT * { ?s <urn:p> ?o . ?a <urn:q> ?b }", "s"),
        ("SELECT * { { ?s <urn:p> ?o } UNION { ?a <urn:q> ?b } }", None),
        ("SELECT * { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?v } }", "s"),
        ("SELECT * { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> ?v } }", "s"),
        ("ASK { ?s <urn:p> ?o }", None),
    ],
)
def test_keys(text, key):
    result = key_of(text)
    assert (result and result.name) == key


@pytest.mark.parametrize(
    ("text", "chosen", "shards", "words"),
    [
        (TEXTS[0], CSPARQL, 2, "sharded by ?s over 2 processes"),
        (TEXTS[11], CSPARQL, 2, "2 processes take turns at the windows: "),
        (TEXTS[0], PROFILES["cqels"], 2, "one process: a report depends on whether the content has changed"),
        (TEXTS[1], replace(PROFILES["rspql"], r2s=R2S.ISTREAM), 2, "one process: ?s is not a column of the answer"),
        (TEXTS[0], CSPARQL, 1, "one process"),
    ],
)
def test_the_sentence_says_how_and_why(text, chosen, shards, words):
    assert live.sharding([(ContinuousQuery(parse_sparql(text), WINDOW), chosen)], shards).startswith(words)


@pytest.mark.parametrize("shards", [0, -1, 65, 2.0, True, "2"])
def test_a_number_of_processes_that_is_none_is_refused(shards):
    with pytest.raises(RefusedError, match="expected a whole number of processes, 1 to 64"):
        plan([(ContinuousQuery(parse_sparql(TEXTS[0]), WINDOW), CSPARQL)], shards)


def test_terms_are_spread_over_the_shards():
    terms = [f"<urn:{'x' * (number % 40)}{number}>" for number in range(500)] + ['"é"', '""', "_:b"]
    balance = Counter(shard_of(term, 3) for term in terms)
    assert sorted(balance) == [0, 1, 2]
    assert min(balance.values()) > 120


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[1].replace("?o ?v", "(COUNT(*) AS ?n)")])
def test_an_element_that_goes_back_ends_the_session_after_what_came_before(inline, text):
    answers: list = []
    session = live.start(ContinuousQuery(parse_sparql(text), WINDOW), CSPARQL, answers.append, shards=2)
    elements = stream("1: a p b. a q 3. | 12: b p c. b q 3. | 3: c p d.")
    with pytest.raises(OutOfOrderError, match="element 2 goes back from 12 to 3 ms"):
        pushed(session, elements, 20)
    assert [answer.instant for answer in answers] == [5]


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[11]])
def test_a_stream_that_nobody_asked_for_is_named(inline, text):
    session = live.start(ContinuousQuery(parse_sparql(text), WINDOW), CSPARQL, lambda _answer: None, shards=2)
    with pytest.raises(StreamNameError, match=OTHER):
        pushed(session, [StreamElement(OTHER, 1, 0, ())], 20)


FED = [
    StreamElement(
        STREAM,
        number,
        number,
        ((f"<urn:s{number}>", "<urn:p>", f"<urn:o{number % 3}>"), (f"<urn:s{number}>", "<urn:q>", '"3"')),
    )
    for number in range(40)
]
PLAIN = "SELECT ?s ?o ?v { ?s <urn:p> ?o ; <urn:q> ?v }"


@pytest.mark.slow
@pytest.mark.heavy("each process loads this package")
@pytest.mark.server
@pytest.mark.parametrize(
    "text", [pytest.param(PLAIN, marks=pytest.mark.prove), PLAIN.replace("?s ?o ?v", "(COUNT(*) AS ?n)")]
)
def test_processes_say_what_one_says_and_end(text):
    asked_for = [(ContinuousQuery(parse_sparql(text), WINDOW), CSPARQL)]
    results: list = []
    session = load("live").start(*asked_for[0], results.append, shards=2)
    children = [psutil.Process(pid) for pid in session.processes]
    assert len(children) == 2
    pushed(session, FED, 45)
    assert by_report(results, CSPARQL.grain, R2S.RSTREAM) == by_report(
        said_together(asked_for, FED, 45)[0], CSPARQL.grain, R2S.RSTREAM
    )
    assert not any(map(psutil.Process.is_running, children))


def test_a_shard_without_content_says_nothing_of_static_data(inline):
    """Non-empty content: the static row of a shard whose content is empty belongs to the report of the others."""
    static = [(f"<urn:x{number}>", "<urn:p>", "<urn:o>") for number in range(8)]
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), WINDOW).with_static(static)
    assert "static data" in live.sharding([(query, CSPARQL)], 2)
    over_shards, in_one = both([(query, CSPARQL)], stream("1: a p b. | 7: a p c. | 11: d p e."), 20, 2, [1])
    assert over_shards == in_one


def push_often(session):
    for _ in range(1_000_000):
        session.push(FED[1])


@pytest.mark.slow
@pytest.mark.heavy("each process loads this package")
@pytest.mark.server
def test_a_killed_process_ends_the_session_with_a_sentence():
    messages: list = []
    query = ContinuousQuery(parse_sparql(PLAIN), WINDOW)
    session = live.start(query, CSPARQL, lambda _answer: None, shards=2)
    session.on_failure(messages.append)
    children = [psutil.Process(pid) for pid in session.processes]
    session.push(FED[0])
    os.kill(session.processes[1], signal.SIGKILL)
    with pytest.raises(PipeError, match=r"process 2 of 2 of the query ended with exit code -9: killed from outside"):
        push_often(session)
    assert not psutil.wait_procs(children, timeout=60)[1]
    assert messages
    assert messages[0].startswith("process 2 of 2")
    session.close()


@pytest.mark.slow
@pytest.mark.heavy("each process loads this package")
@pytest.mark.server
def test_the_host_gives_the_option_and_writes_the_same_lines():
    """`live` behind the pipe with the option ``shards``: the answers of a run are those of one process."""
    text = (
        f"SELECT ?s ?o ?v FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE 5ms STEP 5ms] "
        "WHERE { WINDOW <urn:w> { ?s <urn:p> ?o ; <urn:q> ?v } }"
    )
    runs = []
    for options in ({}, {"shards": 2}):
        header = RunHeader("live", parse(text), text, "rspql", CSPARQL, 45, 0, options=options)
        run = record(header, program("live"), iter(FED), RunLimits())
        assert run.header.failure is None
        runs.append([(answer.instant, answer.scope, Counter(answer.added)) for answer in run.answers])
    assert runs[0] == runs[1]
    assert len(runs[0]) == 8
