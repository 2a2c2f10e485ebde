"""A Spark session for tiny queries."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.conftest import SMALL_JOBS

_SETTINGS = {**SMALL_JOBS, "spark.sql.shuffle.partitions": "1"}


@pytest.fixture(scope="module")
def tiny(spark: SparkSession) -> Iterator[SparkSession]:
    """A session without what costs tiny queries more than it gives them."""
    session = spark.newSession()
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    yield session
    session.catalog.clearCache()
