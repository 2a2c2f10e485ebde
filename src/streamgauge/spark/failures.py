"""Jobs that fail: the errors that they raise, and what these say."""

from typing import Final

import pyspark.sql  # noqa: F401 - the one door into PySpark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

JOB_ERRORS = (PySparkException, Py4JJavaError)
"""A failed job raises Spark's error; a failed broadcast raises the JVM's own, which wraps the cause."""


_WAITING: Final = "Exception thrown in awaitResult"


def words(error: Exception) -> str:
    """The first line of a failed job's message, without Java's stack."""
    thrown = getattr(error, "java_exception", None)
    # A thread that waits for a job wraps the job's error in one of its own, several times over.
    while thrown is not None and (thrown.getMessage() or "").startswith(_WAITING) and thrown.getCause() is not None:
        thrown = thrown.getCause()
    text = str(error if thrown is None else thrown.getMessage() or thrown)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
