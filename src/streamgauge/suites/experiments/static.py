"""The static data of a workload: made once for a seed, beside the stream, and given to the engine and the oracle."""

from collections.abc import Collection
from pathlib import Path

from streamgauge.engines import load as load_engine
from streamgauge.formats.making import keep_first, making
from streamgauge.formats.static import StaticFile
from streamgauge.model.terms import Triple
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters
from streamgauge.workloads.tables import Maker

LINE_LIMIT = 1_000_000
"""So many static triples may stand in the task line of a program that does not read them from a file."""


def gives_static(experiment: Experiment) -> bool:
    """Whether the experiment's workload has static data of its own (parameter ``static_triples``)."""
    if experiment.workload.name is None:
        return False
    workload = load_workload(experiment.workload.name)
    return bool(check_parameters(workload, experiment.workload.parameters).get("static_triples"))


def static_data(experiment: Experiment, seed: int, stream: Path, tables: Maker) -> StaticFile | None:
    """The workload's static data, as ``<stream>.nt`` beside the stream table, made unless it is there."""
    if not gives_static(experiment):
        return None
    file = stream.with_name(f"{stream.name}.nt")
    if not file.exists():
        _make(experiment, seed, file, tables)
    return StaticFile(file)


def _make(experiment: Experiment, seed: int, file: Path, tables: Maker) -> None:
    workload = load_workload(experiment.workload.name or "")
    given = check_parameters(workload, experiment.workload.parameters)
    with making(file) as place:
        tables.write_static(workload, seed, given, place)
        keep_first(place, file)


def as_taken(engine: str, static: StaticFile) -> Collection[Triple]:
    """The static data in a form that the engine takes: a file, else triples; ExperimentError when there are too many.

    Engines in Python read files; a program on the pipe does when its module says ``STATIC_FILE = True``.
    """
    module = load_engine(engine)
    if not hasattr(module, "command") or getattr(module, "STATIC_FILE", False):
        return static
    if len(static) > LINE_LIMIT:
        raise ExperimentError(
            f"engine {engine} does not read static data from a file: workload.static_triples is {len(static)}, "
            f"give it at most {LINE_LIMIT}"
        )
    return tuple(static)
