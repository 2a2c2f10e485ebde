"""A Spark session as programs have it: a university's rows are many, so generated code pays."""

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    return spark.newSession()
