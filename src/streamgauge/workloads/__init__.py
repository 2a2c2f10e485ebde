"""Workloads: a stream and its queries, a module or folder each; another package adds one by an entry point."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from streamgauge.workloads import queries as query_files
from streamgauge.workloads.parameters import Parameter, resolve
from streamgauge.workloads.queries import UnknownNameError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["GROUP", "UnknownNameError", "Workload", "load", "names", "parameters", "queries"]

GROUP = "streamgauge.workloads"


class Workload(Protocol):
    """What a workload module has: its name, a line about it, its parameters, its folder of ``*.rq``, two functions."""

    NAME: str
    ABOUT: str
    PARAMETERS: Mapping[str, Parameter]
    QUERIES: Path

    def query(self, name: str) -> str:
        """The text of a query, its ``${NAME}`` parameters unfilled; UnknownNameError lists the queries there are."""
        ...

    def generate(
        self, spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object
    ) -> "DataFrame":
        """The stream table (wire.stream.SCHEMA); the same seed and parameters give the same rows."""
        ...


def names() -> tuple[str, ...]:
    """The names of all workloads, sorted."""
    return tuple(sorted(_modules()))


def load(name: str) -> Workload:
    """The workload of that name; UnknownNameError lists the names there are."""
    modules = _modules()
    if name not in modules:
        raise UnknownNameError(f"there is no workload {name!r}: there is {', '.join(sorted(modules))}")
    return cast(Workload, import_module(modules[name]))


def parameters(workload: Workload, given: Mapping[str, object]) -> dict[str, object]:
    """Every parameter of the workload with its value; ParameterError names what is unknown or wrong."""
    return resolve(workload.NAME, workload.PARAMETERS, given)


def queries(workload: Workload) -> tuple[str, ...]:
    """The names of its queries, sorted."""
    return query_files.names(workload.QUERIES)


def _modules() -> dict[str, str]:
    """Name -> module: the folders beside this file that hold a ``queries`` folder, and entry points."""
    own = {folder.parent.name: f"{__name__}.{folder.parent.name}" for folder in Path(__file__).parent.glob("*/queries")}
    return own | {point.name: point.value for point in entry_points(group=GROUP)}
