"""Workloads: streams with queries, one module or folder each; other packages add workloads by an entry point."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from streamgauge.model.announced import entry_points
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import meant, offered, spelled
from streamgauge.workloads.parameters import Parameter, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamgauge.workloads.plan import TablePlan

GROUP = "streamgauge.workloads"


class UnknownNameError(MistakeError, ValueError):
    """An unknown workload or query; the sentence lists the known ones."""


class Workload(Protocol):
    """The contract of a workload module: name, one line about it, parameters, a folder of ``*.rq``, and ``generate``.

    An optional ``plan(seed, **parameters)`` returns a ``TablePlan`` of the same rows, so that small streams are
    generated without Spark. ``static`` and ``static_plan`` do the same for static data.
    """

    NAME: str
    ABOUT: str
    PARAMETERS: Mapping[str, Parameter]
    QUERIES: Path

    def generate(
        self, spark: "SparkSession", seed: int, *, partitions: int | None = None, **parameters_: object
    ) -> "DataFrame":
        """The stream table (formats.stream.SCHEMA); the same seed and parameters give the same rows."""


def on_spark(plan: "Callable[..., TablePlan | None]", tasks: int | None = None) -> "Callable[..., DataFrame | None]":
    """The ``generate`` or ``static`` of a workload from its plan; the rows do not depend on the number of partitions.

    By default there are ``tasks`` partitions, or one per core, but at most one per id.
    """

    def table(
        spark: "SparkSession", seed: int, *, partitions: int | None = None, **parameters_: object
    ) -> "DataFrame | None":
        from streamgauge.workloads.distributed import frame

        plan_ = plan(seed, **parameters_)
        return None if plan_ is None else frame(spark, plan_, partitions or tasks)

    return table


def names() -> tuple[str, ...]:
    """The names of all workloads, sorted."""
    return tuple(sorted(_modules()))


def load(name: str) -> Workload:
    """The workload of a name, in any case; UnknownNameError."""
    if (spelling := spelled(name, names())) is None:
        raise UnknownNameError(f"unknown workload {name!r}: {offered(name, names())}")
    return cast(Workload, import_module(_modules()[spelling]))


def parameters(workload: Workload, values: Mapping[str, object]) -> dict[str, object]:
    """All parameters of the workload with their values; ParameterError for unknown or invalid ones."""
    return resolve(workload.NAME, workload.PARAMETERS, values)


def queries(workload: Workload) -> tuple[str, ...]:
    """The names of its queries, sorted."""
    return tuple(sorted(file.stem for file in workload.QUERIES.glob("*.rq")))


def query_text(workload: Workload, name: str) -> str:
    """The text of a query with its ``${NAME}`` placeholders; UnknownNameError."""
    own_queries = queries(workload)
    if (spelling := spelled(name, own_queries)) is None:
        known = f"it has {', '.join(own_queries)}{meant(name, own_queries)}"
        raise UnknownNameError(f"workload {workload.NAME} has no query {name!r}: {known}")
    return (workload.QUERIES / f"{spelling}.rq").read_text(encoding="utf-8")


def _modules() -> dict[str, str]:
    """Name -> module: the folders next to this file that have a ``queries`` folder, and entry points."""
    folders = (folder.parent for place in __path__ for folder in Path(place).glob("*/queries"))
    own = {folder.name: f"{__name__}.{folder.name}" for folder in folders}
    return own | {point.name: point.value for point in entry_points(group=GROUP)}
