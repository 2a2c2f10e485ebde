"""Spark for commands: started when first needed, with a sentence where it cannot be."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from streamgauge.model.mistake import MistakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkUnavailableError(MistakeError, RuntimeError):
    """Spark cannot start here; the sentence says what to install."""


@lru_cache(maxsize=1)
def spark(master: str | None = None) -> SparkSession:
    """The session for ``master`` (``local[*]`` when none is named), made once."""
    from streamgauge.compute.spark.session import JavaMissingError, session

    try:
        return session(master)
    except JavaMissingError as error:
        raise SparkUnavailableError(str(error)) from error
