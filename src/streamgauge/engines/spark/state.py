"""What the engine knows after each micro-batch, one JSON file a batch, written whole or not at all.

A batch that is done again after a crash starts from the record of the batch before it, so it does the same again.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge.formats.tables import not_written
from streamgauge.model.report import DueReport, View

KEPT = 100
"""How many batches' records stay, as many as Spark keeps of its own."""


@dataclass(frozen=True, slots=True)
class Pane:
    """Where the rows of one batch are (Parquet files), which times (ms) they span, and what was counted over them.

    ``counted`` has the triples of each predicate of the query, ``ends`` says whether elements may end by themselves,
    ``stream`` which one all rows are of, if there is one.
    """

    batch: int
    first: int
    last: int
    files: tuple[str, ...]
    counted: tuple[int, ...] = ()
    ends: bool = False
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """Times in ms: ``greatest`` seen, ``passed`` up to where reports are done; ``sent`` counts reports.

    ``last`` is the report that was evaluated last, which Istream and Dstream compare with; ``rows`` and ``late``
    count triples and elements since the start; ``next`` is the least sequence number of what is still to come.
    """

    batch: int = -1
    t0: int | None = None
    greatest: int | None = None
    passed: int | None = None
    last: DueReport | None = None
    sent: int = 0
    rows: int = 0
    late: int = 0
    next: int = 0
    panes: tuple[Pane, ...] = ()


@dataclass(frozen=True)
class StateLog:
    """The records of a checkpoint folder."""

    folder: Path

    def before(self, batch: int) -> State:
        """What was known when batch ``batch`` began: after the batch before it, and its drain if there was one."""
        for name in (f"{batch - 1:06}-drained.json", f"{batch - 1:06}.json"):
            if (file := self.folder / name).exists():
                return _state(json.loads(file.read_text(encoding="utf-8")))
        if batch > 0:
            raise FileNotFoundError(
                2, "the record of the batch before is missing: the checkpoint is damaged", str(file)
            )
        return State()

    def latest(self) -> State:
        """What is known now."""
        numbers = [int(file.stem.removesuffix("-drained")) for file in self.folder.glob("[-0-9]*.json")]
        return self.before(max(numbers) + 1) if numbers else State()

    def commit(self, state: State, name: str = "") -> None:
        """Keep what is known after a batch; TableError when the disk is full."""
        file = self.folder / f"{state.batch:06}{name}.json"
        unfinished = file.with_name(f".{file.name}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps(asdict(state)), encoding="utf-8")
            unfinished.replace(file)
        except OSError as error:
            raise not_written(file, error) from error
        for old in (f"{state.batch - KEPT:06}.json", f"{state.batch - KEPT:06}-drained.json"):
            (self.folder / old).unlink(missing_ok=True)


def forget(state: State, wanted: int) -> State:
    """The state without the panes that are over before ``wanted`` (ms)."""
    return replace(state, panes=tuple(pane for pane in state.panes if pane.last >= wanted))


def _state(data: dict[str, Any]) -> State:
    last = data.pop("last")
    panes = tuple(
        Pane(**(pane | {name: tuple(pane[name]) for name in ("files", "counted")})) for pane in data.pop("panes")
    )
    report = last and DueReport(last["instant"], tuple(View(**view) for view in last["views"]))
    return State(**data, last=report, panes=panes)
