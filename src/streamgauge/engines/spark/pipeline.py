"""One streaming job: a source, a query, a sink and a checkpoint, started again where it was."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamgauge.engines.spark import topic
from streamgauge.engines.spark.batches import Batches, Done, Sink
from streamgauge.engines.spark.landing import Landing
from streamgauge.engines.spark.panes import streaming
from streamgauge.engines.spark.refusal import refuse
from streamgauge.engines.spark.session import configured
from streamgauge.engines.spark.sinks import Messages, RunFolder
from streamgauge.engines.spark.state import State
from streamgauge.formats.making import made_folder
from streamgauge.formats.run import RunError, read_json, write_json
from streamgauge.formats.semantics import to_json
from streamgauge.formats.streams import Reading
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sources import kafka, open_sink, open_source
from streamgauge.sources.address import parse_address
from streamgauge.sources.named import named_source

ANY_ORDER = Reading(lateness=1 << 62)
"""How sources are read whose elements land first: what is too late is said by the batches, not by the reader."""

VERSION = 2
"""Of the checkpoint."""

_MESSAGES = ("kafka", "mqtt", "-")


@dataclass(frozen=True)
class Job:
    """What is asked: ``source`` a folder of stream tables or a URL, ``sink`` a folder or a URL, times in ms.

    ``files``, or ``messages`` of a topic, are taken in one batch at most; batches begin ``every`` ms apart; ``drain``
    ends the job when everything that is there was answered, the last windows included.
    """

    query: ContinuousQuery
    text: str
    dialect: str
    semantics: Semantics
    source: str
    sink: str
    checkpoint: Path
    every: int = 5000
    files: int = 5
    drain: bool = False
    messages: int = 200_000


class CheckpointError(RunError):
    """A checkpoint folder that belongs to another job; the sentence says what differs."""


def run(spark: SparkSession, job: Job, tell: Callable[[Done], None]) -> State:
    """Do a job until it is drained or interrupted, and return what is known then; ``tell`` hears of every batch."""
    if reason := refuse(job.query, job.semantics):
        raise RefusedError(f"spark does not answer {reason}")
    started = _claim(job)
    folder, landing = _landed(job)
    sink = _sink(job, folder, started)
    own = configured(spark)
    batches = Batches(own, job.query, job.semantics, job.checkpoint, Told(sink, tell))
    thread = landing and landing.start()
    if thread and job.drain:
        _wait(thread, landing)
    running = _started(own, job, folder, batches)
    try:
        _until_done(running, batches, landing)
        state = batches.drain() if job.drain else batches.state
    except KeyboardInterrupt:
        state = batches.state
    finally:
        running.stop()
    if isinstance(sink, RunFolder):
        sink.finish(state.passed or 0, state.late)
    return state


@dataclass(frozen=True)
class Told:
    """A sink that says of every batch what was done."""

    sink: Sink
    tell: Callable[[Done], None]

    def write(self, done: Done) -> None:
        """Write, then tell."""
        self.sink.write(done)
        self.tell(done)


def _started(spark: SparkSession, job: Job, folder: Path, batches: Batches) -> StreamingQuery:
    made_folder(folder)
    if _by_offsets(job):
        writer = topic.streamed(spark, _source(job), job.messages).writeStream.foreachBatch(_kept(folder, batches))
    else:
        writer = streaming(spark, str(folder), job.files).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", str(job.checkpoint.absolute() / "spark"))
    if job.drain:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{job.every} milliseconds").start()


def _kept(folder: Path, batches: Batches) -> Callable[[DataFrame, int], None]:
    """Does batches of a topic, each kept as a file of the folder."""

    def take(rows: DataFrame, batch: int) -> None:
        file = folder / f"{batch:09}.parquet"
        batches.take(lambda before: [str(file)] if topic.keep(rows, file, before.next) else [], batch)

    return take


def _until_done(running: StreamingQuery, batches: Batches, landing: Landing | None) -> None:
    """Wait until the streaming query ends; what its batches or the landing raised is raised here as it was."""
    try:
        while not running.awaitTermination(1):
            if landing and landing.error:
                raise landing.error
    except StreamingQueryException as error:
        raise (batches.error or error) from None


def _wait(thread: threading.Thread, landing: Landing | None) -> None:
    while thread.is_alive():
        thread.join(0.2)
    if landing and landing.error:
        raise landing.error


def _landed(job: Job) -> tuple[Path, Landing | None]:
    """The folder of stream tables that is read, and what fills it when it is not the source itself."""
    address = parse_address(named_source(job.source).address)
    if address.scheme == "file" and Path(address.path).is_dir() and _is_tables(Path(address.path)):
        return Path(address.path), None
    folder = job.checkpoint / "landed"
    if _by_offsets(job):
        return folder, None
    among = job.query.streams if len(job.query.streams) > 1 and named_source(job.source).iri is None else ()
    return folder, Landing(folder, open_source(_source(job), replace(ANY_ORDER, among=among)), address.scheme == "file")


def _source(job: Job) -> str:
    """The address of the source, elements that name no stream being of the query's only one, or of the one it names."""
    named = named_source(job.source)
    streams = job.query.streams if named.iri is None else (named.iri,)
    if len(streams) != 1 or "stream" in parse_address(named.address).options:
        return named.address
    return f"{named.address}{'&' if '?' in named.address else '?'}stream={quote(streams[0], safe='')}"


def _by_offsets(job: Job) -> bool:
    """Whether the source is a topic whose place is in the checkpoint; that of a ``group`` is at the brokers."""
    address = parse_address(named_source(job.source).address)
    return address.scheme in kafka.SCHEMES and "group" not in address.options


def _is_tables(folder: Path) -> bool:
    """Whether a folder holds stream tables; an empty one will."""
    kinds = {file.suffix for file in folder.iterdir() if not file.name.startswith((".", "_"))}
    return not kinds or kinds == {".parquet"}


def _sink(job: Job, folder: Path, started: int) -> RunFolder | Messages:
    header = RunHeader("spark", job.query, job.text, job.dialect, job.semantics, 0, started, evaluator="spark")
    if parse_address(job.sink).scheme in _MESSAGES:
        return Messages(job.query.name or "query", header, lambda: open_sink(job.sink))
    return RunFolder(Path(job.sink), header, folder)


def _claim(job: Job) -> int:
    """Write what the checkpoint is for, or refuse one that is for something else; when it was begun (ns)."""
    file = job.checkpoint / "job.json"
    asked = {"query": job.text, "semantics": to_json(job.semantics), "source": job.source, "sink": job.sink}
    data = json.loads(json.dumps({"format": "streamgauge stream", "version": VERSION, **asked}))
    if not file.exists():
        started = time.time_ns()
        write_json(file, data | {"started": started})
        return started
    known = read_json(file, "streamgauge stream", VERSION)
    differing = sorted(name for name in asked if known.get(name) != data[name])
    if differing:
        raise CheckpointError(
            f"{job.checkpoint}: this checkpoint was made with another {' and '.join(differing)}: "
            "give what it was made with, or another folder"
        )
    return int(known["started"])
