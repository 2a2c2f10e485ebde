"""Real-time mode without a broker: which jobs are refused and why, and that the plan gives what the definition says."""

from collections import Counter
from pathlib import Path

import pytest

from streamgauge.engines.spark import real_time, updates
from streamgauge.engines.spark.pipeline import Job
from streamgauge.formats.lines import decode_answer, encode_advance, encode_element
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import RSPQL, UPDATES
from tests.notation import STREAM, stream

CAME = "0: a v 3. a w x. | 1: b v 4. b v 2.5. | 2: a v 5. c v d. | 6: a v 1. c v 1. c w a. | 7: a w 1. | 8: a v 7."
PLAIN = "SELECT ?s ?o { ?s <urn:v> ?o }"


def asked(text: str, size: int = 5, slide: int = 5, kind="time") -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, slide, kind), None),))


REFUSED = {
    "OPTIONAL": "SELECT ?s { ?s <urn:v> ?v OPTIONAL { ?s <urn:w> ?o } }",
    "a property path": "SELECT ?s { ?s <urn:v>* ?v }",
    "STRLEN()": "SELECT ?s { ?s <urn:v> ?v FILTER(STRLEN(?v) > 3) }",
    "between two variables": "SELECT ?s { ?s <urn:v> ?v ; <urn:w> ?o FILTER(?v = ?o) }",
    "not a condition": "SELECT ?s { ?s <urn:v> ?v FILTER(?v) }",
    "`?v` as a condition": "SELECT ?s { ?s <urn:v> ?v FILTER(!?v) }",
    "`=` with a condition": "SELECT ?s { ?s <urn:v> ?v FILTER((?v > 1) = 2) }",
    "`-` with a condition": "SELECT ?s { ?s <urn:v> ?v FILTER(?v > -(?v > 1)) }",
    "sameTerm with STRLEN(?v)": "SELECT ?s { ?s <urn:v> ?v FILTER(sameTerm(?v, STRLEN(?v))) }",
    "EXISTS": "SELECT ?s { ?s <urn:v> ?v FILTER(?v > 1 && EXISTS { ?s <urn:w> ?o }) }",
    "not a number": 'SELECT ?s { ?s <urn:v> ?v FILTER(?v = "a") }',
    "the state would hold every term": "SELECT (COUNT(DISTINCT ?v) AS ?n) { ?s <urn:v> ?v }",
    "GROUP_CONCAT": "SELECT (GROUP_CONCAT(?v) AS ?n) { ?s <urn:v> ?v }",
    "in a pattern after it": "SELECT ?s { ?s <urn:v> ?v BIND(?v + 1 AS ?o) ?s <urn:w> ?o }",
    "LIMIT": f"{PLAIN} LIMIT 3",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_query_is_refused_with_the_part_that_cannot_be(reason):
    assert reason in (updates.refuse(asked(REFUSED[reason]), UPDATES) or "")


def job(**other) -> Job:
    places = {"source": "kafka://h/a", "sink": "kafka://h/b", "checkpoint": Path("c"), "semantics": UPDATES}
    return Job(asked(PLAIN), PLAIN, "rspql", **(places | other))


JOBS = [
    ({"semantics": RSPQL}, "rspql reports windows"),
    ({"source": "mqtt://h/a"}, "comes from 'mqtt'"),
    ({"sink": "answers"}, "go to 'file'"),
    ({"drain": True}, "--drain"),
    ({"source": "kafka://h/a?group=g"}, "option group"),
    ({"source": "kafka://h/a?form=turtle"}, "form=jsonl"),
]


@pytest.mark.parametrize(("other", "reason"), JOBS, ids=[reason for _, reason in JOBS])
def test_a_job_is_refused_with_what_stands_against_it(other, reason):
    assert reason in (real_time.refuse(job(**other)) or "")
    assert real_time.refuse(job()) is None


def test_aggregates_take_one_partition_and_a_task_for_the_state():
    grouped = Job(
        asked("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"), "", "rspql", UPDATES, "kafka://h/a", "kafka://h/b", Path()
    )
    assert "left to chance" in (real_time.refuse_partitions(grouped, 2) or "")
    assert real_time.refuse_partitions(job(), 2) is None
    assert (real_time.threads(grouped, 1), real_time.threads(job(), 3)) == (2, 3)


@pytest.fixture
def own(spark):
    session = spark.newSession()
    plain = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in (real_time.SETTINGS | plain).items():
        session.conf.set(name, value)
    return session


def messages(session, lines):
    rows = [(0, offset, line) for offset, line in enumerate(lines)]
    return session.createDataFrame(rows, "partition int, offset long, value binary")


PLANS = [
    (
        "SELECT ?s ?y ?z { ?s <urn:w> ?o . ?o <urn:v> ?y FILTER(?o != <urn:b> && !(?y < 1) && !sameTerm(?s, ?o)) "
        "BIND(?y / 4 AS ?z) }",
        5,
        5,
        "time",
    ),
    ("SELECT ?s (SUM(?o) AS ?n) (COUNT(*) AS ?c) { ?s <urn:v> ?o FILTER(?o > 1) } GROUP BY ?s", 5, 5, "time"),
    pytest.param(
        "SELECT ?s ?o ?z { ?s <urn:v> ?o ; <urn:w> ?x BIND(?o * 2 + 1 AS ?z) }", 5, 5, "time", marks=pytest.mark.prove
    ),
    pytest.param(
        "SELECT ?s (COUNT(?none) AS ?n) { ?s <urn:v> ?o FILTER(!(?none > 1) || BOUND(?s)) } GROUP BY ?s",
        5,
        5,
        "time",
        marks=pytest.mark.prove,
    ),
    pytest.param(
        "SELECT (MAX(?o) AS ?n) (AVG(?o) AS ?a) { ?s <urn:v> ?o FILTER(?o > 0) }", 4, 2, "time", marks=pytest.mark.prove
    ),
    pytest.param(
        "SELECT ?s (MIN(?o) AS ?n) { ?s <urn:v> ?o FILTER(?o > 0) } GROUP BY ?s HAVING(MIN(?o) < 4)",
        5,
        5,
        "landmark",
        marks=pytest.mark.prove,
    ),
]


@pytest.mark.spark
@pytest.mark.parametrize(("text", "size", "slide", "kind"), PLANS, ids=range(len(PLANS)))
def test_the_plan_gives_the_last_update_of_each_group(own, text, size, slide, kind):
    """Over all messages in one batch; that each message has its own update is real-time mode's (tests/prove)."""
    query, came = asked(text, size, slide, kind), stream(CAME)
    lines = [*map(encode_element, came[:3]), encode_advance(3), *map(encode_element, came[3:])]
    results = [decode_answer(line) for _, line in updates.plan(messages(own, lines), query, UPDATES, "q").collect()]
    said = Counter((answer.scope[0], answer.instant, row) for answer in results for row in answer.added)
    due = [
        (report.due.start, report.due.instant, row)
        for report in expected(came, query, UPDATES, 9, 0)
        for row in report.rows
    ]
    if "GROUP" in text and "HAVING" not in text:
        due = list({(start, row[0]): (start, instant, row) for start, instant, row in due}.values())
    if "MAX" in text or "HAVING" in text:  # a later element has updated the group without showing it
        assert said
        assert said <= Counter(due)
    else:
        assert said == Counter(due)


BROKEN = {
    b'{"t":1}\n': "not an element in JSON at partition 0, offset 0",
    b'{"t":1,"add":"<urn:a>  <urn:b> <urn:c> .\\n"}': "not canonical N-Triples",
    b'{"t":1,"add":"<urn:a> <urn:b> <urn:c> .\\n","until":9}': "elements that end",
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "line", [next(iter(BROKEN)), *(pytest.param(item, marks=pytest.mark.prove) for item in list(BROKEN)[1:])]
)
def test_a_message_that_cannot_be_read_fails_the_job_with_its_place(own, line):
    with pytest.raises(Exception, match="streamgauge: ") as failed:
        updates.plan(messages(own, [line]), asked(PLAIN), UPDATES, "q").collect()
    assert BROKEN[line] in real_time.reason(failed.value)


@pytest.mark.parametrize(
    "condition",
    [
        "sameTerm(?v, ?o)", "sameTerm(?v, 5)", "!BOUND(?v)", "?v = <urn:a>", "<urn:a> != ?v", "-?v > 3", "+?v > 1",
        "?v / 2 < 1 || !(?v >= 2)",
    ],
)  # fmt: skip
def test_a_condition_that_has_a_column_is_not_refused(condition):
    assert updates.refuse(asked(f"SELECT ?s {{ ?s <urn:v> ?v ; <urn:w> ?o FILTER({condition}) }}"), UPDATES) is None
