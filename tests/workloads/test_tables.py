"""Tables of workloads: the rows that Spark's expressions made, whatever the blocks and wherever they are made."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from streamgauge import workloads
from streamgauge.formats.stream import SCHEMA
from streamgauge.workloads import plan as plans
from streamgauge.workloads.distributed import frame
from streamgauge.workloads.plan import LOCAL_ROWS, Maker, TablePlan
from tests.workloads.cases import STATIC, STREAMS, digest

EVERY = [*((case.stream, case) for case in STREAMS), *((case.static, case) for case in STATIC)]
NAMES = [f"{case.workload}-{number}" for number, (_, case) in enumerate(EVERY)]
FEW = (1, 5, 13, 16, 19)
"""Streams that are ordered and drawn in each of the ways there are."""

SMALL = {"stations": 2, "duration": "2s"}


@pytest.mark.parametrize(("plan", "case"), EVERY, ids=NAMES)
def test_the_rows_are_those_of_the_expressions(plan, case):
    table = plan.table()
    assert (table.num_rows, digest(table)) == (case.rows, case.digest)


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "case"), EVERY, ids=NAMES)
def test_the_rows_do_not_depend_on_the_blocks(plan, case, monkeypatch):
    monkeypatch.setattr(plans, "BLOCK", 97 if case.rows < 5000 else 997)
    assert digest(plan.table()) == case.digest


@pytest.mark.parametrize(("plan", "case"), EVERY, ids=NAMES)
def test_the_rows_are_about_as_many_as_estimated(plan, case):
    assert case.rows / 2 - 500 <= plan.rows <= case.rows * 2 + 1500


def on_spark(spark, chosen: list[TablePlan], partitions: int) -> list[pa.Table]:
    """The tables of plans, made by one job."""
    frames = [
        frame(spark, plan, partitions).select(
            F.lit(number).alias("case"), F.monotonically_increasing_id().alias("at"), *SCHEMA.names
        )
        for number, plan in enumerate(chosen)
    ]
    result = frames[0]
    for entry in frames[1:]:
        result = result.unionAll(entry)
    table = result.toArrow().sort_by([("case", "ascending"), ("at", "ascending")])
    numbers = table.column("case").to_numpy()
    return [table.filter(pa.array(numbers == number)).drop_columns(["case", "at"]) for number in range(len(chosen))]


def test_spark_makes_the_same_rows(spark):
    chosen = [STREAMS[number].stream for number in FEW]
    for made, plan in zip(on_spark(spark, chosen, 3), chosen, strict=True):
        assert made.cast(SCHEMA).combine_chunks().equals(plan.table().select(SCHEMA.names).combine_chunks())


@pytest.mark.prove
@pytest.mark.parametrize(("plan", "case"), EVERY, ids=NAMES)
def test_spark_makes_the_same_rows_in_the_same_order(spark, plan, case):
    for partitions in (1, 2, 7):
        table = frame(spark, plan, partitions).toArrow()
        assert table.cast(plan.schema).equals(plan.table())
        assert digest(table) == case.digest


LARGE = [
    {},
    {"values": "walk", "late_share": 0.2, "late_bound": "3s"},
    {"arrival": "poisson", "values": "normal", "humidity": True},
    {"arrival": "bursts"},
    {"arrival": "pareto", "observes": "all", "streams": 4, "interval": 2000},
]


@pytest.mark.prove
@pytest.mark.parametrize("options", LARGE, ids=str)
def test_large_streams_are_the_same_for_every_number_of_partitions(spark, options):
    plan = workloads.load("weather").plan(11, stations=300, **options)
    here = plan.table()
    assert here.num_rows > 50_000
    for partitions in (1, 2, 7):
        made = frame(spark, plan, partitions)
        assert made.toArrow().cast(SCHEMA).equals(here)
        assert made.select(F.spark_partition_id()).distinct().count() == partitions  # a file of its own for each core


def no_spark():
    pytest.fail("a small stream is made in this process")


def test_small_tables_are_made_here_and_written_as_they_are(tmp_path):
    weather, maker = workloads.load("weather"), Maker(no_spark)
    made = maker.stream_table(weather, 3, SMALL)
    maker.write_stream(weather, 3, SMALL, tmp_path / "stream")
    assert pq.read_table(tmp_path / "stream").equals(made)
    assert made.num_rows == 2 * 2 * 7
    assert maker.static_triples(weather, 3, SMALL) == []
    given = {**SMALL, "static_triples": 60}
    maker.write_static(weather, 3, given, tmp_path / "static.nt")
    lines = (tmp_path / "static.nt").read_text().splitlines()
    assert lines == [f"{s} {p} {o} ." for s, p, o in maker.static_triples(weather, 3, given)]
    assert len(lines) == 60


def test_large_tables_are_made_on_spark(monkeypatch):
    requests = []
    monkeypatch.setattr(
        workloads.load("weather"), "generate", lambda spark, seed, **item: requests.append((spark, item))
    )
    weather, large = workloads.load("weather"), {"stations": 10_000, "duration": "60s"}
    Maker(lambda: "spark").stream(weather, 1, large)
    Maker(lambda: "spark", always=True).stream(weather, 1, SMALL)
    assert requests == [("spark", {"partitions": None, **item}) for item in (large, SMALL)]
    assert isinstance(Maker(no_spark).stream(weather, 1, {"stations": 1000}), TablePlan)
    assert LOCAL_ROWS == 1_000_000


def test_a_workload_without_a_plan_is_made_on_spark():
    given = []
    other = SimpleNamespace(generate=lambda spark, seed, **more: given.append((spark, seed, more)))
    Maker(lambda: "spark").stream(other, 4, {"size": 3})
    assert given == [("spark", 4, {"partitions": None, "size": 3})]
    assert list(Maker(no_spark).static(other, 4, {})) == []


def test_draws_of_a_block_are_those_of_its_ids():
    plan = STREAMS[2].stream
    ids = np.arange(plan.ids)
    whole = pa.Table.from_batches(plan.draw_all(ids)).sort_by([(name, "ascending") for name in ("station", "time")])
    mixed = np.random.default_rng(5).permutation(ids)
    parts = [batch for part in np.array_split(mixed, 9) for batch in plan.draw_all(part)]
    assert pa.Table.from_batches(parts).sort_by([(name, "ascending") for name in ("station", "time")]).equals(whole)
