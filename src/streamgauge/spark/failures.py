"""Jobs that fail: the errors that they raise, and what these say."""

import pyspark.sql  # noqa: F401 - the one door into PySpark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

JOB_ERRORS = (PySparkException, Py4JJavaError)
"""A failed job raises Spark's error; a failed broadcast raises the JVM's own, which wraps the cause."""


def words(error: Exception) -> str:
    """The first line of a failed job's message, without Java's stack."""
    java_exception = getattr(error, "java_exception", None)
    text = str(error if java_exception is None else java_exception.getMessage() or java_exception)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
