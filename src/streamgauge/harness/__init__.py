"""The harness: a trial is known by its fields; the store has the result of a trial whole or not at all.

``systems`` are under test, ``pace`` feeds them, ``process`` and ``resources`` are of the programs that are started.
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
    """One planned run; its identity are these fields, never what was found.

    ``workload`` are the fields that tell its stream from another (name, seed, parameters, a digest of files), ``pace``
    is event time over wall time, ``None`` as fast as possible. ``static``: the workload makes the static data, which
    then belong to no query. ``point`` has the values that tell the trial's variant of an experiment from the others.
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
        """A folder name that is the same whenever the trial is."""
        own = "".join(f"-{name}={value}" for name, value in sorted(self.options.items()))
        point = "".join(f"-{name}={value}" for name, value in self.point.items())
        name = f"{self.system}{own}-{self.semantics.name}{point}-seed{self.seed}-{self.repetition}"
        return name.replace("/", "_").replace("\0", "_")

    def differences(self, kept: RunHeader) -> tuple[str, ...]:
        """The fields, by their keys in an experiment file, in which a recorded run is not one of this trial."""
        before = {name: value for name, value in kept.workload.items() if name != "triples"}
        now = dict(self.workload)
        if "content" not in before:  # recorded before files were told apart by their content
            now.pop("content", None)
        same_static = self.static or kept.query.static == self.query.query.static
        same = {
            "workload": before == now,
            "query": kept.query_text == self.query.text and same_static,
            "semantics": replace(kept.semantics, t0=self.semantics.t0) == self.semantics,
            "engine.options": dict(kept.options) == dict(self.options),
            "feed.pace": kept.factor == self.pace,
        }
        return tuple(name for name, equal in same.items() if not equal)


@dataclass(frozen=True, slots=True)
class RunStore(Generic[Result]):
    """Results in a folder by the names of their trials; what is finished is not done again.

    ``read`` gives the result at a place, ``None`` where there is none that is whole.
    """

    folder: Path
    read: Callable[[Path], Result | None]
    suffix: str = ""

    def place(self, name: str) -> Path:
        """The path of the result of that name, which may be still to come."""
        return self.folder / f"{name}{self.suffix}"

    def finished(self, name: str) -> Result | None:
        """The result of that name, ``None`` where it is still to be done."""
        return self.read(self.place(name))

    @contextmanager
    def stage(self, name: str) -> Iterator[Path]:
        """A place to write a result to, which goes unless it is kept."""
        with stage(self.place(name)) as place:
            yield place

    def add(self, name: str, write: Callable[[Path], object]) -> Result | None:
        """Write a result and keep it; where another process finished it meanwhile, that one stays, and is given."""
        with self.stage(name) as place:
            write(place)
            return self.keep(place, name)

    def keep(self, place: Path, name: str, *, again: bool = False) -> Result | None:
        """Put a staged result in its place; where another process finished it meanwhile, that one stays, and is given.

        ``again``: it replaces any result.
        """
        if not again and (first := self.finished(name)) is not None:
            return first
        overwrite(place, self.place(name))
        return None


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run of any suite with the stream that was fed and its verdict: ``check`` and ``report`` take its folder."""

    run: Run
    stream: Sequence[StreamElement]
    verdict: Verdict

    def keep(self, folder: Path) -> None:
        """Write the run folder whole, in the place of any that was there; OSError and RunError where it cannot be."""
        from streamgauge.formats.run import write_run, write_verdict
        from streamgauge.formats.stream import write

        folder.parent.mkdir(parents=True, exist_ok=True)
        with stage(folder) as place:
            write_run(place, self.run)
            write(self.stream, place / "stream.parquet")
            write_verdict(place, self.verdict)
            overwrite(place, folder)


def made_once(target: Path, make: Callable[[Path], object]) -> Path:
    """A file or folder that is the same whoever makes it, made in a place beside unless it is there."""
    if not target.exists():
        with stage(target) as place:
            make(place)
            put_if_absent(place, target)
    return target
