"""Streams cut into micro-batches, done one after the other without a streaming query."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from streamgauge.engines.spark.micro_batches import Batches, Emitted
from streamgauge.engines.spark.panes import ROWS
from streamgauge.formats.stream import to_table
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics


def landed(spark, elements: Sequence[StreamElement], file: Path):
    """A file with these elements as a batch, as the streaming query gives it."""
    pq.write_table(to_table(elements), file)
    return spark.read.schema(ROWS).parquet(str(file)).select("sequence")


def said(
    spark,
    query: ContinuousQuery,
    semantics: Semantics,
    cuts: Sequence[Sequence[StreamElement]],
    advance: int,
    root: Path,
) -> tuple[list[Answer], int]:
    """The answers over a stream that comes in these batches, and how many elements were late."""
    answers: list[Answer] = []
    batches = Batches(spark, query, semantics, root / "checkpoint", Emitted(query, semantics, answers.append))
    for number, elements in enumerate(cuts):
        batches(landed(spark, elements, root / f"{number:03}.parquet"), number)
    batches.drain(advance)
    return answers, batches.state.late
