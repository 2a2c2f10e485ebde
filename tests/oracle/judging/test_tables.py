"""Verdicts of runs judged in their tables on Spark are those of the same runs judged in this process."""

import random
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import pytest

from streamgauge.formats.run import read_heads, read_run, write_run
from streamgauge.formats.stream import write
from streamgauge.incremental.drivers.relation_to_stream import answer_kind
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import (
    R2S,
    Borders,
    Changes,
    Clock,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Origin,
    Report,
    Scope,
    Semantics,
    Tick,
)
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected import due_table, ranks
from streamgauge.oracle.expected.extent import BLOCK, extent
from streamgauge.oracle.judging import tables
from streamgauge.oracle.judging.judge import Means, judge_run, judge_stored
from streamgauge.oracle.judging.metrics import by_arrival
from streamgauge.oracle.judging.nothing_due import over_nothing
from streamgauge.oracle.judging.oracle import JudgingRules
from streamgauge.oracle.judging.tables import NotInTablesError, judge_tables, refusal, refuse_counts
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.definition import CAME, SIGN, WENT, expected, operator
from streamgauge.semantics.profiles import CQELS, CQELS_1
from streamgauge.spark.hadoop_tables import read_table
from streamgauge.spark.settings import PARTITIONS
from tests.notation import STREAM, stream

CLOSE = Report.WINDOW_CLOSE
SEMANTICS = (
    Semantics("close"),
    Semantics("silent", notify_empty=False),
    Semantics("non-empty", report=frozenset({CLOSE, Report.NON_EMPTY}), borders=Borders.OPEN_CLOSED),
    Semantics("change", report=frozenset({CLOSE, Report.CONTENT_CHANGE}), changes=Changes.ARRIVALS),
    Semantics("periodic", report=frozenset({Report.PERIODIC}), period=700, partial_head=True),
    Semantics("closed, first", borders=Borders.CLOSED, origin=Origin.FIRST, time_unit=10),
    Semantics("searched", origin=Origin.SEARCH, time_unit=250),
    Semantics("a bag", content=Counting.BAG),
    Semantics("a watermark", lateness=300),
    Semantics("since", since=1700),
)
CHANGE = Report.CONTENT_CHANGE
ABLE = frozenset({R2S.ISTREAM})
BY_ARRIVALS = (
    Semantics("elements", report=frozenset({CHANGE}), tick=Tick.ELEMENT, partial_head=True),
    Semantics("triples", report=frozenset({CHANGE, Report.NON_EMPTY}), tick=Tick.TUPLE, changes=Changes.ARRIVALS),
    Semantics("times", report=frozenset({CHANGE}), tick=Tick.BATCH, scope=Scope.RANGE, borders=Borders.CLOSED),
    Semantics("late", report=frozenset({CHANGE}), tick=Tick.ELEMENT, lateness=300, partial_head=True),
    Semantics("bags", report=frozenset({CHANGE}), tick=Tick.ELEMENT, content=Counting.BAG, partial_head=True),
    Semantics("last", due=Due.LAST, borders=Borders.OPEN_CLOSED),
    Semantics("expired", report=frozenset({Report.EXPIRATION}), period=900, partial_head=True),
    Semantics("arrival", clock=Clock.ARRIVAL, origin=Origin.FIRST),
    replace(CQELS, time_unit=250),
    replace(CQELS_1, empty_aggregate=EmptyAggregate.SPARQL),
)
"""Semantics under which arrivals make reports due, or are what counts."""
COUNTED = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?s { ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?x } }",
    "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s",
)
"""Queries whose rows are counted."""
JUDGED = (
    "SELECT ?s (AVG(?v) AS ?a) { ?s <urn:v> ?v } GROUP BY ?s",
    "SELECT ?s { ?s <urn:v> ?v } LIMIT 2",
    "SELECT ?s ?v { ?s <urn:v> ?v FILTER(?v * 3 > 0.9) } ORDER BY DESC(?v)",
    "SELECT (SAMPLE(?v) AS ?x) (SUM(?v) AS ?y) { ?s <urn:v> ?v }",
    "SELECT (GROUP_CONCAT(?o) AS ?all) { ?s <urn:p> ?o }",
    "ASK { ?s <urn:p> <urn:a> }",
    "CONSTRUCT { ?s <urn:r> _:b } { ?s <urn:p> ?o }",
)
"""Queries whose answers are judged one by one, the last one not as differences."""
TWO = (
    "SELECT ?s ?o { GRAPH <urn:one> { ?s <urn:p> ?o } GRAPH <urn:two> { ?o <urn:p> ?x } }",
    "SELECT ?s { GRAPH <urn:one> { ?s <urn:p> ?o } FILTER NOT EXISTS { GRAPH <urn:two> { ?s <urn:q> ?y } } }",
)
"""Queries over two windows."""
DEFINED = Means(lambda: pytest.fail("the definition needs no session"), "definition")
VALUES = ("1", "0.1", "0.3f", "0.1e0", "3e0")
EXTRA = ("<urn:x>", "<urn:y>", "<urn:z>")


def drawn(seed: int, under: Sequence[Semantics] = SEMANTICS):
    """A stream with ties and gaps, a query over it under a semantics, answers of which some are damaged.

    Beside BY_ARRIVALS windows may be count-based.
    """
    draw = random.Random(seed)
    times = sorted(draw.choice([draw.randrange(6000), draw.randrange(12) * 500]) for _ in range(draw.randrange(1, 40)))
    names = "abcd"
    facts = [f"{draw.choice(names)} {draw.choice('ppq')} {draw.choice(names)}." for _ in times]
    values = [f" {draw.choice(names)} v {draw.choice(VALUES)}." for _ in times]
    parts = zip(times, facts, values, strict=True)
    elements = list(stream(" | ".join(f"{time}: {fact}{value}" for time, fact, value in parts)))
    semantics = replace(draw.choice(under), r2s_able=frozenset(R2S))
    kinds = ("time", "count") if under is BY_ARRIVALS else ("time",)
    kinds = ("landmark",) if Report.EXPIRATION in semantics.report else kinds
    if semantics.lateness is not None:
        order = sorted(elements, key=lambda element: element.time + draw.randrange(900))
        elements = [replace(element, sequence=sequence) for sequence, element in enumerate(order)]
    judged = JUDGED[:-1] if semantics.r2s is R2S.ISTREAM else JUDGED
    text = draw.choice((*COUNTED * 3, *judged, *(TWO if semantics.content is Counting.SET else ())))
    windows = tuple(
        StreamWindow(STREAM, _window(draw, draw.choice(kinds)), name if text in TWO else None)
        for name in ("urn:one", "urn:two")
    )[: 1 + (text in TWO)]
    sends = draw.choice([None] * 4 + [R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES])
    query = ContinuousQuery(parse_sparql(text), windows, sends if text in COUNTED else None)
    t0 = draw.choice(origins(semantics, windows, elements[0].time))
    header = RunHeader("mine", query, "", "rspql", semantics, 7000, 0, ordered=draw.random() < 0.5)
    run = Run(header, (), tuple(_fed(elements)))
    wall, stamped = (run, elements) if semantics.clock is Clock.APPLICATION else by_arrival(run, elements)
    if semantics.clock is not Clock.APPLICATION:
        t0 = draw.choice(origins(semantics, windows, stamped[0].time))
    due = expected(stamped, query, semantics, wall.header.advanced_to, t0)
    answers = [_answer(query, report, 10 * number) for number, report in enumerate(due)]
    if semantics.grain is Grain.ROW:
        answers = [replace(answer, added=(row,)) for answer in answers for row in answer.added]
    said = tuple(_damaged(draw, answers))
    if draw.random() < 0.3 and refuse_counts(header) is None and semantics.changes is Changes.BOTH:
        said = tuple(replace(item, instant=None) for item in said)
    return elements, replace(run, answers=said)


def _window(draw: random.Random, kind: str) -> Window:
    """A window of one kind."""
    size, slide = (draw.choice([1, 3, 8]), 2) if kind == "count" else (draw.choice([500, 1000, 1700]), 500)
    return Window(size, size if kind == "landmark" else draw.choice([size, slide]), kind)


def _answer(query, report, received: int) -> Answer:
    """The answer that sends a report; of one with rows that come and go, those apart."""
    kind = answer_kind(query.form)
    if report.variables[-1:] != (SIGN,):
        return Answer(report.variables, report.rows, (), kind, report.due.instant, None, received)
    came, went = ([row[:-1] for row in report.rows if row[-1] == sign] for sign in (CAME, WENT))
    return Answer(report.variables[:-1], tuple(came), tuple(went), kind, report.due.instant, None, received)


def _damaged(draw: random.Random, answers):
    for answer in answers:
        fault = draw.choice(["none"] * 5 + ["lost", "less", "more", "elsewhere"])
        if fault == "lost":
            continue
        if fault == "less":
            answer = replace(answer, added=answer.added[1:])
        if fault == "more":
            width = len(answer.added[0]) if answer.added else len(answer.variables) or 1
            answer = replace(answer, added=(*answer.added, EXTRA[:width], *answer.added[:1]))
        if fault == "elsewhere":
            answer = replace(answer, instant=answer.instant + 3)
        yield answer


def _fed(elements):
    handed = 0
    for number, element in enumerate(elements):
        handed = max(handed, element.time * 1_000_000) + 5 + number
        yield Fed(element.sequence, element.time, element.time * 1_000_000, handed, len(element.added))
    yield Fed(-1, 7000, 7_000_000_000, 7_000_000_500)


def stored(folder, elements, run: Run, parts: int = 1, seed: int = 0):
    """The run's folder and its stream, in so many part files that were written in any order."""
    draw = random.Random(seed)
    cuts = [len(elements) * number // parts for number in range(parts + 1)]
    pieces = [elements[low:high] for low, high in pairwise(cuts) if low < high]
    (folder / "stream").mkdir()
    for number, piece in enumerate(draw.sample(pieces, len(pieces))):
        write(piece, folder / "stream" / f"part-{number}.parquet")
    write_run(folder, run)
    return read_heads(folder, lambda _text, _dialect: run.header.query), folder / "stream"


def plain(verdict):
    """The verdict without the choice of witnesses, whose order is nobody's, and the columns of no rows."""
    windows = [replace(window, missing=len(window.missing), surplus=len(window.surplus)) for window in verdict.windows]
    names = verdict.variables if windows else ()
    return replace(verdict, windows=tuple(windows), evaluator=None, variables=names)


def agree(spark, folder, seed: int, under: Sequence[Semantics] = SEMANTICS) -> None:
    elements, run = drawn(seed, under)
    number = random.Random(seed).choice([1, 2, 7])
    heads, table = stored(folder, elements, run, number, seed)
    counts = refuse_counts(run.header) is None and under is SEMANTICS
    means = Means(lambda: spark, "definition", gracious=counts)
    wanted = judge_run(read_run(folder, lambda _text, _dialect: run.header.query), table, means)
    wrong = {window.instant: {*window.missing, *window.surplus} for window in wanted.windows}
    shared = len({window.instant for window in wanted.windows}) < len(wanted.windows)
    differ = operator(run.header.query, run.header.semantics) is not R2S.RSTREAM
    named = all(answer.instant is not None for answer in run.answers)
    with in_partitions(spark, number), patch.object(due_table, "PORTION", 5 if seed % 2 else due_table.PORTION):
        for evaluator in ("spark", "definition"):
            by_instant = named and (evaluator == "definition" or differ)
            if refusal(run.header, evaluator) is not None or (evaluator == "spark" and shared and not by_instant):
                continue
            with patch.object(ranks, "MAX_REPORTS", 0 if by_instant and not counts else ranks.MAX_REPORTS):
                result = judged(spark, heads, table, JudgingRules(evaluator), gracious=counts)
            if result is None:
                continue
            result = over_nothing(run, replace(result, cautions=wanted.cautions))
            assert plain(result) == plain(wanted), evaluator
            if counts:  # where several answers are legal, the one that is nearest is not determined
                assert {window.instant: {*window.missing, *window.surplus} for window in result.windows} == wrong


def judged(spark, heads, table, rules: JudgingRules, *, gracious: bool):
    """The verdict in tables; ``None`` where a stretch begins after an answer that the query leaves open."""
    try:
        return judge_tables(spark, heads, table, rules, gracious=gracious)
    except NotInTablesError as error:
        if "that the query leaves open" not in str(error):
            raise
        return None


@contextmanager
def in_partitions(spark, number: int):
    """Shuffles in so many partitions, and ranks that are counted in blocks of a few arrivals."""
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, str(number))
    try:
        with patch.object(tables, "fit"), patch.object(ranks, "_BLOCK", 4):
            yield
    finally:
        spark.conf.set(PARTITIONS, before)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.prove) for seed in (2, 4, 5, 7, 14, 15))])
@pytest.mark.slow
def test_the_verdict_is_the_one_of_this_process(spark, tmp_path, seed):
    agree(spark, tmp_path, seed)


@pytest.mark.parametrize("seed", [1, 3, pytest.param(5, marks=pytest.mark.prove)])
@pytest.mark.slow
def test_the_verdict_on_reports_that_arrivals_make_due_is_the_one_of_this_process(spark, tmp_path, seed):
    agree(spark, tmp_path, seed, BY_ARRIVALS)


def test_reports_that_are_aligned_in_order_are_bounded():
    ranks.refuse_reports(ranks.MAX_REPORTS)
    with pytest.raises(
        ranks.ArrivalsError, match="more than 300,000 reports that arrivals make due, and answers without instants"
    ):
        ranks.refuse_reports(ranks.MAX_REPORTS + 1)


@pytest.mark.prove
def test_verdicts_of_many_runs_are_those_of_this_process(spark, tmp_path):
    for seed in range(12, 312):
        (tmp_path / str(seed)).mkdir()
        agree(spark, tmp_path / str(seed), seed, BY_ARRIVALS if seed % 2 else SEMANTICS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s { ?s <urn:p> ?o } LIMIT 1",
        "SELECT (AVG(?o) AS ?a) { ?s <urn:p> ?o }",
        "SELECT (SAMPLE(?o) AS ?a) { ?s <urn:p> ?o }",
        "ASK { ?s <urn:p> ?o }",
    ],
)
def test_queries_whose_rows_are_not_compared_as_terms_are_judged_in_this_process(text):
    header = drawn(0)[1].header
    query = replace(header.query, form=parse_sparql(text))
    assert refusal(replace(header, query=query), "spark") == "a query whose answers are not compared term by term"


def test_rows_that_tables_cannot_compare_are_judged_in_this_process(spark, tmp_path):
    elements = list(stream("0: a p _:b. | 900: b p c. | 2500: c p d."))
    run = replace(drawn(0)[1], answers=())
    query = replace(run.header.query, form=parse_sparql(COUNTED[0]))
    run = replace(run, header=replace(run.header, query=query, semantics=SEMANTICS[0]))
    heads, table = stored(tmp_path, elements, run)
    with pytest.raises(NotInTablesError, match="blank nodes"):
        judge_tables(spark, heads, table, JudgingRules("spark"))
    means = Means(lambda: spark, "spark")
    assert judge_stored(heads, lambda: run, table, means) == judge_run(run, table, means)


@pytest.mark.parametrize(
    ("text", "row", "stays"),
    [(COUNTED[0], ("<urn:x>", "<urn:y>"), True), (JUDGED[0], ("<urn:a>", '"7"^^<urn:t>'), False)],
)
def test_an_answer_that_plans_do_not_give_is_judged_by_the_definition_where_others_may_be_legal(
    spark, tmp_path, text, row, stays
):
    elements = list(stream("0: a p b. a v 1. | 900: b p c. b v 0.5. | 2500: c p d. a v 3."))
    drawn_run = drawn(0)[1]
    query = replace(drawn_run.header.query, form=parse_sparql(text), r2s=None)
    header = replace(drawn_run.header, query=query, semantics=replace(CQELS, time_unit=250))
    answer = Answer(query.form.variables, (row,), (), "solutions", 900, None, 5)
    run = replace(drawn_run, header=header, answers=(answer,))
    heads, table = stored(tmp_path, elements, run)
    run = read_run(tmp_path, lambda _text, _dialect: query)
    if stays:
        verdict = judge_tables(spark, heads, table, JudgingRules("spark"))
        assert plain(replace(verdict, cautions=())) == plain(replace(judge_run(run, table, DEFINED), cautions=()))
    else:
        with pytest.raises(NotInTablesError, match="that the query leaves open"):
            judge_tables(spark, heads, table, JudgingRules("spark"))
    verdict = judge_stored(heads, lambda: run, table, Means(lambda: spark, in_tasks=0))
    assert verdict.judgement is Judgement.WRONG
    assert plain(verdict) == plain(judge_run(run, table, DEFINED))


def test_the_extent_of_a_stream(spark, tmp_path):
    def of(*numbered):
        elements = [replace(stream(f"{time}: a p b.")[0], sequence=sequence) for sequence, time in numbered]
        write(elements, tmp_path / "stream.parquet")
        return extent(read_table(spark, tmp_path / "stream.parquet"), [STREAM])

    assert of((0, 1), (1, 1), (BLOCK, 7)) == (1, 7, 3, True, {1: 1})
    assert of((0, 9), (BLOCK, 7), (2 * BLOCK, 8)) == (9, 9, 3, False, {1: 9, 2: 9})
    assert not of((0, 2), (1, 1)).ordered
    assert not of((0, 9), (BLOCK, 8)).ordered
    assert not of((BLOCK - 1, 9), (BLOCK, 9), (BLOCK + 1, 8), (BLOCK + 2, 10)).ordered
