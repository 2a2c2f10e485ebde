"""`stream --latency real-time`: where it cannot be, the reason is printed and kept with the run."""

import pytest

from streamgauge.cli import stream
from streamgauge.engines.spark.pipeline import interval
from streamgauge.engines.spark.state import State
from streamgauge.query import parse

TEXT = """SELECT ?s (AVG(?v) AS ?n) FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT1S STEP PT1S]
WHERE { WINDOW <urn:w> { ?s <urn:v> ?v } } GROUP BY ?s"""


@pytest.fixture
def done(monkeypatch):
    """The jobs that were done in micro-batches, without Spark."""
    jobs = []

    def run(_spark, job, _tell):
        jobs.append(job)
        return State()

    monkeypatch.setattr("streamgauge.engines.spark.pipeline.run", run)
    monkeypatch.setattr(stream, "spark", lambda _master: None)
    return jobs


def asked(command, root, *more: str):
    (root / "stream").mkdir()
    (root / "q.rq").write_text(TEXT)
    places = ("--from", root / "stream", "--to", root / "answers", "--checkpoint", root / "state")
    return command("stream", root / "q.rq", *places, *more)


def test_the_reason_for_micro_batches_is_printed_and_kept(command, done, tmp_path):
    said = asked(command, tmp_path, "--latency", "real-time")
    assert said.code == 0
    assert "micro-batches: the stream comes from 'file', but real-time mode reads Kafka" in said.err
    (job,) = done
    assert (job.latency, job.semantics.name, job.every) == ("micro-batches", "rspql", 500)
    assert job.reason.startswith("the stream comes from")


def test_a_semantics_that_reports_windows_is_done_in_micro_batches(command, done, tmp_path):
    said = asked(command, tmp_path, "--latency", "real-time", "--semantics", "rspql")
    assert "micro-batches: rspql reports windows" in said.err
    assert len(done) == 1


def test_updates_are_refused_where_real_time_mode_cannot_be(command, done, tmp_path):
    said = asked(command, tmp_path, "--latency", "real-time", "--semantics", "updates")
    assert said.code == 2
    assert "answers per message (content = updates): micro-batches answer when windows close" in said.err
    assert not done


def test_without_a_wish_nothing_is_said_of_it(command, done, tmp_path):
    said = asked(command, tmp_path)
    assert "micro-batches" not in said.err
    assert done[0].reason == ""


@pytest.mark.parametrize(("slide", "ms"), [("PT1S", 500), ("PT30S", 3000), ("PT1H", 5000)])
def test_batches_begin_a_tenth_of_the_slide_apart(slide, ms):
    assert interval(parse(TEXT.replace("STEP PT1S", f"STEP {slide}"))) == ms
