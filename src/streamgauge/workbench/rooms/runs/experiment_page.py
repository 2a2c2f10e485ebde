"""An experiment file of the folder: its trials with those that are done, the estimate, where its runs go."""

import hashlib
import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final, NoReturn

from streamgauge.formats.contexts import context_files
from streamgauge.harness import Trial
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted, elapsed
from streamgauge.model.run import RunHeader
from streamgauge.report.cards import pace
from streamgauge.semantics.profiles import profile
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.sources.contract import parse_address
from streamgauge.suites.experiments import Experiment, read
from streamgauge.suites.experiments.plan import (
    RunEstimate,
    parameters_of,
    plan_query,
    plan_runs,
    stream_facts,
    stream_folder,
)
from streamgauge.suites.experiments.runner import ExperimentContext, estimate
from streamgauge.workbench.rooms.runs.folder import (
    ENTRIES,
    TOML_BYTES,
    BenchError,
    inside,
    read_text,
    refuse_outside,
    stamp,
)
from streamgauge.workbench.rooms.runs.run_list import RunLine, RunLines, cut, workload_text

SECONDS: Final = 5.0
"""CPU seconds that a plan may take."""

GROWTH: Final = 2**30
"""Bytes by which the process may grow meanwhile."""

QUERY_BYTES: Final = 2**20
"""The size of a query's file that is read."""

STATIC_BYTES: Final = 20 * 2**20
"""The size of static data that are read for a plan."""

STREAM_BYTES: Final = 2**30
"""The size of recorded streams whose content is told apart for a plan."""

TRIALS: Final = 500
"""Trials that are listed."""

NO_PARAMETERS: Final = frozenset(("name", "seed", "triples", "content", "notes"))
"""Fields of a run's workload that are no parameters."""

PLANNED: Final = 100_000
"""Trials that are planned for a page."""


@dataclass(frozen=True, slots=True)
class ExperimentLine:
    """An experiment file in the list: its place, name and folder of runs; ``wrong`` says why it cannot be used."""

    place: str
    name: str = ""
    runs: str = ""
    about: str = ""
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """The parts of an experiment's page; ``trials`` are its trials with the line of the run where there is one.

    ``unplanned`` says why there is no plan though the experiment may be started.
    """

    line: ExperimentLine
    text: str
    facts: Sequence[tuple[str, str]] = ()
    trials: Sequence[tuple[Trial, RunLine | None]] = ()
    of: int = 0
    done: int = 0
    estimate: str = ""
    unplanned: str = ""
    command: str = ""


class UnplannedError(BenchError):
    """An experiment that is too large to be planned for a page; it may be started all the same."""


class Experiments:
    """The experiment files of a folder, read once for each state of a file. Thread-safe."""

    def __init__(self, root: Path, lines: RunLines) -> None:
        self._root, self._run_lines, self._lock = root, lines, Lock()
        self._kept: dict[str, tuple[str, ExperimentLine]] = {}

    def of(self, places: Sequence[str]) -> list[ExperimentLine]:
        """The experiments at these places."""
        with self._lock:
            return [self._line(place) for place in places]

    def _line(self, place: str) -> ExperimentLine:
        try:
            text = read_text(inside(self._root, place), TOML_BYTES)
        except BenchError as error:
            return ExperimentLine(place, wrong=cut(str(error), 300))
        digest = hashlib.sha256(text.encode()).hexdigest()
        kept = self._kept.get(place)
        if kept is None or kept[0] != digest:
            kept = self._kept[place] = digest, self._made(place)
        return kept[1]

    def _made(self, place: str) -> ExperimentLine:
        try:
            experiment = self.experiment(place)
            return ExperimentLine(place, cut(experiment.name), self.out(experiment), _about(experiment))
        except (MistakeError, ValueError, RecursionError, OSError) as error:
            return ExperimentLine(place, wrong=cut(str(error).replace(f"{self._root}/", ""), 300))

    def experiment(self, place: str) -> Experiment:
        """The experiment of a file in the folder; MistakeError for one that leads out of the folder, or to devices."""
        file = inside(self._root, place)
        read_text(file, TOML_BYTES)
        experiment = read(file)
        for path in _files(experiment):
            refuse_outside(self._root, path)
            _size(path)
        self.out(experiment)
        return experiment

    def out(self, experiment: Experiment) -> str:
        """The place of the experiment's runs: ``runs/NAME``, or ``NAME`` in a folder that is called runs itself."""
        name = experiment.name
        if not name or "/" in name or "\0" in name or name.startswith(".") or len(name.encode()) > 200:
            raise BenchError(f"name = {name!r:.80}: the name of an experiment is the name of the folder of its runs")
        place = name if self._root.name == "runs" else f"runs/{name}"
        inside(self._root, place)
        return place

    def view(self, place: str) -> ExperimentView:
        """The page of an experiment; MistakeError for one that cannot be planned."""
        experiment = self.experiment(place)
        text = read_text(inside(self._root, place), TOML_BYTES)
        out = self.out(experiment)
        line = ExperimentLine(place, cut(experiment.name), out, _about(experiment))
        command = shlex.join(["streamgauge", "run", place, "--out", out])
        facts = (("Workload", line.about), ("Pace", pace(experiment.feed.factor)), ("Runs go to", out))
        try:
            with DEADLINES.within(SECONDS, GROWTH):
                _refuse_large(experiment)
                trials = plan_runs(experiment, plan_query(experiment))
                ahead = self._estimate(experiment, trials, out)
        except UnplannedError as error:
            return ExperimentView(line, text, facts, unplanned=str(error), command=command)
        places = [f"{out}/{trial.name}" for trial in trials[:TRIALS]]
        kept = [place for place in places if (self._root / place / "run.json").exists()]
        runs = {run.place: run for run in self._run_lines.of(kept)}
        shown = [(trial, runs.get(f"{out}/{trial.name}")) for trial in trials[:TRIALS]]
        done = len(trials) - len(_to_do(trials, self._root / out))
        return ExperimentView(line, text, facts, shown, len(trials), done, ahead, command=command)

    def _estimate(self, experiment: Experiment, trials: Sequence[Trial], out: str) -> str:
        """How long the runs take that are to be done, as the command says; less is known before the stream is made."""
        to_do = _to_do(trials, self._root / out)
        if not to_do:
            return "All runs are done."
        streams = self._root / out / "streams"
        stream = stream_folder(experiment.workload, to_do[0].query.query, to_do[0].seed, streams)
        if experiment.workload.name is None and streams.is_dir() and not stream.is_dir():
            streams_made = [path for path in islice(streams.iterdir(), ENTRIES) if not path.name.startswith(".")]
            stream = streams_made[0] if len(streams_made) == 1 else stream
        if stream.is_dir():
            _refuse_stream(inside(self._root, stream.relative_to(self._root).as_posix()))
            context = ExperimentContext(self._root / out, _no_spark)
            estimate_ = estimate(experiment, trials, stream_facts(stream), context)
            return f"At least {elapsed(estimate_.seconds)}: {estimate_.words}."
        duration = parameters_of(experiment).get("duration")
        span = experiment.feed.advance_to or (duration if isinstance(duration, int) else 0)
        if not span:
            return f"{counted(len(to_do), 'run')}; how long they take is known once the stream is read."
        estimate_ = RunEstimate(len(to_do), span, 0, experiment.feed.factor)
        return f"At least {elapsed(estimate_.seconds)}, and the time to make the stream: {estimate_.words}."

    def command(self, header: RunHeader, places: Sequence[str]) -> str:
        """The command that records and judges such a run again by an experiment file of the folder; empty for none."""
        for line in self.of(places):
            if line.name == header.experiment and not line.wrong:
                try:
                    overrides = list(_overrides(self.experiment(line.place), header))
                    again = read(inside(self._root, line.place), overrides)
                    _refuse_large(again)
                    [trial] = plan_runs(again, plan_query(again))
                except (MistakeError, ValueError):
                    continue
                if set(trial.differences(header)) <= _told_otherwise(again, header):
                    set_ = [word for override in overrides for word in ("-D", override)]
                    return shlex.join(["streamgauge", "run", line.place, *set_, "--out", "again"])
        return ""


def experiment_text(header: RunHeader) -> str:
    """An experiment file that makes such a run; empty where none does, as for recorded streams and static data."""
    try:
        text = _written(header)
        experiment = Experiment.model_validate(tomllib.loads(text))
        [trial] = plan_runs(experiment, plan_query(experiment))
    except (MistakeError, ValueError):
        return ""
    return "" if trial.differences(header) else text


def _written(header: RunHeader) -> str:
    """The tables of an experiment file, the query as a literal of several lines."""
    quotes = "'''"
    part = {key: value for key, value in header.workload.items() if key not in NO_PARAMETERS}
    tables = [
        f"name = {_toml(header.experiment or 'again')}",
        f"seeds = [{_toml(header.workload.get('seed', 0))}]",
        f"\n[workload]\nname = {_toml(header.workload.get('name', ''))}",
        *(f"{key} = {_toml(value)}" for key, value in part.items()),
        f"\n[query]\ntext = {quotes}\n{header.query_text}{quotes}",
        "\n[[engine]]",
        *(f"{key} = {_toml(value)}" for key, value in _engine(header).items()),
        f"\n[feed]\npace = {_toml('fast' if header.factor is None else header.factor)}",
    ]
    return "\n".join(tables) + "\n"


def _engine(header: RunHeader) -> dict[str, object]:
    """The table of an experiment's engine that makes a run."""
    part: dict[str, object] = {"name": header.engine, "semantics": [header.semantics.name]}
    if header.semantics.time_unit != profile(header.semantics.name).time_unit:
        part["time_unit"] = header.semantics.time_unit
    if header.options:
        part["options"] = dict(header.options)
    return part


def _told_otherwise(experiment: Experiment, header: RunHeader) -> frozenset[str]:
    """The differences that say nothing: a recorded stream is named by its path from where the command was called."""
    names = {source.address.rpartition("/")[2] for source in experiment.workload.sources}
    kept = {name.rpartition("/")[2] for name in str(header.workload.get("name")).split(", ")}
    return frozenset({"workload"}) if names and names == kept else frozenset()


def _overrides(experiment: Experiment, header: RunHeader) -> Iterator[str]:
    """The fields by which an experiment makes just the one trial of a run, as ``-D`` takes them."""
    yield f"engine=[{_inline(_engine(header))}]"
    yield f"seeds=[{_toml(header.workload.get('seed', 0))}]"
    if experiment.repetitions != 1:
        yield "repetitions=1"
    if experiment.feed.factor != header.factor:
        yield f"feed.pace={_toml('fast' if header.factor is None else header.factor)}"
    for key, value in header.parameters.items():
        if str(experiment.query.parameters.get(key)) != str(value):
            yield f"query.parameters.{key}={_toml(value)}"
    for key, value in header.workload.items():
        if key not in NO_PARAMETERS and str(experiment.workload.parameters.get(key)) != str(value):
            yield f"workload.{key}={_toml(value)}"


def _inline(table: Mapping[str, object]) -> str:
    return "{ " + ", ".join(f"{key} = {_toml(value)}" for key, value in table.items()) + " }"


def _toml(value: object) -> str:
    """A value as TOML writes it."""
    match value:
        case dict():
            return _inline(value)
        case list():
            return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _to_do(trials: Sequence[Trial], out: Path) -> list[Trial]:
    """The trials without a verdict."""
    return [trial for trial in trials if not (out / trial.name / "verdict.json").exists()]


def _no_spark() -> NoReturn:
    raise UnplannedError("the plan needs Spark: start the experiment to see it")


def _about(experiment: Experiment) -> str:
    """The workload in short."""
    part = experiment.workload
    if part.name is not None:
        return workload_text({"name": part.name, **part.parameters})
    return cut(", ".join(source.address.rpartition("/")[2] for source in part.sources))


def _files(experiment: Experiment) -> Iterator[Path]:
    """The files and folders that an experiment names."""
    part, query = experiment.workload, experiment.query
    for path in (query.file, query.static, part.csv_mapping, part.json_mapping, *context_files(part.context)):
        if path is not None:
            yield Path(path)
    for source in part.sources:
        address = parse_address(source.address)
        if address.scheme == "file":
            yield Path(address.path)


def _refuse_large(experiment: Experiment) -> None:
    """Refuse files that are no plain ones, or too large to be read for a page; BenchError, UnplannedError."""
    query = experiment.query
    trials = len(experiment.seeds) * experiment.repetitions * sum(len(part.semantics) for part in experiment.engine)
    if trials > PLANNED:
        raise UnplannedError(f"these are {trials:,} runs: give fewer seeds or repetitions to see the plan")
    for file, limit in ((query.file, QUERY_BYTES), (query.static, STATIC_BYTES)):
        if file is not None and _size(file) > limit:
            raise UnplannedError(f"{file.name} has more than {limit:,} bytes: start the experiment to see its plan")
    if sum(_size(file) for file in _files(experiment)) > STREAM_BYTES:
        raise UnplannedError(f"its files have more than {STREAM_BYTES:,} bytes: start the experiment to see its plan")


def _size(path: Path) -> int:
    """The bytes of a file, or of the files in a folder; 0 for what is not there, whose reader has a sentence."""
    if path.is_dir():
        return sum(_size(file) for file in islice(path.iterdir(), ENTRIES) if not file.is_dir())
    if not path.exists():
        return 0
    if not path.is_file():
        raise BenchError(f"{path.name} is neither a file nor a folder")
    return path.stat().st_size


def _refuse_stream(folder: Path) -> None:
    """Refuse a stream table that has links or is too large to be looked through."""
    if sum(size for _, _, size in stamp(folder)) > STREAM_BYTES:
        raise UnplannedError(f"the stream has more than {STREAM_BYTES:,} bytes: start the experiment to see its plan")
