"""An experiment file of the folder: its trials and their progress, the estimated time, the destination of its runs."""

import hashlib
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final, NoReturn

from pydantic import ValidationError

from streamgauge.harness import Trial
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted, elapsed
from streamgauge.model.run import RunHeader
from streamgauge.report.cards import pace
from streamgauge.semantics.profiles import profile
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.sources.contract import parse_address
from streamgauge.suites.experiments import Experiment, ExperimentFile, Variant, read_file
from streamgauge.suites.experiments import read_text as read_experiments
from streamgauge.suites.experiments.plan import (
    ExperimentEstimate,
    PlannedVariant,
    RunEstimate,
    parameters_of,
    plan_query,
    plan_runs,
    plan_variants,
    stream_facts,
    stream_folder,
)
from streamgauge.suites.experiments.runner import ExperimentContext, estimate
from streamgauge.suites.experiments.variants import toml
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
"""Maximum size of recorded streams whose content is distinguished in a plan."""

TRIALS: Final = 500
"""Trials that are listed."""

NO_PARAMETERS: Final = frozenset(("name", "seed", "triples", "content", "notes"))
"""Fields of a run's workload that are no parameters."""

TRIED: Final = 20
"""Variants that are tried for the command that makes a run again."""

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

    def text(self, place: str) -> str:
        """The text of an experiment file; empty where it cannot be read."""
        try:
            return read_text(inside(self._root, place), TOML_BYTES)
        except BenchError:
            return ""

    def _line(self, place: str) -> ExperimentLine:
        try:
            text = read_text(inside(self._root, place), TOML_BYTES)
        except BenchError as error:
            return ExperimentLine(place, wrong=cut(str(error), 300))
        # By content: a file may be written twice within the resolution of its time.
        digest = hashlib.sha256(text.encode()).hexdigest()
        kept = self._kept.get(place)
        if kept is None or kept[0] != digest:
            kept = self._kept[place] = digest, self._made(place)
        return kept[1]

    def _made(self, place: str) -> ExperimentLine:
        try:
            file = self.file(place)
            return ExperimentLine(place, cut(file.name), self.out(file.name), _about(file))
        except (MistakeError, RecursionError, OSError) as error:
            return ExperimentLine(place, wrong=cut(str(error).replace(f"{self._root}/", ""), 300))

    def file(self, place: str) -> ExperimentFile:
        """An experiment file of the folder; MistakeError for one that leads out of the folder, or to devices."""
        return self.checked(read_text(inside(self._root, place), TOML_BYTES), place)

    def checked(self, text: str, place: str) -> ExperimentFile:
        """``file`` for a text that is or will be stored at a place."""
        file = read_experiments(text, inside(self._root, place))
        for path in {path for variant in file.variants for path in _files(variant.experiment)}:
            refuse_outside(self._root, path)
            _size(path)
        self.out(file.name)
        return file

    def out(self, name: str) -> str:
        """The place of an experiment's runs: ``runs/NAME``, or ``NAME`` in a folder named ``runs``."""
        if not name or "/" in name or "\0" in name or name.startswith(".") or len(name.encode()) > 200:
            raise BenchError(f"name = {name!r:.80}: the name of an experiment is the name of the folder of its runs")
        place = name if self._root.name == "runs" else f"runs/{name}"
        inside(self._root, place)
        return place

    def view(self, place: str) -> ExperimentView:
        """The page of an experiment; MistakeError for one that cannot be planned."""
        file = self.file(place)
        text = read_text(inside(self._root, place), TOML_BYTES)
        out = self.out(file.name)
        line = ExperimentLine(place, cut(file.name), out, _about(file))
        command = shlex.join(["streamgauge", "run", place, "--out", out])
        facts = (*_facts(file), ("Runs go to", out))
        try:
            planned, ahead = self.plan(file)
            trials = [trial for variant in planned for trial in variant.trials]
        except UnplannedError as error:
            return ExperimentView(line, text, facts, unplanned=str(error), command=command)
        places = [f"{out}/{trial.name}" for trial in trials[:TRIALS]]
        # Only of runs that are there: for others the list would make a line that says damaged.
        kept = [place for place in places if (self._root / place / "run.json").exists()]
        runs = {run.place: run for run in self._run_lines.of(kept)}
        shown = [(trial, runs.get(f"{out}/{trial.name}")) for trial in trials[:TRIALS]]
        done = len(trials) - len(_to_do(trials, self._root / out))
        return ExperimentView(line, text, facts, shown, len(trials), done, ahead, command=command)

    def plan(self, file: ExperimentFile) -> tuple[Sequence[PlannedVariant], str]:
        """The variants with their runs, and the estimated duration; UnplannedError for too many, MistakeError."""
        with DEADLINES.within(SECONDS, GROWTH):
            _refuse_large(file)
            planned = plan_variants(file.variants)
            return planned, self._estimate(planned, self.out(file.name))

    def _estimate(self, planned: Sequence[PlannedVariant], out: str) -> str:
        """The estimated duration of the remaining runs, as ``streamgauge run`` prints it; rougher without a stream."""
        waiting = [(variant.experiment, _to_do(variant.trials, self._root / out)) for variant in planned]
        count = sum(len(trials) for _, trials in waiting)
        if not count:
            return "All runs are done."
        experiment, to_do = next((experiment, trials) for experiment, trials in waiting if trials)
        streams = self._root / out / "streams"
        stream = stream_folder(experiment.workload, to_do[0].query.query, to_do[0].seed, streams)
        # The folder's name of a recorded stream depends on how it was called. If there is just one folder, it is the
        # one.
        if experiment.workload.name is None and streams.is_dir() and not stream.is_dir():
            streams_made = [path for path in islice(streams.iterdir(), ENTRIES) if not path.name.startswith(".")]
            stream = streams_made[0] if len(streams_made) == 1 else stream
        if stream.is_dir():
            _refuse_stream(inside(self._root, stream.relative_to(self._root).as_posix()))
            context = ExperimentContext(self._root / out, _no_spark)
            whole = estimate(planned, stream_facts(stream), context)
            return f"At least {elapsed(whole.seconds)}: {whole.words}."
        spans = [_span(experiment) for experiment, _ in waiting]
        if 0 in spans:
            return f"{counted(count, 'run')}; how long they take is known once the stream is read."
        parts = [
            RunEstimate(len(trials), span, 0, experiment.feed.factor)
            for span, (experiment, trials) in zip(spans, waiting, strict=True)
        ]
        whole = ExperimentEstimate(tuple(parts))
        return f"At least {elapsed(whole.seconds)}, and the time to make the stream: {whole.words}."

    def _alike(self, place: str, header: RunHeader) -> Sequence[Variant]:
        """The variants of a file that may have made a run; none if the file is no longer valid."""
        try:
            return _alike(self.file(place).variants, header)
        except MistakeError:
            return ()

    def command(self, header: RunHeader, places: Sequence[str]) -> str:
        """The command that repeats such a run from an experiment file of the folder; empty without such a file."""
        for line in self.of(places):
            if line.name == header.experiment and not line.wrong:
                # Candidates are cheap to find but uncertain. Each is planned with its overrides, which is the proof.
                for variant in self._alike(line.place, header):
                    overrides = [*variant.overrides, *_overrides(variant.experiment, header)]
                    if _is_made_by(inside(self._root, line.place), overrides, header):
                        set_ = [word for override in overrides for word in ("-D", override)]
                        return shlex.join(["streamgauge", "run", line.place, *set_, "--out", "again"])
        return ""


def _alike(variants: Sequence[Variant], header: RunHeader) -> Sequence[Variant]:
    """The variants that may have made a run; if there are several, those with its pace, workload and query."""

    def is_alike(experiment: Experiment) -> bool:
        workload = {name: str(value) for name, value in header.workload.items()}
        own = {name: str(value) for name, value in experiment.workload.parameters.items()}
        same = experiment.feed.factor == header.factor and experiment.query.label == header.query_name
        return same and own.items() <= workload.items()

    return variants if len(variants) == 1 else [variant for variant in variants if is_alike(variant.experiment)][:TRIED]


def _is_made_by(path: Path, overrides: Sequence[str], header: RunHeader) -> bool:
    """Whether a file with these overrides plans exactly one trial, that of a run."""
    try:
        file = read_file(path, overrides)
        _refuse_large(file)
        if len(file.variants) > 1:
            return False
        again = file.variants[0].experiment
        trials = plan_runs(again, plan_query(again))
    except MistakeError:
        return False
    return len(trials) == 1 and set(trials[0].differences(header)) <= _told_otherwise(again, header)


def _span(experiment: Experiment) -> int:
    """The length of an experiment's stream (ms) if the file states it, else 0."""
    duration = parameters_of(experiment).get("duration")
    return experiment.feed.advance_to or (duration if isinstance(duration, int) else 0)


def experiment_text(header: RunHeader) -> str:
    """An experiment file for such a run; empty if there can be none, as for recorded streams and static data."""
    try:
        text = _written(header)
        experiment = Experiment.model_validate(tomllib.loads(text))
        trials = plan_runs(experiment, plan_query(experiment))
    # A query with three quotes, or a header of another version, makes no such text.
    except (MistakeError, ValidationError, tomllib.TOMLDecodeError):
        return ""
    return text if len(trials) == 1 and not trials[0].differences(header) else ""


def _written(header: RunHeader) -> str:
    """The tables of an experiment file, the query as a literal of several lines."""
    quotes = "'''"
    part = {key: value for key, value in header.workload.items() if key not in NO_PARAMETERS}
    tables = [
        f"name = {toml(header.experiment or 'again')}",
        f"seeds = [{toml(header.workload.get('seed', 0))}]",
        f"\n[workload]\nname = {toml(header.workload.get('name', ''))}",
        *(f"{key} = {toml(value)}" for key, value in part.items()),
        f"\n[query]\ntext = {quotes}\n{header.query_text}{quotes}",
        "\n[[engine]]",
        *(f"{key} = {toml(value)}" for key, value in _engine(header).items()),
        f"\n[feed]\npace = {toml('fast' if header.factor is None else header.factor)}",
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
    # Compared by the last part of the path only: data/a.nt, called from elsewhere, is ../data/a.nt.
    names = {source.address.rpartition("/")[2] for source in experiment.workload.sources}
    kept = {name.rpartition("/")[2] for name in str(header.workload.get("name")).split(", ")}
    return frozenset({"workload"}) if names and names == kept else frozenset()


def _overrides(experiment: Experiment, header: RunHeader) -> Iterator[str]:
    """The fields by which an experiment makes just the one trial of a run, as ``-D`` takes them."""
    yield f"engine=[{toml(_engine(header))}]"
    yield f"seeds=[{toml(header.workload.get('seed', 0))}]"
    if experiment.repetitions != 1:
        yield "repetitions=1"
    if experiment.feed.factor != header.factor:
        yield f"feed.pace={toml('fast' if header.factor is None else header.factor)}"
    for key, value in header.parameters.items():
        if str(experiment.query.parameters.get(key)) != str(value):
            yield f"query.parameters.{key}={toml(value)}"
    for key, value in header.workload.items():
        if key not in NO_PARAMETERS and str(experiment.workload.parameters.get(key)) != str(value):
            yield f"workload.{key}={toml(value)}"


def _to_do(trials: Sequence[Trial], out: Path) -> list[Trial]:
    """The trials without a verdict."""
    return [trial for trial in trials if not (out / trial.name / "verdict.json").exists()]


def _no_spark() -> NoReturn:
    raise UnplannedError("the plan needs Spark: start the experiment to see it")


def _about(file: ExperimentFile) -> str:
    """The workload in short."""
    part = file.variants[0].experiment.workload
    if part.name is not None:
        return workload_text({"name": part.name, **part.parameters})
    return cut(", ".join(source.address.rpartition("/")[2] for source in part.sources))


def _facts(file: ExperimentFile) -> list[tuple[str, str]]:
    """The workload, the pace, and the values of each thing that varies between the variants."""
    values: dict[str, list[str]] = {}
    for variant in file.variants:
        for name, value in variant.point.items():
            values.setdefault(name, []).append(value)
    varied = [(name.capitalize(), cut(", ".join(dict.fromkeys(several)))) for name, several in values.items()]
    own = [("Workload", _about(file)), ("Pace", pace(file.variants[0].experiment.feed.factor))]
    return [fact for fact in own if fact[0].lower() not in values] + varied


def _files(experiment: Experiment) -> Iterator[Path]:
    """The files and folders that an experiment names."""
    part, query = experiment.workload, experiment.query
    for path in (query.file, query.static, *part.option_files):
        if path is not None:
            yield Path(path)
    for source in part.sources:
        address = parse_address(source.address)
        if address.scheme == "file":
            yield Path(address.path)


def _refuse_large(file: ExperimentFile) -> None:
    """Refuse files that are not regular, or too large to be read for a page; BenchError, UnplannedError."""
    experiments = [variant.experiment for variant in file.variants]
    trials = sum(map(_runs, experiments))
    if trials > PLANNED:
        raise UnplannedError(f"these are {trials:,} runs: give fewer seeds or repetitions to see the plan")
    queries = [experiment.query for experiment in experiments]
    own = {(path, QUERY_BYTES) for query in queries if (path := query.file) is not None}
    static = {(path, STATIC_BYTES) for query in queries if (path := query.static) is not None}
    for path, limit in own | static:
        if _size(path) > limit:
            raise UnplannedError(f"{path.name} has more than {limit:,} bytes: start the experiment to see its plan")
    if sum(map(_size, {path for experiment in experiments for path in _files(experiment)})) > STREAM_BYTES:
        raise UnplannedError(f"its files have more than {STREAM_BYTES:,} bytes: start the experiment to see its plan")


def _runs(experiment: Experiment) -> int:
    semantics = sum(len(part.semantics) for part in experiment.engine)
    return len(experiment.seeds) * experiment.repetitions * semantics


def _size(path: Path) -> int:
    """The bytes of a file, or of the files in a folder; 0 if missing, which the reader reports."""
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
