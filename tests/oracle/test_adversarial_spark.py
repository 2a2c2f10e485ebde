"""The adversarial recordings judged by Spark: a stream table for each case, one job for all that is expected of it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamgauge.formats.stream import write
from streamgauge.oracle.expected.on_spark import SparkReports, read_header
from streamgauge.oracle.expected.reports import Expect
from tests.oracle.test_adversarial import CASES, RECORDINGS, verdict_of
from tests.spark.conftest import tiny
from tests.spark.deferred import by_spark
from tests.sparql.simple.written import elements

__all__ = ["tiny"]
SAMPLE = (
    "terms: stored terms",
    "numbers: a difference of equal floats",
    "dates: less than, with and without a zone",
    "graphs: the graph's variable as an object",
)


class BySpark:
    """What Spark expects, each question asked once."""

    def __init__(self, session: SparkSession, stream: Path) -> None:
        self._expect = SparkReports(session, stream, read_header(session.read.parquet(str(stream))))
        self._once = cache(self._expect)

    def __call__(self, *asked: object) -> object:
        return self._once(*asked)

    def __getattr__(self, name: str) -> object:
        return getattr(self._expect, name)


def judged(name: str, session: SparkSession, folder: Path) -> dict[str, str]:
    """The recordings of a case that are judged otherwise than by hand, with the verdict."""
    stream = folder / "stream.parquet"
    write(elements(CASES[name]["stream"]), stream)
    expect: Expect = BySpark(session, stream)  # type: ignore[assignment]
    told = {}
    for recording, (case, wanted, said, _) in RECORDINGS.items():
        if case == name:
            result = verdict_of(name, said, expect)
            if result != wanted:
                told[recording] = result
    return told


@pytest.mark.heavy("the first answers of a session warm it up")
@pytest.mark.parametrize("name", SAMPLE)
def test_spark_judges_a_sample_as_by_hand(tiny: SparkSession, tmp_path: Path, name: str) -> None:
    assert judged(name, tiny, tmp_path) == {}


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_spark_judges_every_recording_as_by_hand(tiny: SparkSession) -> None:
    """In memory and in few jobs; the sample goes by files and by a job for each answer."""

    def task(name: str) -> Callable[[Expect], dict[str, tuple[str, str]]]:
        own = [(wanted, said) for case, wanted, said, _ in RECORDINGS.values() if case == name]
        return lambda expect: {said: (wanted, verdict_of(name, said, expect)) for wanted, said in own}

    result = by_spark(tiny, {name: (elements(case["stream"]), task(name)) for name, case in CASES.items()})
    verdicts = [(name, said, *both) for name, told in result.items() for said, both in told.items()]
    other = [verdict for verdict in verdicts if verdict[2] != verdict[3]]
    refused = [entry for entry in other if entry[3] in ("refused", "unknown")]
    print(f"\n{len(verdicts)} recordings on Spark: {len(other)} judged otherwise, {len(refused)} of them unknown")
    assert other == []
