"""Runs: everything observed while an engine answered a query on a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.model.answer import Answer, AnswerTable
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.tabular import html_table


@dataclass(frozen=True, slots=True)
class Fed:
    """The hand-over of an element: its application time (ms), the planned and the real end (monotonic ns).

    ``size`` counts its triples; an ``advance`` is a record with sequence -1 and size 0.
    """

    sequence: int
    time: int
    planned: int
    handed: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Resources of the engine's processes: monotonic ns, RSS bytes, share of the machine's memory, CPU %, threads."""

    at: int
    rss: int
    memory_percent: float
    cpu_percent: float
    threads: int


@dataclass(frozen=True)
class RunHeader:
    """The metadata of a run, without its tables.

    ``started`` is the monotonic ns of the feed's start, when the stream's time was ``begin`` (ms); ``advanced_to``
    (ms) is where it ended; ``evaluator`` names what computes the engine's answers, which may not judge it;
    ``factor`` is the pace (event time over wall time, ``None`` when fed as fast as possible); ``failure`` explains
    an engine that crashed, hung or flooded. ``workload`` and ``versions`` are free-form and printed in reports.
    ``options`` are those of the engine in its task; ``late`` is the number of elements that it reported as too late.
    ``cpu`` is the CPU time (s) of the engine's process tree from the feed's start to its end.
    ``ordered``: the rows of each answer are in the order in which the engine sent them.
    ``experiment`` names the experiment that planned the run, ``parameters`` are the values of its query's parameters,
    ``query_name`` is the query's name in the experiment: that of a workload's query, or of a file.
    """

    engine: str
    query: ContinuousQuery
    query_text: str
    dialect: str
    semantics: Semantics
    advanced_to: int
    started: int
    begin: int = 0
    evaluator: str | None = None
    factor: float | None = None
    workload: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    failure: str | None = None
    repetition: int = 1
    options: Mapping[str, object] = field(default_factory=dict)
    late: int = 0
    cpu: float | None = None
    experiment: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    ordered: bool = False
    query_name: str = ""


@dataclass(frozen=True)
class Run:
    """A header with all recorded tables, each in time order; ``folder`` is where the run was read from."""

    header: RunHeader
    answers: Sequence[Answer]
    fed: Sequence[Fed]
    samples: tuple[Sample, ...] = ()
    folder: Path | None = field(default=None, compare=False)

    def table(self) -> AnswerTable:
        """The rows of all answers as one table."""
        return AnswerTable(self.answers)

    def _repr_html_(self) -> str:
        """The engine, the stream and the outcome of a run, for notebooks."""
        header = self.header
        facts = {
            "engine": header.engine,
            "semantics": header.semantics.name,
            "workload": ", ".join(f"{name} {value}" for name, value in header.workload.items()),
            "elements": f"{sum(element.sequence >= 0 for element in self.fed):,}",
            "answers": f"{len(self.answers):,}",
            "time reached": f"{header.advanced_to:,} ms",
            "failure": header.failure,
        }
        rows = [(name, str(value)) for name, value in facts.items() if value]
        return html_table(("run", ""), rows)
