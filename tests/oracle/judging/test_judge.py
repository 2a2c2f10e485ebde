"""Which evaluator judges, what it is given, and that both say the same of undecided rows and of every change."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import StreamError, write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Clock, Report, Tick
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.expected.reports import Header, definition
from streamgauge.oracle.judging import judge
from streamgauge.oracle.judging.estimate import choice, work_of
from streamgauge.oracle.judging.judge import Means, expected_reports, judge_run, other_stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Head
from streamgauge.semantics.profiles import RSPQL
from streamgauge.spark import requirements
from tests.notation import STREAM, stream
from tests.oracle.judging.test_deltas import changes_of
from tests.oracle.runs import right_run

HOT = "SELECT ?s (AVG(?v) AS ?mean) { ?s <urn:p> ?v } GROUP BY ?s HAVING(AVG(?v) > 7)"
TEXT = "1: a p 6.9f. a p 7.1f. b p 8f. c p 6f. | 3: d p 7f. | 6: a p 9f. b p 6.9f. b p 7.1f. | 11: e p 7.5. a p 7f."
CHANGE = replace(RSPQL, name="change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)


def query(*windows: Window) -> ContinuousQuery:
    over = tuple(StreamWindow(STREAM, window, f"urn:w{n}") for n, window in enumerate(windows))
    return ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), over)


@pytest.fixture
def table(tmp_path):
    write(stream(TEXT), tmp_path / "stream.parquet")
    return tmp_path / "stream.parquet"


def test_never_the_evaluator_that_the_engine_runs_on(table):
    asked = query(Window(5, 5))
    means = Means(lambda: None)  # type: ignore[arg-type]
    assert means.choose(table, asked, RSPQL, None) == "definition"
    assert means.choose(table, asked, RSPQL, "changes") == "definition"
    assert means.choose(table, asked, RSPQL, "definition") == "spark"
    assert means.choose(table, asked, RSPQL, "spark") == "definition"
    assert replace(means, evaluator="spark").choose(table, asked, RSPQL, None) == "spark"


def test_the_sentence_on_the_choice_is_told(table):
    messages: list[str] = []
    run = right_run(RSPQL, text=TEXT, window=(5, 5), advance=15)
    judge_run(run, table, Means(lambda: None, chosen=messages.append))  # type: ignore[arg-type]
    (sentence,) = messages
    assert sentence.startswith("definition: the definition would take about 0.0 s of CPU for 3 reports over ")
    judge_run(run, table, Means(lambda: None, "definition", chosen=messages.append))  # type: ignore[arg-type]
    assert messages == [sentence]


def test_no_stream_in_common_is_named(table):
    asked = query(Window(5, 5))
    assert other_stream(table, asked) is None
    elsewhere = replace(asked, windows=(replace(asked.windows[0], stream="urn:else"),))
    assert "<urn:else>" in (other_stream(table, elsewhere) or "")
    both = replace(asked, windows=(*asked.windows, *elsewhere.windows))
    assert other_stream(table, both) is None


def test_a_stream_table_that_cannot_be_read_is_named(table):
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(StreamError, match=r"stream\.parquet"):
        choice(table, query(Window(5, 5)), RSPQL, None)


def in_any_order(verdict: Verdict) -> Verdict:
    """Without the evaluator's name and the order of rows."""
    bags = ("missing", "surplus", "doubtful")
    windows = [replace(one, **{name: tuple(sorted(getattr(one, name))) for name in bags}) for one in verdict.windows]
    return replace(verdict, evaluator=None, windows=tuple(windows))


@pytest.mark.parametrize(
    "semantics", [pytest.param(RSPQL, marks=pytest.mark.prove, id="rspql"), pytest.param(CHANGE, id="change")]
)
def test_spark_and_definition_say_the_same(spark, table, semantics):
    """Rows are compared under window close, changes counted under content change."""
    run = right_run(semantics, text=TEXT, sparql=HOT, window=(5, 5), advance=15)
    lost = replace(run, answers=tuple(replace(answer, added=answer.added[1:]) for answer in run.answers))
    verdicts = [judge_run(lost, table, Means(lambda: spark, name)) for name in ("definition", "spark")]
    assert verdicts[0].evaluator != verdicts[1].evaluator
    assert in_any_order(verdicts[0]) == in_any_order(verdicts[1])
    assert judge_run(run, table, Means(lambda: spark, "definition")).judgement is Judgement.RIGHT


def test_time_that_goes_on_without_end_is_refused_not_waited_for(table, monkeypatch):
    monkeypatch.setattr(requirements, "java_lack", lambda: "")  # here or not: Spark is not started
    run = right_run(RSPQL, text=TEXT, window=(5, 5), advance=15)
    endless = replace(run, header=replace(run.header, advanced_to=20_000_000))
    verdict = judge_run(endless, table, Means(lambda: None, "definition"))  # type: ignore[arg-type]
    assert verdict.judgement is Judgement.UNKNOWN
    assert "4,000,000 instants" in verdict.reason
    assert choice(table, query(Window(5, 5)), RSPQL, None, 20_000_000).evaluator == "spark"


class Session:
    """In Spark's place: the definition, with what it was asked for."""

    def __init__(self, monkeypatch):
        self.asked: list[str] = []
        on_spark = pytest.importorskip("streamgauge.oracle.expected.on_spark")
        monkeypatch.setattr("streamgauge.spark.hadoop_tables.read_table", self.read_table)
        for name in ("arrived", "read_header", "SparkReports", "spark_changes"):
            monkeypatch.setattr(on_spark, name, getattr(self, name))

    def read_table(self, session, path):
        assert session is self
        return session, stream(TEXT)

    def arrived(self, session, path, times):
        assert session is self
        return session, tuple(replace(element, time=times[element.sequence]) for element in stream(TEXT))

    def read_header(self, table):
        return Header(map(Head.of, table[1]))

    def SparkReports(self, session, table, header):  # noqa: N802
        self.asked.append("reports")
        return self._answering(definition, session, table, header)

    def spark_changes(self, session, table, header):
        self.asked.append("changes")
        return self._answering(changes_of, session, table, header)

    def _answering(self, evaluator, session, table, header):
        assert session is self
        held = table[1] if isinstance(table, tuple) else stream(TEXT)
        assert header.elements == list(map(Head.of, held))
        return evaluator(tuple(held))


@pytest.mark.parametrize(
    ("semantics", "asked"),
    [
        (RSPQL, ["reports"]),
        (CHANGE, ["reports", "changes"]),
        (replace(CHANGE, report=frozenset({Report.CONTENT_CHANGE, Report.WINDOW_CLOSE})), ["reports"]),
        (replace(RSPQL, clock=Clock.ARRIVAL), ["reports", "reports"]),
    ],
    ids=["rows are compared", "changes are counted", "at closes rows are compared", "under both clocks"],
)
@pytest.mark.parametrize("own", [None, "definition"], ids=["asked for", "since the engine runs on the definition"])
def test_spark_judges_with_the_session_that_is_made_for_it(monkeypatch, table, semantics, asked, own):
    session = Session(monkeypatch)
    run = right_run(semantics, text=TEXT, sparql="SELECT ?s { ?s <urn:p> ?v }", advance=15)
    run = replace(run, header=replace(run.header, evaluator=own))
    means = Means(lambda: session, None if own else "spark")
    verdict = judge_run(run, table, means)
    assert (verdict.judgement, verdict.evaluator, session.asked) == (Judgement.RIGHT, "spark", asked)
    lost = replace(run, answers=run.answers[1:])
    assert judge_run(lost, table, means).judgement is Judgement.WRONG


@pytest.mark.parametrize(("evaluator", "asked"), [("spark", ["reports"]), (None, [])])
def test_expected_reports_are_those_of_the_evaluator_that_is_chosen(monkeypatch, table, evaluator, asked):
    session = Session(monkeypatch)
    result = expected_reports(query(Window(5, 5)), RSPQL, table, Means(lambda: session, evaluator))
    assert ([report.due.instant for report in result], session.asked) == ([5, 10], asked)


def test_the_engine_that_runs_on_spark_is_judged_by_the_definition(table):
    run = right_run(RSPQL, text=TEXT, sparql="SELECT ?s { ?s <urn:p> ?v }", advance=15)
    own = replace(run, header=replace(run.header, evaluator="spark"))
    assert judge_run(own, table, Means(lambda: None)).evaluator == "definition"  # type: ignore[arg-type]


def shifted():
    """A run whose second answer holds the window before its own."""
    run = right_run(RSPQL, text=TEXT, sparql="SELECT ?s { ?s <urn:p> ?v }", advance=15)
    return replace(run, answers=(run.answers[0], replace(run.answers[1], added=run.answers[0].added), *run.answers[2:]))


@pytest.mark.parametrize("clock", [Clock.APPLICATION, Clock.ARRIVAL])
def test_borders_that_fit_are_sought_when_they_are_asked_for(table, clock):
    run = shifted()
    run = replace(run, header=replace(run.header, semantics=replace(RSPQL, clock=clock)))
    plain = judge_run(run, table, Means(lambda: None))  # type: ignore[arg-type]
    assert [window.borders for window in plain.windows] == [None] * 3
    messages: list[tuple[int, int]] = []
    means = Means(lambda: None, gracious=True, progress=lambda *item: messages.append(item))  # type: ignore[arg-type]
    verdict = judge_run(run, table, means)
    assert verdict.judgement is plain.judgement is Judgement.WRONG
    assert [window.borders for window in verdict.windows] == [(0, 5), (1, 10), (10, 15)]
    assert messages[-3:] == [(4, 6), (5, 6), (6, 6)]
    shares = [done / of for done, of in messages]
    assert shares == sorted(shares)
    assert shares[-4] <= 0.5


def test_borders_fit_by_value_also_where_datatypes_are_exact_and_a_caution_says_so(table):
    run = right_run(RSPQL, text=TEXT, sparql=HOT, window=(5, 5), advance=15)
    last = run.answers[-1]
    doubles = tuple((s, (mean or "").replace("#decimal", "#double")) for s, mean in last.added)
    run = replace(run, answers=(*run.answers[:-1], replace(last, added=doubles)))
    exactly = Means(lambda: None, "definition", exact_datatypes=True)  # type: ignore[arg-type]
    plain, verdict = judge_run(run, table, exactly), judge_run(run, table, replace(exactly, gracious=True))
    assert verdict.judgement is Judgement.WRONG
    assert verdict.windows[-1].fitted == (1.0, 1.0)
    (caution,) = set(verdict.cautions) - set(plain.cautions)
    assert caution == "Gracious mode: borders fit by the values of computed numbers, whatever their datatypes are."
    by_value = judge_run(run, table, Means(lambda: None, "definition", gracious=True))  # type: ignore[arg-type]
    nothing_computed = judge_run(shifted(), table, replace(exactly, gracious=True))
    assert not any("values of computed numbers" in said for said in (*by_value.cautions, *nothing_computed.cautions))


@pytest.mark.parametrize(
    ("evaluator", "semantics", "room", "sought"),
    [
        ("spark", CHANGE, 0, True),
        ("spark", CHANGE, -1, False),
        ("spark", RSPQL, -1, True),
        ("definition", CHANGE, -1, True),
    ],
    ids=["as much as is allowed", "one triple more", "rows are compared anyway", "the definition has all rows"],
)
def test_borders_are_not_sought_where_counts_judge_too_many_triples(
    monkeypatch, table, evaluator, semantics, room, sought
):
    session = Session(monkeypatch)
    run = right_run(semantics, text=TEXT, sparql="SELECT ?s { ?s <urn:p> ?v }", advance=15)
    run = replace(run, answers=(run.answers[0], replace(run.answers[1], added=()), *run.answers[2:]))
    most = int(work_of(table, run.header.query, semantics).held) + room
    monkeypatch.setattr(judge, "MAX_SEARCHED_TRIPLES", most)
    means = Means(lambda: session, evaluator)
    plain, verdict = judge_run(run, table, means), judge_run(run, table, replace(means, gracious=True))
    assert verdict.judgement is plain.judgement is Judgement.WRONG
    assert all((window.borders is not None) is sought for window in verdict.windows)
    if not sought:
        (caution,) = set(verdict.cautions) - set(plain.cautions)
        assert f"the windows of all reports hold more than {most} triples" in caution


def test_where_no_borders_can_be_sought_the_ordinary_verdict_says_so(table):
    run = shifted()
    two = replace(run.header.query, windows=run.header.query.windows * 2)
    run = replace(run, header=replace(run.header, query=two))
    plain = judge_run(run, table, Means(lambda: None))  # type: ignore[arg-type]
    verdict = judge_run(run, table, Means(lambda: None, gracious=True))  # type: ignore[arg-type]
    (caution,) = set(verdict.cautions) - set(plain.cautions)
    assert caution == ("No borders were sought: gracious mode moves the borders of one window: the query has 2.")
    assert replace(verdict, cautions=plain.cautions) == plain


def test_a_row_that_is_no_triple_is_told_with_its_stream_table(tmp_path):
    table = tmp_path / "stream.parquet"
    write([replace(element, added=(('"a"', "<urn:p>", "<urn:o>"),)) for element in stream("1: a p b.")], table)
    run = right_run(RSPQL, text=TEXT, sparql="SELECT ?s { ?s <urn:p> ?v }", advance=15)
    with pytest.raises(StreamError, match=r"stream\.parquet: a row is not a triple: "):
        judge_run(run, table, Means(lambda: None))  # type: ignore[arg-type]
