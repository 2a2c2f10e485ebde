"""One plan for many batches: made once where reports are in the same places, anew when the data is of another kind."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.engines.spark.arrivals import triples
from streamgauge.engines.spark.evaluation import Evaluation, LastingPlan
from streamgauge.engines.spark.micro_batches import Batches, Emitted, configured
from streamgauge.formats.stream import to_table
from streamgauge.model.element import StreamElement
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.model.terms import XSD
from streamgauge.query import parse
from streamgauge.semantics.definition import expected
from streamgauge.spark import settings
from streamgauge.spark.facts import PredicateCounts
from tests.engines.spark.batched import landed, said
from tests.notation import STREAM

HEAD = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT1S STEP PT1S] WHERE {{ WINDOW <urn:w> {{"
PLAIN = f"SELECT ?s ?v {HEAD} ?s <urn:v> ?v . ?s <urn:in> ?p }} FILTER(?v > 2) }}"
EXISTS = f"SELECT ?s ?v {HEAD} ?s <urn:v> ?v . FILTER EXISTS {{ ?s <urn:in> ?p }} }} }}"
SEMANTICS = Semantics("fixed", lateness=0, origin=Origin.FIXED, t0=0)
KINDS = ("float", "float", "integer", "float", "string", "float")


def batch(number: int, kind: str) -> list[StreamElement]:
    """Three elements of one second, each with a value and a place, its second triple twice in the window."""
    first = 3 * number
    return [
        StreamElement(
            STREAM,
            1000 * number + 100 * place,
            first + place,
            (
                (f"<urn:s{place}>", "<urn:v>", f'"{place + 2}"^^<{XSD}{kind}>' if kind != "string" else f'"{place}"'),
                (f"<urn:s{place // 2}>", "<urn:in>", "<urn:p>"),
            ),
        )
        for place in range(3)
    ]


@pytest.fixture
def compiled(monkeypatch) -> list[int]:
    """How many reports each plan was made for."""
    made: list[int] = []
    plan = Evaluation._of_bags

    def counted(self, rows, due, known):
        made.append(len(due))
        return plan(self, rows, due, known)

    monkeypatch.setattr(Evaluation, "_of_bags", counted)
    return made


def agree(spark, text: str, kinds, root) -> None:
    query, cuts = parse(text), [batch(number, kind) for number, kind in enumerate(kinds)]
    upto = 1000 * len(cuts)
    answers, _ = said(configured(spark), query, SEMANTICS, cuts, upto, root)
    wanted = expected([item for cut in cuts for item in cut], query, SEMANTICS, upto, 0)
    assert [sorted(answer.added) for answer in answers] == [sorted(item.rows) for item in wanted]
    assert any(answer.added for answer in answers)


def test_a_plan_is_made_once(spark, compiled, tmp_path):
    agree(spark, PLAIN, ["float"] * 5, tmp_path)
    assert compiled == [1]


def test_numbers_of_another_kind_are_compared_right(spark, compiled, tmp_path):
    """Floats, then integers: the plan for floats fails and is made for mixed ones, which stays."""
    agree(spark, PLAIN, KINDS, tmp_path)
    assert compiled == [1, 1]


def test_what_cannot_last_is_made_for_every_batch(spark, compiled, tmp_path):
    agree(spark, EXISTS, ["float"] * 3, tmp_path)
    assert compiled == [1, 1, 1]


def test_a_report_is_shuffled_into_as_many_partitions_as_its_triples_need(spark, tmp_path, monkeypatch):
    """Never into fewer than the session has, one for each core of a cluster."""
    monkeypatch.setattr(settings, "PARTITION_BYTES", settings.ROW_BYTES // 2)
    before = spark.conf.get(settings.PARTITIONS)
    own = configured(spark)
    assert own.conf.get(settings.PARTITIONS) == before
    said(own, parse(PLAIN), SEMANTICS, [batch(0, "float")], 1000, tmp_path)
    assert (own.conf.get(settings.PARTITIONS), spark.conf.get(settings.PARTITIONS)) == ("12", before)


def test_files_of_several_writers_are_looked_at_together(tmp_path):
    """Strings that may be absent or not, long ones, dictionaries, columns in another order."""
    rows = to_table([*batch(0, "float")])
    ways = [
        rows,
        rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema])),
        rows.set_column(6, "object", rows["object"].cast(pa.large_string())),
        rows.set_column(5, "predicate", rows["predicate"].dictionary_encode()).select(rows.column_names[::-1]),
    ]
    for number, way in enumerate(ways):
        pq.write_table(way, tmp_path / f"{number}.parquet")
    counts = PredicateCounts(("<urn:v>", "<urn:in>"), ("<urn:v>",))
    files = [str(tmp_path / f"{number}.parquet") for number in range(4)]
    assert counts.look(triples(files[:1], frozenset({STREAM}))) == ({"<urn:v>": "float"}, False)
    assert counts.look(triples(files, frozenset({STREAM}))) == ({"<urn:v>": "float"}, True)
    assert counts.look(triples(files, frozenset({"urn:other"}))) == ({}, False)


@pytest.mark.parametrize("contents", [("aab", "c", "", "bbbb")])
def test_a_kept_plan_reads_the_files_of_now(spark, tmp_path, contents):
    """A shuffle that the plan reads twice is made anew each time."""
    own = configured(spark)
    rows = own.read.schema("name string").parquet(str(tmp_path))
    rows.createOrReplaceTempView("kept_plan")
    counted = rows.groupBy("name").count()
    plan = LastingPlan(counted.join(counted.withColumnRenamed("count", "again"), "name"))
    for names in contents:
        pq.write_table(pa.table({"name": pa.array(list(names), pa.string())}), tmp_path / "now.parquet")
        own.catalog.refreshTable("kept_plan")
        results = {row["name"]: (row["count"], row["again"]) for row in plan.rows().to_pylist()}
        assert results == {name: (count, count) for name, count in Counter(names).items()}


def test_the_first_report_is_rehearsed_for_nobody(spark, compiled, tmp_path):
    """Its plan is there when its window closes; what was answered on the way is not said."""
    query, first, rest, answers = parse(PLAIN), batch(0, "float"), [batch(1, "float"), batch(2, "float")], []
    emitted = Emitted(query, SEMANTICS, answers.append)
    batches = Batches(configured(spark), query, SEMANTICS, tmp_path / "checkpoint", emitted, rehearsals=2)
    for number, elements in enumerate([[item] for item in first] + rest):
        assert (not answers, compiled) == (number < 4, [1] if number else [])
        batches(landed(spark, elements, tmp_path / f"{number:03}.parquet"), number)
    batches.drain(3000)
    wanted = expected([*first, *rest[0], *rest[1]], query, SEMANTICS, 3000, 0)
    assert [sorted(answer.added) for answer in answers] == [sorted(item.rows) for item in wanted]
    assert compiled == [1]
    assert batches.state.sent == len(wanted)
