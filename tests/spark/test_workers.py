"""Workers are asked for a task before the first job, and told apart by what they lack."""

import threading
from importlib.metadata import version

import pytest

from streamgauge.spark import workers
from streamgauge.spark.requirements import SparkStartError
from streamgauge.spark.workers import ask, reason

TASK = (
    "Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent failure: "
    "Lost task 1.3 in stage 0.0 (TID 7) (10.0.0.7 executor 1): "
)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            f'{TASK}java.io.IOException: Cannot run program "/x/python": error=2',
            'cannot do a task: java.io.IOException: Cannot run program "/x/python": error=2: name their Python by '
            "PYSPARK_PYTHON",
        ),
        (
            f"{TASK}org.apache.spark.api.python.PythonException:\nModuleNotFoundError: No module named 'pyarrow'",
            "the Python of the workers of spark://m:7077 has no pyarrow: install Streamgauge there",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version",
            "[PYTHON_VERSION_MISMATCH] Python in worker",
        ),
    ],
)
def test_a_task_that_fails_is_told_in_a_sentence(message, words):
    sentence = reason("spark://m:7077", message)
    assert words in sentence
    assert "TID" not in sentence
    assert "\n" not in sentence


def test_workers_that_have_the_same_version_are_taken(spark):
    ask(spark, "here", 120)


def test_workers_with_another_version_are_named(spark, monkeypatch):
    monkeypatch.setattr(workers, "installed", lambda _name: "9.9")
    with pytest.raises(SparkStartError, match=rf"have Streamgauge {version('streamgauge')}, here is Streamgauge 9\.9"):
        ask(spark, "here", 120)


class Silent:
    """A session whose jobs never end, until they are interrupted."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.interrupted = threading.Event()

    def addTag(self, tag: str) -> None:  # noqa: N802
        self.tags.append(tag)

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        assert tag in self.tags
        self.interrupted.set()


def test_a_job_that_never_ends_is_ended():
    spark = Silent()
    with pytest.raises(TimeoutError, match=r"not done within 0\.05 s"):
        workers._in_time(spark, spark.interrupted.wait, 0.05)
    assert spark.interrupted.is_set()


def test_a_job_that_fails_in_time_fails():
    def job() -> None:
        raise ValueError("a reason")

    with pytest.raises(ValueError, match="a reason"):
        workers._in_time(Silent(), job, 5)
