"""Streaming jobs: what they take in, where answers go, what a second start with the same checkpoint does."""

import os
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from streamgauge import check, verify, watch
from streamgauge.engines.spark import pipeline
from streamgauge.engines.spark.element_log import Landing
from streamgauge.engines.spark.evaluation import ReportRows
from streamgauge.engines.spark.pipeline import LATE_WORKER, CheckpointError, Job, MessageSink, _answered, run
from streamgauge.engines.spark.state import State
from streamgauge.formats.run import RunError, read_run
from streamgauge.formats.streams import jsonl, write_stream
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.query import parse
from streamgauge.semantics.profiles import YABENCH
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.sources import Delivery, SourceError, open_source
from tests.notation import stream

TEXT = (
    "REGISTER {operator} <urn:answers> AS SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> "
    "[RANGE PT{size}S STEP PT{size}S] WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"
)
BOUNDED = Semantics("bounded", lateness=1000, origin=Origin.FIRST)
CAME = "500: a p b. | 900: b p c. | 2600: c p d. | 400: d p e. | 1900: e p f. | 5200: f p g."


def _bag(letters: str) -> Counter:
    """Rows of two letters each."""
    return Counter((f"<urn:{one}>", f"<urn:{other}>") for one, other in letters.split())


WANTED = [((500 + 1000 * n, 1500 + 1000 * n), _bag(rows)) for n, rows in enumerate(["ab bc", "ef", "cd", "", "fg"])]
"""The answers over what came, by scope (ms): the element at 400 is too late."""


def job(root: Path, **given) -> Job:
    text = TEXT.format(operator="RSTREAM", size=1)
    message = {"source": str(root / "stream"), "sink": str(root / "answers"), "files": 1, "drain": True} | given
    return Job(
        parse(text), text, "rspql", BOUNDED, message.pop("source"), message.pop("sink"), root / "checkpoint", **message
    )


def landed(root: Path, text: str = CAME, first: int = 0) -> None:
    """Each element a file, one second after the other."""
    (root / "stream").mkdir(parents=True, exist_ok=True)
    for number, element in enumerate(stream(text)):
        file = root / "stream" / f"{first + number:03}.parquet"
        write_stream([element], file)
        os.utime(file, (1_000_000 + first + number, 1_000_000 + first + number))


def answers(root: Path):
    parsed = read_run(root / "answers", parse)
    return [(answer.scope, Counter(answer.added)) for answer in parsed.answers], parsed.header


def test_a_folder_of_files_is_answered_once_and_again_not_at_all(spark, tmp_path):
    landed(tmp_path)
    first = run(spark, job(tmp_path), lambda _done: None)
    again = run(spark, job(tmp_path), lambda _done: None)
    assert again == first
    assert (first.rows, first.late) == (6, 1)
    said, header = answers(tmp_path)
    assert said == WANTED
    assert (header.advanced_to, header.late) == (5500, 1)
    batches = pq.read_table(tmp_path / "answers" / "batches.parquet").to_pydict()
    assert sum(batches["late"]) == 1
    assert sum(batches["rows"]) == 6
    assert sum(batches["closed"]) == len(said)


@pytest.mark.parametrize(
    ("operator", "start"),
    [
        ("RSTREAM", 7_300),
        ("ISTREAM", -1_772_352_000_300),
        *(pytest.param("RSTREAM", start, marks=pytest.mark.prove) for start in (0, 1_772_352_000_300)),
        *(pytest.param("ISTREAM", start, marks=pytest.mark.prove) for start in (0, 7_300)),
    ],
)
def test_without_a_t0_a_job_begins_where_query_and_verify_do(spark, tmp_path, start, operator):
    text = TEXT.format(operator=operator, size=1).replace("STEP PT1S", "STEP PT0.4S")
    elements = [
        replace(element, time=start + element.time) for element in stream("2600: a p b. | 2900: b p c. | 4600: c p d.")
    ]
    write_stream(elements, tmp_path / "stream.nq")
    semantics = replace(YABENCH, lateness=0)
    place = {"source": str(tmp_path / "stream.nq"), "sink": str(tmp_path / "answers"), "drain": True, "moves": True}
    run(spark, Job(parse(text), text, "rspql", semantics, checkpoint=tmp_path / "checkpoint", **place), lambda _: None)
    parsed = read_run(tmp_path / "answers", parse)
    watched = watch(text, elements, semantics=semantics)
    assert [(one.instant, Counter(one.added)) for one in parsed.answers] == [
        (one.instant, Counter(one.added)) for one in watched
    ]
    assert parsed.answers[0].instant >= elements[0].time
    assert check(parsed).judgement is Judgement.RIGHT
    assert verify(text, elements, answers=parsed.answers, semantics=semantics).judgement is Judgement.RIGHT


def test_folders_may_be_named_like_patterns(spark, tmp_path):
    """Structured Streaming reads nothing, without a word, from a folder that it takes for a pattern."""
    root = tmp_path / "jobs [1] {x}*"
    root.mkdir()
    landed(root, "500: a p b. | 2600: c p d. | 400: d p e.")
    state = run(spark, job(root), lambda _done: None)
    assert (state.rows, state.late) == (3, 1)
    assert [bag for _scope, bag in answers(root)[0] if bag] == [
        Counter([("<urn:a>", "<urn:b>")]),
        Counter([("<urn:c>", "<urn:d>")]),
    ]


def test_a_file_that_is_no_stream_table_lands_first(spark, tmp_path):
    write_stream(stream("0: a p b. | 1000: b p c. | 2500: c p d."), tmp_path / "stream.nq")
    state = run(spark, job(tmp_path, source=str(tmp_path / "stream.nq")), lambda _done: None)
    assert state.rows == 3
    assert [scope for scope, bag in answers(tmp_path)[0] if bag] == [(0, 1000), (1000, 2000), (2000, 3000)]


@pytest.mark.parametrize(
    ("order", "together"),
    [
        ((3, 1, 2, 5, 0, 4), 2),
        ((5, 4, 3, 2, 1, 0), 6),
        pytest.param((5, 4, 3, 2, 1, 0), 1, marks=pytest.mark.prove),
        pytest.param((3, 1, 2, 5, 0, 4), 1, marks=pytest.mark.prove),
    ],
)
def test_parts_are_answered_by_sequence_whatever_order_they_were_written_in(spark, tmp_path, order, together):
    """Tasks of Spark end in any order, so times of change say nothing about the order of elements."""
    landed(tmp_path)
    for place, number in enumerate(order):
        os.utime(tmp_path / "stream" / f"{number:03}.parquet", (2_000_000 + place,) * 2)
    state = run(spark, job(tmp_path, files=together), lambda _done: None)
    assert (state.rows, state.late, state.files) == (6, 1, 6)
    assert answers(tmp_path)[0] == WANTED


def test_a_file_of_earlier_elements_that_is_added_later_is_named(spark, tmp_path):
    landed(tmp_path, "2600: c p d. | 5200: f p g.", first=4)
    later = tmp_path / "stream" / "004.parquet"
    later.rename(tmp_path / "later.parquet")
    first = run(spark, job(tmp_path), lambda _done: None)
    assert first.rows == 1
    (tmp_path / "later.parquet").rename(later)
    with pytest.raises(OutOfOrderError, match=r"004\.parquet: sequence 0 comes after 1, which has been answered"):
        run(spark, job(tmp_path), lambda _done: None)


def test_files_whose_sequence_numbers_overlap_are_named(spark, tmp_path):
    landed(tmp_path, "0: a p b.")
    write_stream(stream("0: a p b. | 5: b p c."), tmp_path / "stream" / "009.parquet")
    with pytest.raises(OutOfOrderError, match=r"009\.parquet: sequence 0 comes after 0 of .*000\.parquet"):
        run(spark, job(tmp_path), lambda _done: None)


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    pipeline.claim(job(tmp_path))
    file = tmp_path / "checkpoint" / "job.json"
    file.write_text(file.read_text().replace(f'"version": {pipeline.VERSION}', '"version": 3'))
    with pytest.raises(RunError, match=r"job\.json: field version is 3: this release reads version 4"):
        pipeline.claim(job(tmp_path))


def test_a_checkpoint_of_another_query_is_named(spark, tmp_path):
    landed(tmp_path, "0: a p b.")
    pipeline.claim(job(tmp_path))
    with pytest.raises(CheckpointError, match="a job with another sink"):
        run(spark, job(tmp_path, sink=str(tmp_path / "elsewhere")), lambda _done: None)


class Kept:
    """A sink that keeps what it was sent and says that so many were not delivered."""

    def __init__(self, undelivered: int) -> None:
        self.sent, self.undelivered = [], undelivered

    def send(self, message: bytes, key: str | None = None) -> None:
        self.sent.append((key, message))

    def close(self, patience: float | None = None) -> Delivery:
        return Delivery(len(self.sent), self.undelivered, "nobody listens")


def done_of(*rows, columns=("s", "o")):
    import pyarrow as pa

    from streamgauge.engines.spark.micro_batches import BatchAnswers
    from streamgauge.model.report import DueReport, View

    due_report = DueReport(1000, (View(0, 1000, 0, 999, 9),))
    schema = pa.schema([("report", "int64"), *((name, "string") for name in columns)])
    whole = pa.table(
        [list(column) for column in zip(*((0, *row) for row in rows), strict=True)] or [[], [], []], schema
    )
    table = whole.drop_columns(["report"])  # as Spark's answers are taken apart: rows may have no columns
    return BatchAnswers(0, [[ReportRows(due_report, table)]], State(), State())


def test_messages_have_a_key_for_query_report_and_row(tmp_path):
    kept = Kept(0)
    header = pipeline._sink(job(tmp_path), tmp_path, 0)._header
    messages = MessageSink("urn:answers", header, lambda: kept)
    messages.write(done_of(("<urn:a>", "<urn:b>"), ("<urn:c>", None)))
    messages.write(done_of())
    assert [key for key, _ in kept.sent] == ["urn:answers 1000 0", "urn:answers 1000 1", "urn:answers 1000 -"]
    assert b'"add":[["<urn:c>",null]]' in kept.sent[1][1]


def test_rows_without_columns_are_sent_and_stored_too(tmp_path):
    """SELECT * of a pattern without variables has a row for each solution, with nothing in it."""
    text = "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S] WHERE { WINDOW <urn:w> { <urn:a> <urn:b> 1 } }"
    given, kept = replace(job(tmp_path), query=parse(text), text=text), Kept(0)
    done = done_of((), (), columns=())
    header = pipeline._sink(given, tmp_path, 0)._header
    MessageSink("q", header, lambda: kept).write(done)
    assert [key for key, _ in kept.sent] == ["q 1000 0", "q 1000 1"]
    pipeline._sink(given, tmp_path, 0).write(done)
    assert [answer.added for answer in read_run(tmp_path / "answers", parse).answers] == [((), ())]


def test_messages_that_were_not_delivered_stop_the_batch(tmp_path):
    header = pipeline._sink(job(tmp_path), tmp_path, 0)._header
    with pytest.raises(SourceError, match="1 of the batch's messages were not delivered: nobody listens"):
        MessageSink("q", header, lambda: Kept(1)).write(done_of(("<urn:a>", "<urn:b>")))


class Given:
    """A source of these elements."""

    def __init__(self, elements) -> None:
        self.elements = elements

    def items(self):
        yield from self.elements

    def close(self) -> None:
        pass


def test_landing_goes_on_where_it_was(tmp_path):
    came = stream("7: a p b. | 8: b p c. | 9: c p d.")
    Landing(tmp_path, Given(came[:2]), skip=True, every_s=0.05).run()
    Landing(tmp_path, Given(came), skip=True, every_s=0.05).run()
    Landing(tmp_path, Given(came[:1]), skip=False, every_s=0.05).run()
    table = pq.read_table(tmp_path)
    assert (table["sequence"].to_pylist(), table["time"].to_pylist()) == ([0, 1, 2, 3], [7, 8, 9, 7])


def test_a_file_that_is_read_in_columns_lands_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "ROWS_FIRST", 0)
    write_stream(came := stream(" | ".join(f"{time}: a p b." for time in range(40))), tmp_path / "in.jsonl")
    Landing(tmp_path / "log", open_source(str(tmp_path / "in.jsonl")), skip=True).run()
    assert pq.read_table(tmp_path / "log")["time"].to_pylist() == [element.time for element in came]


def test_reports_are_due_up_to_a_recorded_advance(spark, tmp_path):
    """As `query` and `expect` take it: time without elements is time all the same."""
    write_stream(stream("500: a p b. | 900: b p c."), tmp_path / "in.jsonl")
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write('{"advance": 4500}\n')
    run(spark, job(tmp_path, source=str(tmp_path / "in.jsonl")), lambda _done: None)
    found, header = answers(tmp_path)
    assert found == [*WANTED[:1], *(((500 + 1000 * n, 1500 + 1000 * n), _bag("")) for n in (1, 2, 3))]
    assert header.advanced_to == 4500


def test_what_it_cannot_answer_is_refused_before_anything_starts(tmp_path):
    asked = job(tmp_path)
    changing = Semantics("changing", report=frozenset({"content change"}), lateness=0)
    with pytest.raises(RefusedError, match="content changes"):
        run(None, Job(asked.query, asked.text, "rspql", changing, "x", "y", tmp_path), lambda _done: None)


@pytest.mark.parametrize(("late", "starts"), [(0, 1), (2, 3), (3, 3)])
def test_a_query_whose_worker_is_late_is_started_again(late, starts):
    begun = []

    def wait():
        if len(begun) <= late:
            raise StreamingQueryException(f"[STREAM_FAILED] terminated: {LATE_WORKER}.")

    def start():
        begun.append(SimpleNamespace(isActive=False, awaitTermination=wait, stop=lambda: None))
        return begun[-1]

    with nullcontext() if late < starts else pytest.raises(StreamingQueryException):
        _answered(start, SimpleNamespace(error=None), None)
    assert len(begun) == starts


def test_a_query_that_fails_otherwise_is_not_started_again():
    begun = []

    def start():
        begun.append(SimpleNamespace(isActive=False, awaitTermination=wait, stop=lambda: None))
        return begun[-1]

    def wait():
        raise StreamingQueryException("[STREAM_FAILED] terminated: the disk is full")

    with pytest.raises(StreamingQueryException):
        _answered(start, SimpleNamespace(error=None), None)
    assert len(begun) == 1
