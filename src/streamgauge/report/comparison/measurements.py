"""Measurements of runs, folders of runs and capacities; stored as JSON they are a baseline."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from streamgauge.formats import tables
from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.manifest import TableError
from streamgauge.formats.run import FORMAT, VERSION, RunError, read_json, read_verdict, write_json
from streamgauge.formats.seals import SealError, unseal
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.report.capacity import FORMAT as CAPACITY_FORMAT

BASELINE: Final = "streamgauge baseline"
"""The format of a stored baseline, version 1."""

_REPEATED: Final = re.compile(r"-seed-?\d+-\d+$")
"""The end of a run folder's name: seed and repetition."""

_OF_RUNS: Final = frozenset({"run.json", "verdict.json"})

WORST_FIRST: Final = (Judgement.WRONG, Judgement.UNKNOWN, Judgement.LATE, Judgement.RIGHT)


class ComparisonError(MistakeError, ValueError):
    """Files that cannot be compared; the sentence names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class RunMeasurement:
    """Repetitions of a run: the worst judgement, windows, delays (ms), CPU (s) and peak memory (bytes).

    ``wrong`` counts unexpected windows among ``windows`` over all ``runs``; ``delay`` is the median and ``slow`` the
    99th percentile over all answered windows, ``cpu`` and ``memory`` are medians over the runs; ``None`` if not
    measured.
    """

    name: str
    engine: str
    semantics: str
    runs: int
    judgement: Judgement
    failed: int
    windows: int
    wrong: int
    delay: float | None = None
    slow: float | None = None
    cpu: float | None = None
    memory: float | None = None


@dataclass(frozen=True, slots=True)
class CapacityMeasurement:
    """The hardest value of an axis that an engine carries, ``None`` if there is none; ``rate`` in triples/s.

    ``greater``: greater values are harder; ``absent`` is why the engine was not tried.
    """

    name: str
    axis: str
    unit: str
    greater: bool
    value: float | None = None
    rate: float | None = None
    absent: str | None = None


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of one side."""

    runs: tuple[RunMeasurement, ...] = ()
    capacities: tuple[CapacityMeasurement, ...] = ()


def measured(path: Path) -> Measurements:
    """The measurements of a run, a folder of runs, a capacity's folder or file, or a stored baseline.

    Runs that differ only in seed and repetition are one measurement. The probes of a capacity do not count as runs, as
    those beyond a limit fail by design. ComparisonError and RunError name the file.
    """
    if path.is_file():
        return _of_file(path)
    if not path.is_dir():
        raise ComparisonError(f"{path}: there is no such file or folder: name a run, a folder of runs or a baseline")
    if (path / "run.json").is_file():
        return Measurements(runs=tuple(_repeated([(path.resolve().name, path)])))
    return _of_folder(path)


def _of_folder(path: Path) -> Measurements:
    """The runs and capacities below a folder, named by their paths."""
    capacities, homes = list[CapacityMeasurement](), set[Path]()
    for file in sorted(path.rglob("*.json")):
        if file.name not in _OF_RUNS and (data := _capacity(file)) is not None:
            homes.add(file.parent)
            place = file.parent.relative_to(path).as_posix()
            capacities += [
                one if place == "." else replace(one, name=f"{place}/{one.name}") for one in _carried(file, data)
            ]
    # The probes of a capacity are runs as well, but a search has other ones each time.
    runs = sorted(file.parent for file in path.rglob("run.json") if homes.isdisjoint(file.parents))
    if not runs and not capacities:
        raise ComparisonError(f"{path}: it has no run (run.json), no capacity and no baseline")
    return Measurements(tuple(_repeated((run.relative_to(path).as_posix(), run) for run in runs)), tuple(capacities))


def write_baseline(path: Path, measurements: Measurements) -> None:
    """Store measurements as a baseline; RunError."""
    write_json(path, {"format": BASELINE, "version": 1, "measurements": encode(measurements)})


def _of_file(path: Path) -> Measurements:
    """A baseline, or a capacity as ``capacity --json`` prints it."""
    data = _json(path)
    if data.get("format") == CAPACITY_FORMAT:
        return Measurements(capacities=tuple(_carried(path, data)))
    if data.get("format") != BASELINE or data.get("version") != 1:
        raise ComparisonError(f"{path}: field format: neither a baseline (compare --save) nor a capacity")
    try:
        return decode(Measurements, data.get("measurements"), "measurements")
    except FieldError as error:
        raise ComparisonError(f"{path}: field {error}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ComparisonError(f"{path}: cannot be read: {obstacle(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ComparisonError(f"{path}: not JSON: write a baseline by compare --save") from error
    try:
        return unseal(data, path) if isinstance(data, dict) else {}
    except SealError as error:
        raise ComparisonError(str(error)) from error


def _capacity(file: Path) -> dict[str, Any] | None:
    """The capacity in a file of a folder; ``None`` for any other file."""
    try:
        data = _json(file)
    except ComparisonError:
        return None
    return data if data.get("format") == CAPACITY_FORMAT else None


def _carried(file: Path, data: dict[str, Any]) -> Iterator[CapacityMeasurement]:
    try:
        axis = data["axis"]
        for one in data["engines"]:
            yield CapacityMeasurement(
                f"{axis['name']}: {one['engine']} as {one['semantics']}",
                str(axis["name"]),
                str(axis["unit"]),
                axis["harder"] == "greater",
                one["capacity"],
                one["triples_per_second"],
                one["absent"],
            )
    except (KeyError, TypeError) as error:
        raise ComparisonError(f"{file}: field {error} is missing: write it by streamgauge capacity") from error


def _repeated(named: Iterable[tuple[str, Path]]) -> Iterator[RunMeasurement]:
    groups: dict[str, list[Path]] = defaultdict(list)
    for name, folder in named:
        # live-csparql-seed1-1 and live-csparql-seed1-2 are both live-csparql.
        groups[_REPEATED.sub("", name)].append(folder)
    for name, folders in groups.items():
        yield _measurement(name, [_Observed.of(folder) for folder in folders])


@dataclass(frozen=True, slots=True)
class _Observed:
    """The measures of a run: its header as written, its verdict and its peak memory (bytes)."""

    header: dict[str, Any]
    verdict: Verdict
    memory: int | None

    @classmethod
    def of(cls, folder: Path) -> "_Observed":
        """The run of a folder; ComparisonError if it is not judged, RunError if it cannot be read."""
        header = read_json(folder / "run.json", FORMAT, VERSION).get("header")
        if not isinstance(header, dict):
            raise ComparisonError(f"{folder / 'run.json'}: field header is missing")
        if not (folder / "verdict.json").is_file():
            raise ComparisonError(f"{folder}: it is not judged yet: run streamgauge check {folder}")
        try:
            samples = tables.samples(folder) if (folder / "samples.parquet").exists() else ()
        except TableError as error:
            raise RunError(str(error)) from error
        return cls(header, read_verdict(folder), max((sample.rss for sample in samples), default=None))


def _measurement(name: str, runs: Sequence[_Observed]) -> RunMeasurement:
    windows = [window for run in runs for window in run.verdict.windows]
    delays = [window.delay for window in windows if window.delay is not None]
    judgements = {run.verdict.judgement for run in runs}
    cpu = [float(run.header["cpu"]) for run in runs if isinstance(run.header.get("cpu"), int | float)]
    memory = [run.memory for run in runs if run.memory is not None]
    semantics = runs[0].header.get("semantics")
    return RunMeasurement(
        name,
        str(runs[0].header.get("engine")),
        str(semantics.get("name")) if isinstance(semantics, dict) else "",
        len(runs),
        # One wrong repetition makes a wrong run: an average would hide it.
        next(judgement for judgement in WORST_FIRST if judgement in judgements),
        sum(bool(run.header.get("failure")) for run in runs),
        len(windows),
        sum(not window.right for window in windows),
        median(delays) if delays else None,
        percentile(delays, 99),
        median(cpu) if cpu else None,
        median(memory) if memory else None,
    )
