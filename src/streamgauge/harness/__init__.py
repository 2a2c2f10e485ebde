"""The harness: trials, identified by their fields, and a store in which a trial's result is complete or absent.

``systems`` are under test, ``pace`` feeds them, ``process`` and ``resources`` manage the programs that are started.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from streamgauge.formats.files import overwrite, put_if_absent, stage
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.model.verdict import Verdict

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """The query as text in its dialect and parsed."""

    text: str
    dialect: str
    query: ContinuousQuery


@dataclass(frozen=True, slots=True)
class Trial:
    """One planned run, identified by these fields and never by its results.

    ``workload`` has the fields that identify its stream (name, seed, parameters, a digest of files), ``pace`` is event
    time over wall time, ``None`` for as fast as possible. ``static``: the workload generates the static data, which
    then do not belong to the query. ``point`` has the values of the trial's variant in an experiment.
    """

    system: str
    semantics: Semantics
    query: PlannedQuery
    workload: Mapping[str, object]
    seed: int = 0
    repetition: int = 1
    options: Mapping[str, object] = field(default_factory=dict)
    pace: float | None = None
    static: bool = False
    point: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A folder name that equal trials share."""
        own = "".join(f"-{name}={value}" for name, value in sorted(self.options.items()))
        point = "".join(f"-{name}={value}" for name, value in self.point.items())
        name = f"{self.system}{own}-{self.semantics.name}{point}-seed{self.seed}-{self.repetition}"
        # Options and points may be paths, which must not lead out of the folder.
        return name.replace("/", "_").replace("\0", "_")

    def differences(self, kept: RunHeader) -> tuple[str, ...]:
        """The fields, by their keys in an experiment file, in which a recorded run differs from this trial."""
        # The number of triples is a result, and does not identify a trial.
        before = {name: value for name, value in kept.workload.items() if name != "triples"}
        now = dict(self.workload)
        if "content" not in before:  # recorded by a version that identified files by their paths only
            now.pop("content", None)
        same_static = self.static or kept.query.static == self.query.query.static
        same = {
            "workload": before == now,
            "query": kept.query_text == self.query.text and same_static,
            # The t0 of a recorded run is a result: a searched or moved one.
            "semantics": replace(kept.semantics, t0=self.semantics.t0) == self.semantics,
            "engine.options": dict(kept.options) == dict(self.options),
            "feed.pace": kept.factor == self.pace,
        }
        return tuple(name for name, equal in same.items() if not equal)


@dataclass(frozen=True, slots=True)
class RunStore(Generic[Result]):
    """Results in a folder by trial name; finished ones are not computed again.

    ``read`` returns the result at a path, ``None`` if it is missing or incomplete.
    """

    folder: Path
    read: Callable[[Path], Result | None]
    suffix: str = ""

    def place(self, name: str) -> Path:
        """The path of the result of that name, which need not exist yet."""
        return self.folder / f"{name}{self.suffix}"

    def finished(self, name: str) -> Result | None:
        """The result of that name, ``None`` if it is not finished."""
        return self.read(self.place(name))

    @contextmanager
    def stage(self, name: str) -> Iterator[Path]:
        """A temporary place to write a result to, removed unless it is kept."""
        with stage(self.place(name)) as place:
            yield place

    def add(self, name: str, write: Callable[[Path], object]) -> Result | None:
        """Write and store a result; if another process has stored one meanwhile, that one is kept and returned."""
        with self.stage(name) as place:
            write(place)
            return self.keep(place, name)

    def keep(self, place: Path, name: str, *, again: bool = False) -> Result | None:
        """Move a staged result to its place; if another process has finished it meanwhile, return that one instead.

        With ``again`` it replaces any result.
        """
        if not again and (first := self.finished(name)) is not None:
            return first
        overwrite(place, self.place(name))
        return None


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run of any suite with its stream and verdict; the commands ``check`` and ``report`` read its folder."""

    run: Run
    stream: Sequence[StreamElement]
    verdict: Verdict

    def keep(self, folder: Path) -> None:
        """Write the run folder atomically, replacing an existing one; OSError, RunError."""
        from streamgauge.formats.run import write_run, write_verdict
        from streamgauge.formats.stream import write

        folder.parent.mkdir(parents=True, exist_ok=True)
        with stage(folder) as place:
            write_run(place, self.run)
            write(self.stream, place / "stream.parquet")
            write_verdict(place, self.verdict)
            overwrite(place, folder)


def made_once(target: Path, make: Callable[[Path], object]) -> Path:
    """Create a file or folder unless it exists, atomically; concurrent callers must create the same content."""
    # Only a saving: ``put_if_absent`` decides when two processes come here together.
    if not target.exists():
        with stage(target) as place:
            make(place)
            put_if_absent(place, target)
    return target
