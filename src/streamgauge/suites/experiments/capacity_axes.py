"""What is varied to find a capacity: the load, the window's size or slide, the time unit; an experiment at a value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.model.query import Window
from streamgauge.query import print_query
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments.capacity_search import Harder
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError
from streamgauge.suites.experiments.plan import plan_query
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters

PACE = "feed.pace"
AXES = ("load", "window", "slide", "time-unit")


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that is varied: its name and unit, where it starts, which way it gets harder, and how it is set."""

    name: str
    unit: str
    start: float
    harder: Harder
    whole: bool
    apply: Callable[[Experiment, float], Experiment]

    @property
    def title(self) -> str:
        """Its name and unit, as a column or an axis is headed."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def folder(self) -> str:
        """Its name in folders and files."""
        return self.name.replace(" ", "-")

    def written(self, value: float) -> str:
        """A value as a folder and a table have it."""
        return f"{value:.0f}" if self.whole else f"{value:g}"


def axis(name: str, experiment: Experiment, load: str = PACE) -> Axis:
    """The axis of that name; ``load`` is the key that is the load. ExperimentError says what cannot be varied."""
    if name == "window":
        return Axis("window", "ms", _window(experiment).size, Harder.SMALLER, True, _sized)
    if name == "slide":
        return Axis("slide", "ms", _window(experiment).slide, Harder.SMALLER, True, _slid)
    if name == "time-unit":
        unit = max(profile(each).time_unit for part in experiment.engine for each in part.semantics)
        return Axis("time unit", "ms", max(2, unit), Harder.SMALLER, True, _with_unit)
    if name != "load":
        raise ExperimentError(f"--axis {name}: choose from {', '.join(AXES)}")
    if load == PACE:
        pace = experiment.feed.factor or 1.0
        return Axis("pace", "times real time", pace, Harder.GREATER, False, _paced)
    return _parameter(experiment, load)


def _parameter(experiment: Experiment, load: str) -> Axis:
    """A whole-number parameter of the workload or the query as the load."""
    table, _, name = load.rpartition(".")
    if table not in {"workload", "query.parameters"} or not name:
        raise ExperimentError(f"--load {load}: name {PACE}, workload.NAME or query.parameters.NAME")
    given: Mapping[str, Any] = experiment.query.parameters
    if table == "workload":
        if experiment.workload.name is None:
            raise ExperimentError(f"--load {load}: a recorded stream has no parameters: the load is {PACE}")
        given = check_parameters(load_workload(experiment.workload.name), experiment.workload.parameters)
    value = given.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ExperimentError(f"--load {load}: its value is {value!r}: a load is a whole number of at least 1")

    def set_to(at: Experiment, to: float) -> Experiment:
        return varied(at, {load: int(to)})

    return Axis(name, "", value, Harder.GREATER, True, set_to)


def varied(experiment: Experiment, values: Mapping[str, object]) -> Experiment:
    """The experiment with other values at these keys (``workload.stations``); it is checked again."""
    data = experiment.model_dump()
    for key, value in values.items():
        *tables, last = key.split(".")
        at = data
        for table in tables:
            at = at[table]
        at[last] = value
    return Experiment.model_validate(data)


def _paced(experiment: Experiment, value: float) -> Experiment:
    return varied(experiment, {PACE: value})


def _with_unit(experiment: Experiment, value: float) -> Experiment:
    parts = [{**part.model_dump(), "time_unit": int(value)} for part in experiment.engine]
    return varied(experiment, {"engine": parts})


def _window(experiment: Experiment) -> Window:
    """The one window of the query, measured in time."""
    windows = plan_query(experiment).query.windows
    if len(windows) != 1 or windows[0].window.kind != "time":
        raise ExperimentError("--axis window and --axis slide vary the one time-based window of a query: it has none")
    return windows[0].window


def _sized(experiment: Experiment, value: float) -> Experiment:
    """A tumbling window stays tumbling, a sliding one keeps its slide."""
    own = _window(experiment)
    size = int(value)
    return _with_window(experiment, Window(size, size if own.size == own.slide else own.slide))


def _slid(experiment: Experiment, value: float) -> Experiment:
    return _with_window(experiment, Window(_window(experiment).size, int(value)))


def _with_window(experiment: Experiment, window: Window) -> Experiment:
    """The same query over another window, as text of its own dialect."""
    planned = plan_query(experiment)
    windows = tuple(replace(each, window=window) for each in planned.query.windows)
    text = print_query(replace(planned.query, windows=windows), planned.dialect)
    query: dict[str, object] = {"text": text, "static": experiment.query.static, "parameters": {}}
    return varied(experiment, {"query": query})
