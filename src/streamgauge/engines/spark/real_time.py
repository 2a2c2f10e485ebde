"""Real-time mode: each message of a topic is answered on arrival, without waiting for a batch.

Spark runs the tasks of a query for the length of a batch (five minutes by default) and passes every row on immediately.
The end of a batch is a checkpoint: after a crash the messages since then are answered again, in the same order from the
same state, with the same keys.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from streamgauge.engines.spark import updates
from streamgauge.engines.spark.connector import connector
from streamgauge.engines.spark.micro_batches import set_all
from streamgauge.engines.spark.pipeline import LOOK_S, MICRO_BATCHES, REAL_TIME, Job, claim, resolved_source
from streamgauge.formats.jvm import JvmError
from streamgauge.model.algebra import Group
from streamgauge.model.mistake import MistakeError
from streamgauge.query.traversal import every_pattern
from streamgauge.sources import kafka, kafka_partitions
from streamgauge.sources.contract import Address, parse_address, read_options
from streamgauge.sources.named import named_source
from streamgauge.spark.jvm_options import EARLY
from streamgauge.spark.settings import EXTRA_JAVA_OPTIONS

SHORTEST: Final = 1_000
"""Minimum time between two checkpoints, ms."""

_KNOWN: Final = {"from", "brokers", "sasl", "ca", "stream", "form", "bad"}
SETTINGS: Final = {
    # In SPARQL an error concerns one solution and is null here; under ANSI rules it would end the job.
    "spark.sql.ansi.enabled": "false",
    # Otherwise Spark rounds decimals whose digits exceed 38 to fewer places.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # One task has the state (``threads``).
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.realTimeMode.minBatchDuration": f"{SHORTEST}ms",
    "spark.sql.session.timeZone": "UTC",
}
_MESSAGE: Final = re.compile(r"streamgauge: ([^\n]*?)(?: SQLSTATE| \[|\n|$)")


class RealTimeError(MistakeError, RuntimeError):
    """A failed job in real-time mode; the sentence names the data that it cannot process."""


def refuse(job: Job) -> str | None:
    """Why a job cannot run in real-time mode, ``None`` if it can; decided without starting or contacting anything."""
    if reason := updates.refuse(job.query, job.semantics):
        return reason
    source, sink = parse_address(named_source(job.source).address), parse_address(job.sink)
    if source.scheme not in kafka.SCHEMES:
        return f"the stream comes from {source.scheme!r}, but real-time mode reads Kafka"
    if sink.scheme not in kafka.SCHEMES:
        return f"answers go to {sink.scheme!r}, but real-time mode writes to Kafka"
    if job.drain:
        return "a job that ends with its input (--drain) needs batches"
    if odd := sorted(set(source.options) - _KNOWN):
        return f"Spark's connector does not support the source's option {odd[0]}"
    if source.options.get("form", "jsonl") != "jsonl" or source.options.get("bad", "stop") != "stop":
        return "real-time mode needs messages in JSON (form=jsonl) and stops at a bad one (bad=stop)"
    return None


def partitions(job: Job) -> int:
    """The number of partitions of the job's topic; SourceError if the broker does not respond."""
    log = kafka.KafkaLog(resolved_source(job))
    try:
        return len(log.ends())
    finally:
        log.close()


def refuse_partitions(job: Job, count: int) -> str | None:
    """Why a topic with ``count`` partitions cannot be answered in real-time mode, ``None`` if it can."""
    # Only aggregates depend on the order: messages of two partitions meet in one state.
    if count > 1 and grouped(job):
        return f"the topic has {count} partitions, so the order of their messages would be left to chance"
    return None


def grouped(job: Job) -> bool:
    """Whether the query aggregates."""
    return any(isinstance(part, Group) for part in every_pattern(job.query.form.pattern))


def threads(job: Job, count: int) -> int:
    """The number of concurrent tasks: one for each partition of the topic, and one for the state."""
    return count + grouped(job)


@dataclass(frozen=True)
class LatencyChoice:
    """Whether a job runs in real-time mode (``refused`` is ``None``) or why not, with its jars and tasks."""

    refused: str | None
    jars: tuple[Path, ...] = ()
    tasks: int = 0

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark's JVM: the connector, rows passed on within a millisecond, the tiered compiler."""
        return {
            "spark.jars": ",".join(map(str, self.jars)),
            "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
            EXTRA_JAVA_OPTIONS: EARLY,
        }

    @property
    def latency(self) -> str:
        """The job's latency mode."""
        return REAL_TIME if self.refused is None else MICRO_BATCHES

    @property
    def reason(self) -> str:
        """The reason for the mode, as a sentence."""
        return self.refused or "each message is answered on arrival, from Kafka to Kafka"


def choose(job: Job) -> LatencyChoice:
    """Real-time mode if query, source and sink permit it and the connector is available; SourceError for brokers."""
    if refused := refuse(job):
        return LatencyChoice(refused)
    try:
        jars = connector()
    except JvmError as error:
        return LatencyChoice(f"Spark's Kafka connector is not available: {error}")
    # Last, because it contacts the broker.
    count = partitions(job)
    return LatencyChoice(refuse_partitions(job, count), jars, threads(job, count))


@dataclass(frozen=True)
class Checkpointed:
    """A finished batch: its number, the messages read, and the elements that were too late for their windows."""

    batch: int
    messages: int
    late: int


def run(spark: SparkSession, job: Job, tell: Callable[[Checkpointed], None]) -> int:
    """Answer until interrupted and return the number of messages; ``tell`` is called at every checkpoint.

    RealTimeError if the job fails, or Spark has fewer cores than concurrent tasks.
    """
    needed, cores = threads(job, partitions(job)), spark.sparkContext.defaultParallelism
    if cores < needed:
        raise RealTimeError(f"real-time mode runs {needed} concurrent tasks, but Spark has {cores} cores: give it more")
    claim(job)
    running = started(spark, job)
    count = 0
    try:
        for done in _checkpoints(running):
            count += done.messages
            if done.messages:
                tell(done)
    except KeyboardInterrupt:
        pass
    except StreamingQueryException as error:
        raise RealTimeError(reason(error)) from error
    finally:
        running.stop()
    return count


def started(spark: SparkSession, job: Job, trigger: Mapping[str, str] | None = None) -> StreamingQuery:
    """Start the query; another ``trigger`` runs the same plan in micro-batches (``processingTime``)."""
    own = spark.newSession()
    set_all(own, SETTINGS)
    source, sink = parse_address(resolved_source(job)), parse_address(job.sink)
    begin = "earliest" if source.options.get("from") == "earliest" else "latest"
    messages = own.readStream.format("kafka").options(**_reached(source, kafka.KafkaSourceOptions))
    messages = messages.options(subscribe=kafka_partitions.topic_of(source), startingOffsets=begin)
    rows = updates.plan(messages.load(), job.query, job.semantics, job.query.name or "query")
    writer = rows.writeStream.format("kafka").options(**_reached(sink, kafka.KafkaSinkOptions))
    writer = writer.options(
        topic=kafka_partitions.topic_of(sink), checkpointLocation=str(job.checkpoint.absolute() / "spark")
    )
    options: Any = trigger or {"realTime": f"{max(SHORTEST, job.every)} milliseconds"}
    return writer.outputMode("update").trigger(**options).start()


def _reached(address: Address, options: type[Any]) -> dict[str, str]:
    """Connection options of the brokers for Spark's connector, which differ in part from librdkafka's."""
    configured = kafka_partitions.reached_by(address, read_options(options, address))
    named = {name: text for name, text in configured.items() if name.startswith(("bootstrap", "security"))}
    if place := configured.get("ssl.ca.location"):
        named |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": place}
    if user := configured.get("sasl.username"):
        mechanism = configured["sasl.mechanisms"]
        module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
        words = f'username="{_escaped(user)}" password="{_escaped(configured["sasl.password"])}"'
        named["sasl.mechanism"] = mechanism
        named["sasl.jaas.config"] = f"org.apache.kafka.common.security.{module} required {words};"
    return {f"kafka.{name}": text for name, text in named.items()}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _checkpoints(running: StreamingQuery) -> Iterator[Checkpointed]:
    """Every finished batch while the query runs; StreamingQueryException if it fails."""
    known = -1
    while True:
        # Checked before the progress is read, so that the last batch is not missed.
        ended = not running.isActive
        for progress in running.recentProgress:
            # ``recentProgress`` is a list of the last batches, of which most were reported before.
            if progress.batchId > known:
                known = progress.batchId
                late = sum(stateOperator.numRowsDroppedByWatermark for stateOperator in progress.stateOperators)
                yield Checkpointed(known, progress.numInputRows, late)
        if ended:
            running.awaitTermination()
            return
        time.sleep(LOOK_S)  # an interrupt comes here, not within a call of the JVM


def reason(error: Exception) -> str:
    """The sentence for a failed job: the plan's own message, else the first line of Spark's."""
    text = str(error)
    match = _MESSAGE.search(text)
    return match[1].strip(" '\"") if match else text.strip().splitlines()[0]
