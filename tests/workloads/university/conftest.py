"""The Spark session with the settings that programs have: a university's rows are many, so generated code pays."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.conftest import SMALL_JOBS


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    for key in SMALL_JOBS:
        spark.conf.unset(key)
    yield spark
    for key, value in SMALL_JOBS.items():
        spark.conf.set(key, value)
