"""Where answers go: a run folder of Parquet tables, exactly once, or messages with keys, at least once."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamgauge.engines.spark.batches import Done
from streamgauge.engines.spark.evaluation import Said
from streamgauge.engines.spark.session import kind_of
from streamgauge.formats import observed, tables
from streamgauge.formats.lines import encode_answer
from streamgauge.formats.run import write_header
from streamgauge.model.answer import Answer
from streamgauge.model.run import Fed, RunHeader
from streamgauge.model.terms import Row
from streamgauge.sources import Sink, SourceError

BATCHES = pa.schema(
    [
        ("batch", pa.int64()),
        ("watermark", pa.int64()),
        ("late", pa.int64()),
        ("rows", pa.int64()),
        ("closed", pa.int64()),
        ("began", pa.int64()),
        ("ended", pa.int64()),
    ]
)
"""A row a batch: ``watermark`` in ms, ``late`` counts elements, ``rows`` triples, ``closed`` reports; clock in ns."""

_ADVANCE = -1


class RunFolder:
    """Answers as a run folder that ``streamgauge check`` judges, with a table ``batches.parquet`` beside them.

    A batch's part files have its number, so a batch that is done again replaces what it wrote before.
    """

    def __init__(self, root: Path, header: RunHeader, stream: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self._root, self._header, self._stream, self._clock = root, header, str(stream.resolve()), clock
        self._began = clock()
        for name in ("answers", "rows", "fed", "samples", "static"):
            (root / f"{name}.parquet").mkdir(parents=True, exist_ok=True)
        self._part("static", 0, observed.table("static", list(header.query.static)))
        for name in ("fed", "samples"):
            self._part(name, 0, observed.table(name, ()))
        self._part("rows", 0, observed.rows_table((), 0))
        self._part("answers", 0, observed.answers_table((), 0))
        write_header(root, header, self._stream, finished=False)

    def write(self, done: Done) -> None:
        """Put a batch's rows, then its reports, then what is known of the batch on disk."""
        ended = self._clock()
        part, after = done.part + 2, done.after  # part 0 is that of an empty run
        if done.said:
            self._part("rows", part, _rows(done.said, done.before.sent))
            self._part("answers", part, observed.answers_table(self._answers(done.said, ended), done.before.sent))
        if after.passed is not None and after.passed != done.before.passed:
            fed = Fed(_ADVANCE, after.passed, self._began, self._began)
            self._part("fed", part, observed.table("fed", (fed,)))
        self._part("batches", part, self._batch(done, ended))
        self._began = self._clock()

    def finish(self, advanced_to: int, late: int) -> None:
        """Say how far time came (ms) and how many elements were late."""
        header = replace(self._header, advanced_to=advanced_to, late=late)
        write_header(self._root, header, self._stream, finished=True)

    def _answers(self, said: Sequence[Said], ended: int) -> list[Answer]:
        query = self._header.query
        return [
            Answer(names(query.form), (), (), kind_of(query.form), each.due.instant, scope(each), ended)
            for each in said
        ]

    def _batch(self, done: Done, ended: int) -> pa.Table:
        before, after = done.before, done.after
        row = (
            after.batch,
            after.passed,
            after.late - before.late,
            after.rows - before.rows,
            len(done.said),
            self._began,
            ended,
        )
        return pa.table([[value] for value in row], schema=BATCHES)

    def _part(self, name: str, part: int, table: pa.Table) -> None:
        tables.write_part(self._root / f"{name}.parquet", part, table)


@dataclass(frozen=True)
class Messages:
    """A message a row, keyed by query, report and place of the row in it; a silent report is a message without rows.

    ``open_sink`` opens the way out anew for each batch, whose state is kept only after everything was acknowledged.
    """

    name: str
    header: RunHeader
    open_sink: Callable[[], Sink]

    def write(self, done: Done) -> None:
        """Send a batch's rows; SourceError when some were not delivered: the batch will be done again."""
        if not done.said:
            return
        sink = self.open_sink()
        try:
            for key, answer in chain.from_iterable(map(self._messages, done.said)):
                sink.send(encode_answer(answer), key)
        finally:
            delivery = sink.close()
        if delivery.undelivered:
            raise SourceError(f"{delivery.undelivered} of the batch's messages were not delivered: {delivery.why}")

    def _messages(self, said: Said) -> Iterator[tuple[str, Answer]]:
        form = self.header.query.form
        plain = Answer(names(form), (), (), kind_of(form), said.due.instant, scope(said))
        if not len(said.rows):
            yield f"{self.name} {said.due.instant} -", plain
        for place, row in enumerate(_tuples(said)):
            yield f"{self.name} {said.due.instant} {place}", replace(plain, added=(row,))


def names(form: object) -> tuple[str, ...]:
    """The variables of an answer; none where it is no table of solutions."""
    return getattr(form, "variables", ())


def scope(said: Said) -> tuple[int, int]:
    """The scope that a report names, ms."""
    return said.due.start, said.due.end


def _tuples(said: Said) -> Iterator[Row]:
    return zip(*(column.to_pylist() for column in said.rows.columns), strict=True)


def _rows(said: Sequence[Said], first: int) -> pa.Table:
    """The table of rows (``observed.ROWS``) of reports numbered from ``first``, without a Python object per term."""
    sizes = np.array([len(each.rows) for each in said])
    total, width = int(sizes.sum()), said[0].rows.num_columns
    together = pa.concat_tables([each.rows for each in said]).combine_chunks()
    flat = pa.chunked_array([chunk for column in together.columns for chunk in column.chunks], pa.string())
    places = np.arange(total * width).reshape(width, total).T.ravel()
    values = flat.take(pa.array(places)).combine_chunks()
    lists = pa.ListArray.from_arrays(pa.array(np.arange(total + 1) * width, pa.int32()), values)
    position = np.concatenate([np.arange(size) for size in sizes])
    columns = {
        "report": np.repeat(np.arange(first, first + len(said)), sizes),
        "position": position.astype(np.int32),
        "sign": np.ones(total, np.int8),
        "values": lists,
    }
    return pa.table(columns, schema=observed.ROWS)
