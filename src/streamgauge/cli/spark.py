"""Spark for commands, started at first use; MistakeError if it cannot start."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import typer

from streamgauge.model.extras import require
from streamgauge.model.mistake import MistakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkUnavailableError(MistakeError, RuntimeError):
    """Spark cannot start; the sentence says what to install."""


@lru_cache(maxsize=1)
def spark(master: str | None = None, also: tuple[tuple[str, str], ...] = ()) -> SparkSession:
    """The session for ``master`` (default ``local[*]``), created once; ``also`` are further settings."""
    require("spark")
    from streamgauge.spark.requirements import SparkStartError
    from streamgauge.spark.session import session

    try:
        return session(master, also=dict(also))
    except SparkStartError as error:
        raise SparkUnavailableError(str(error)) from error


def tell_unused(master: str | None, hint: str = "") -> None:
    """Warn that ``--master`` had no effect, as no session was needed; ``hint`` names commands that use Spark."""
    # The cache is empty as long as nothing has asked for a session.
    if master is not None and spark.cache_info().currsize == 0:
        message = f"--master {master} had no effect: the work is small, so this process did it and no Spark was started"
        typer.echo(f"{message}; {hint}" if hint else message, err=True)
