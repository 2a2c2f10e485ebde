"""One streaming job: a source, a query, a sink, and a checkpoint from which it resumes.

Elements of any source but a folder of stream tables are first logged to durable Parquet files, numbered as they came.
Answers go to a run folder of Parquet tables, exactly once, or as messages with keys, at least once.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from streamgauge.engines.spark import refuse, topic
from streamgauge.engines.spark.element_log import Landing
from streamgauge.engines.spark.evaluation import ReportRows
from streamgauge.engines.spark.micro_batches import REHEARSALS, BatchAnswers, BatchDone, Batches, configured
from streamgauge.engines.spark.panes import streaming
from streamgauge.engines.spark.parts import PartFile
from streamgauge.engines.spark.state import State
from streamgauge.formats import tables
from streamgauge.formats.fields import encode
from streamgauge.formats.files import made_folder
from streamgauge.formats.lines import encode_answer
from streamgauge.formats.places import HADOOP, Place, RemotePlace, place
from streamgauge.formats.run import RunError, read_json, write_header, write_json
from streamgauge.formats.streams import Reading
from streamgauge.incremental.drivers.relation_to_stream import answer_kind
from streamgauge.model.answer import Answer
from streamgauge.model.phrases import offered
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Fed, RunHeader
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sources import Sink, SourceError, check_place, kafka, open_sink, open_source
from streamgauge.sources.contract import parse_address
from streamgauge.sources.named import named_source

BATCHES = pa.schema([(name, pa.int64()) for name in ("batch", "watermark", "late", "rows", "closed", "began", "ended")])
"""A row per batch: ``watermark`` in ms; elements (``late``), triples (``rows``), reports (``closed``); clock in ns."""

_ADVANCE = -1


class RunFolder:
    """Writes answers as a run folder that ``streamgauge check`` judges, with an additional table ``batches.parquet``.

    Part files are named after their batch, so that a repeated batch replaces its files.
    """

    def __init__(self, root: Path, header: RunHeader, stream: Place, clock: Callable[[], int] = time.time_ns) -> None:
        self._stream = str(stream.resolve() if isinstance(stream, Path) else stream)
        self._root, self._header, self._clock = root, header, clock
        self._began = clock()
        for name in ("answers", "rows", "fed", "samples", "static"):
            (root / f"{name}.parquet").mkdir(parents=True, exist_ok=True)
        self._part("static", 0, tables.records_table("static", list(header.query.static)))
        # Empty parts, because a reader expects every table of a run folder, and Spark's job hands over no single
        # elements.
        for name in ("fed", "samples"):
            self._part(name, 0, tables.records_table(name, ()))
        self._part("rows", 0, tables.rows_table((), 0))
        self._part("answers", 0, tables.answers_table((), 0))
        write_header(root, header, self._stream, finished=False)

    def write(self, done: BatchAnswers) -> Sequence[int]:
        """Write a batch's rows, then its reports, then its row in ``batches``."""
        part, after = done.part + 2, done.after  # part 0 is that of an empty run
        self._begin(after)
        heads: list[pa.Table] = []
        answers = self._rows(done, heads)
        first = next(answers, None)
        # A batch without reports writes no part files.
        if first is not None:
            tables.write_groups(self._root / "rows.parquet", part, tables.ROWS, chain([first], answers))
            tables.write_groups(self._root / "answers.parquet", part, tables.ANSWERS, heads)
        if after.passed is not None and after.passed != done.before.passed:
            fed = Fed(_ADVANCE, after.passed, self._began, self._began)
            self._part("fed", part, tables.records_table("fed", (fed,)))
        # Only now, because ``heads`` is filled while the rows are written.
        instants = [instant for table in heads for instant in table.column("instant").to_pylist()]
        self._part("batches", part, self._batch(done, len(instants)))
        self._began = self._clock()
        return instants

    def _rows(self, done: BatchAnswers, heads: list[pa.Table]) -> Iterator[pa.Table]:
        """The rows of a batch, group by group; their reports are appended to ``heads``."""
        sent = done.before.sent
        for group in done.groups:
            if group:
                heads.append(tables.answers_table(self._answers(group, self._clock()), sent))
                yield _rows(group, sent)
                sent += len(group)

    def finish(self, advanced_to: int, late: int) -> None:
        """Write the final header with the stream's end (ms) and the number of late elements."""
        header = replace(self._header, advanced_to=advanced_to, late=late)
        write_header(self._root, header, self._stream, finished=True)

    def _begin(self, state: State) -> None:
        """Write t0 and ``since`` into the header once they are known."""
        known = self._header.semantics
        if state.t0 is None or known.origin is Origin.FIRST or (state.t0, state.since) == (known.t0, known.since):
            return
        self._header = replace(self._header, semantics=replace(known, t0=state.t0, since=state.since))
        write_header(self._root, self._header, self._stream, finished=False)

    def _answers(self, reports: Sequence[ReportRows], ended: int) -> list[Answer]:
        query = self._header.query
        return [
            Answer(names(query.form), (), (), answer_kind(query.form), report.due.instant, scope(report), ended)
            for report in reports
        ]

    def _batch(self, done: BatchAnswers, reports: int) -> pa.Table:
        before, after = done.before, done.after
        late, rows = after.late - before.late, after.rows - before.rows
        row = (after.batch, after.passed, late, rows, reports, self._began, self._clock())
        return pa.table([[value] for value in row], schema=BATCHES)

    def _part(self, name: str, part: int, table: pa.Table) -> None:
        tables.write_part(self._root / f"{name}.parquet", part, table)


@dataclass(frozen=True)
class MessageSink:
    """Sends a message per row, keyed by query, report and row number; an empty report is a message without rows.

    ``open_sink`` opens a sink for each batch, whose state is stored only after all messages are acknowledged.
    """

    name: str
    header: RunHeader
    open_sink: Callable[[], Sink]

    def write(self, done: BatchAnswers) -> Sequence[int]:
        """Send a batch's rows; SourceError if some were not delivered, so that the batch is repeated."""
        answers = chain.from_iterable(done.groups)
        first = next(answers, None)
        # No sink is opened, and no broker contacted, for a batch without answers.
        if first is None:
            return []
        instants = []
        sink = self.open_sink()
        try:
            for rows in chain([first], answers):
                instants.append(rows.due.instant)
                for key, answer in self._messages(rows):
                    sink.send(encode_answer(answer), key)
        finally:
            delivery = sink.close()
        if delivery.undelivered:
            raise SourceError(f"{delivery.undelivered} of the batch's messages were not delivered: {delivery.why}")
        return instants

    def _messages(self, report_rows: ReportRows) -> Iterator[tuple[str, Answer]]:
        form = self.header.query.form
        plain = Answer(names(form), (), (), answer_kind(form), report_rows.due.instant, scope(report_rows))
        if not len(report_rows.rows):
            yield f"{self.name} {report_rows.due.instant} -", plain
        for number, row in enumerate(report_rows.as_rows()):
            # The key has the place of the row in its report, so that a batch that is repeated sends the same keys
            # again.
            yield f"{self.name} {report_rows.due.instant} {number}", replace(plain, added=(row,))


def names(form: object) -> tuple[str, ...]:
    """The variables of an answer; none for ASK and CONSTRUCT."""
    return getattr(form, "variables", ())


def scope(report_rows: ReportRows) -> tuple[int, int]:
    """The scope of a report, ms."""
    return report_rows.due.start, report_rows.due.end


def _rows(reports: Sequence[ReportRows], first: int) -> pa.Table:
    """The table of rows (``tables.ROWS``) of reports numbered from ``first``, without a Python object per term."""
    sizes = np.array([len(report.rows) for report in reports])
    total, width = int(sizes.sum()), reports[0].rows.num_columns
    together = pa.concat_tables([report.rows for report in reports]).combine_chunks()
    flat = pa.chunked_array([chunk for column in together.columns for chunk in column.chunks], pa.string())
    # ``flat`` has one column after the other, a row's cells ``total`` apart; lists need them side by side.
    # Worked example: 2 rows of 3 columns lie as a1 a2 b1 b2 c1 c2, and the places 0 2 4 1 3 5 take them row by row.
    places = np.arange(total * width).reshape(width, total).T.ravel()
    values = flat.take(pa.array(places)).combine_chunks()
    lists = pa.ListArray.from_arrays(pa.array(np.arange(total + 1) * width, pa.int32()), values)
    position = np.concatenate([np.arange(size) for size in sizes])
    columns = {
        "report": np.repeat(np.arange(first, first + len(reports)), sizes),
        "position": position.astype(np.int32),
        "sign": np.ones(total, np.int8),
        "values": lists,
    }
    return pa.table(columns, schema=tables.ROWS)


ANY_ORDER = Reading(lateness=1 << 62)
"""The reading of logged sources: batches decide about lateness, so the reader accepts any order."""

VERSION = 4
"""The version of the checkpoint's format."""

MICRO_BATCHES, REAL_TIME = "micro-batches", "real-time"
"""The values of a job's ``latency``."""

_MESSAGES = ("kafka", "mqtt", "-")


@dataclass(frozen=True)
class Job:
    """The options of a job: ``source`` a folder of stream tables or a URL, ``sink`` a folder or a URL, times in ms.

    ``files``, or ``messages`` of a topic, limit one batch; batches start ``every`` ms; ``drain`` ends the job after all
    available input and its last windows. ``moves``: no t0 is declared, so reports begin with the stream. ``header`` is
    that of an experiment's run, with its horizon.
    """

    query: ContinuousQuery
    text: str
    dialect: str
    semantics: Semantics
    source: str
    sink: str
    checkpoint: Path
    every: int = 500
    files: int = 5
    drain: bool = False
    messages: int = 200_000
    latency: str = MICRO_BATCHES
    reason: str = ""
    moves: bool = False
    header: RunHeader | None = None


def interval(query: ContinuousQuery) -> int:
    """The default time between two batches, ms: a tenth of the shortest slide, from 0.5 s to 5 s."""
    return min(5000, max(500, min((window.window.slide for window in query.windows), default=50_000) // 10))


def is_on_hadoop(source: str) -> bool:
    """Whether a source is a folder on a Hadoop file system."""
    place_ = place(named_source(source).address)
    return isinstance(place_, RemotePlace) and place_.scheme in HADOOP


class CheckpointError(RunError):
    """A checkpoint folder of another job; the sentence names the difference."""


def check(job: Job) -> None:
    """Refuse an impossible job before Spark starts or the checkpoint is claimed: RefusedError, SourceError."""
    if reason := refuse(job.query, job.semantics):
        raise RefusedError(f"spark does not answer {reason}")
    if not is_on_hadoop(job.source):
        check_place(named_source(job.source).address)
    sink = parse_address(job.sink)
    known = ("file", *_MESSAGES)
    if sink.scheme not in known:
        raise SourceError(f"{sink.text}: a job cannot send answers to {sink.scheme!r}: {offered(sink.scheme, known)}")
    if sink.scheme == "file" and Path(sink.path).is_file():
        raise SourceError(f"{sink.text} is a file, but answers go to a run folder: name a folder")
    if sink.scheme not in ("file", "-") and not sink.host:
        raise SourceError(f"{sink.text}: the host is missing: write {sink.scheme}://HOST")


def run(spark: SparkSession, job: Job, tell: Callable[[BatchDone], None]) -> State:
    """Run a job until it is drained or interrupted and return its state; ``tell`` is called after every batch."""
    check(job)
    started = claim(job)
    folder, landing = _landed(job)
    sink = _sink(job, folder, started)
    own = configured(spark)
    # A draining job has its answers when it ends, so the first ones need not be quick.
    rehearsals = 0 if job.drain else REHEARSALS
    remote = isinstance(folder, RemotePlace)
    horizon = None if job.header is None else job.header.advanced_to
    batches = Batches(own, job.query, job.semantics, job.checkpoint, sink, rehearsals, job.moves, remote, horizon, tell)
    thread = landing and landing.start()
    if thread and job.drain:
        # A draining query reads the files that are there when it starts, so the log must be complete before.
        _wait(thread, landing)
    try:
        _answered(partial(_started, own, job, folder, batches), batches, landing)
        if landing:
            batches.advanced_to = landing.advanced_to
        state = batches.drain() if job.drain else batches.state
    except KeyboardInterrupt:
        state = batches.state
    if isinstance(sink, RunFolder):
        sink.finish(state.passed or 0, state.late)
    return state


def _started(spark: SparkSession, job: Job, folder: Place, batches: Batches) -> StreamingQuery:
    if isinstance(folder, Path):
        made_folder(folder)
    if _by_offsets(job) and isinstance(folder, Path):
        writer = topic.streamed(spark, resolved_source(job), job.messages).writeStream.foreachBatch(
            _kept(folder, batches)
        )
    else:
        writer = streaming(spark, str(folder), job.files).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", str(job.checkpoint.absolute() / "spark"))
    if job.drain:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{job.every} milliseconds").start()


def _kept(folder: Path, batches: Batches) -> Callable[[DataFrame, int], None]:
    """A batch function for a topic that first stores each batch as a file of the folder."""

    def take(rows: DataFrame, batch: int) -> None:
        file = folder / f"{batch:09}.parquet"
        batches.take(lambda before: _numbered(file, before.next, topic.keep(rows, file, before.next)), batch)

    return take


def _numbered(file: Path, first: int, elements: int) -> list[PartFile]:
    return [PartFile(str(file), first, first + elements - 1)] if elements else []


LOOK_S: Final = 0.2
"""Interval of checks on a running job, s."""

STARTS: Final = 3
"""Maximum number of attempts to start a streaming query."""

LATE_WORKER: Final = "Python worker failed to connect back"
"""Spark's message when a Python worker needs over 10 s to start, as on a busy machine."""


def _answered(start: Callable[[], StreamingQuery], batches: Batches, landing: Landing | None) -> None:
    """Run a streaming query to its end, restarting it from its checkpoint if its worker started too late."""
    for left in reversed(range(STARTS)):
        running = start()
        try:
            _until_done(running, batches, landing)
            return
        except StreamingQueryException as error:
            if not left or batches.error or LATE_WORKER not in str(error):
                raise
        finally:
            running.stop()


def _until_done(running: StreamingQuery, batches: Batches, landing: Landing | None) -> None:
    """Wait until the streaming query ends, and raise the original exception of its batches or the landing."""
    try:
        while running.isActive:
            if landing and landing.error:
                raise landing.error
            time.sleep(LOOK_S)  # Python handles an interrupt here, but not inside a call of the JVM
        running.awaitTermination()
    except StreamingQueryException as error:
        raise (batches.error or error) from None


def _wait(thread: threading.Thread, landing: Landing | None) -> None:
    while thread.is_alive():
        thread.join(0.2)
    if landing and landing.error:
        raise landing.error


def _landed(job: Job) -> tuple[Place, Landing | None]:
    """The folder of stream tables to read, and the writer that fills it unless it is the source itself."""
    if is_on_hadoop(job.source):
        return place(named_source(job.source).address), None
    address = parse_address(named_source(job.source).address)
    if address.scheme == "file" and Path(address.path).is_dir() and _is_tables(Path(address.path)):
        return Path(address.path), None
    folder = job.checkpoint / "landed"
    if _by_offsets(job):
        return folder, None
    among = job.query.streams if len(job.query.streams) > 1 and named_source(job.source).iri is None else ()
    return folder, Landing(
        folder, open_source(resolved_source(job), replace(ANY_ORDER, among=among)), address.scheme == "file"
    )


def resolved_source(job: Job) -> str:
    """The source's address with a ``stream`` option: the stream that it names, else the query's only one."""
    named = named_source(job.source)
    streams = job.query.streams if named.iri is None else (named.iri,)
    if len(streams) != 1 or "stream" in parse_address(named.address).options:
        return named.address
    return f"{named.address}{'&' if '?' in named.address else '?'}stream={quote(streams[0], safe='')}"


def _by_offsets(job: Job) -> bool:
    """Whether the source is a topic with offsets in the checkpoint; those of a ``group`` are at the brokers."""
    address = parse_address(named_source(job.source).address)
    return address.scheme in kafka.SCHEMES and "group" not in address.options


def _is_tables(folder: Path) -> bool:
    """Whether a folder contains stream tables, or nothing yet."""
    kinds = {file.suffix for file in folder.iterdir() if not file.name.startswith((".", "_"))}
    # An empty folder counts as one of tables: they may be written after the job has started.
    return not kinds or kinds == {".parquet"}


def _sink(job: Job, folder: Place, started: int) -> RunFolder | MessageSink:
    plain = RunHeader("spark", job.query, job.text, job.dialect, job.semantics, 0, started, evaluator="spark")
    header = plain if job.header is None else replace(job.header, started=started)
    if job.reason:
        header = replace(header, options={"latency": job.latency, "reason": job.reason})
    if parse_address(job.sink).scheme in _MESSAGES:
        return MessageSink(job.query.name or "query", header, lambda: open_sink(job.sink))
    return RunFolder(Path(job.sink), header, folder)


def claim(job: Job) -> int:
    """Write the job's identity into the checkpoint, or refuse that of another job; returns its start time (ns)."""
    file = job.checkpoint / "job.json"
    identity = {"query": job.text, "semantics": encode(job.semantics), "source": job.source, "sink": job.sink}
    identity |= {"latency": job.latency, "moves": str(job.moves)}
    # Through JSON, so that it has the types of what was read.
    data = json.loads(json.dumps({"format": "streamgauge stream", "version": VERSION, **identity}))
    if not file.exists():
        started = time.time_ns()
        write_json(file, data | {"started": started, "reason": job.reason})
        return started
    known = read_json(file, "streamgauge stream", VERSION)
    differing = sorted(name for name in identity if known[name] != data[name])
    if differing:
        raise CheckpointError(
            f"{job.checkpoint}: this checkpoint belongs to a job with another {' and '.join(differing)}: "
            "repeat that job's options, or name another folder"
        )
    return int(known["started"])
