"""The Spark context of this process, found without importing PySpark.

A module that another thread is importing is in ``sys.modules`` before its names exist. This is the one place that looks
there, so that no other has to know.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


def running_context() -> "SparkContext | None":
    """The context that runs jobs in this process; ``None`` without one, also while PySpark or a context is starting."""
    module = sys.modules.get("pyspark.core.context")
    spec = getattr(module, "__spec__", None)
    if module is None or spec is None or getattr(spec, "_initializing", False):
        return None
    context: SparkContext | None = module.SparkContext._active_spark_context
    return context if getattr(context, "_jsc", None) is not None else None
