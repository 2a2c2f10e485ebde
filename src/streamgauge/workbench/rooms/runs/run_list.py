"""The list of runs: a row per run from its files, cached until they change; filters and sorting.

A row is read from two JSON files and two columns, so that a folder of 100 runs takes a fraction of a second. A run
that cannot be read is a row with the reason.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

import pyarrow.compute as pc

from streamgauge.formats.run import FORMAT, UNFINISHED, VERSION
from streamgauge.formats.seals import SealError, unseal
from streamgauge.model.mistake import MistakeError
from streamgauge.model.verdict import Judgement
from streamgauge.report.measures import Measure, texts
from streamgauge.report.numbers import NOTHING, duration, mebibytes, number, percent
from streamgauge.workbench.rooms.runs.folder import RUNS, BenchError, Stamp, column, inside, read_text, stamp

NOT_JUDGED: Final = "not judged"
DAMAGED: Final = "damaged"
STATES: Final = (*(judgement.value for judgement in Judgement), NOT_JUDGED, DAMAGED)
"""The verdicts by which runs are filtered."""

ICONS: Final = {"right": "right", "right but late": "late", "wrong": "wrong", DAMAGED: "missed"}

PAGE: Final = 100
"""Runs on a page of the list."""

LATEST: Final = 250_000_000_000
"""The latest time of a file (s since 1970) that is written as a date: the year 9892."""

LETTERS: Final = 120
"""Of a text in a cell."""

_HIDDEN = frozenset(("name", "seed", "triples", "content", "notes"))
"""Fields of a workload that its short text leaves out."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list; ratios are 0 to 1, ``delay`` is the median in ms, ``memory`` the peak in bytes, ``cpu`` in s.

    ``recorded`` is the modification time of its header, s since 1970; ``sentence`` supplements the verdict: its reason,
    a failure of the engine, damage. ``query`` is the query's name; ``asked`` has a digest of the whole ``query`` and of
    the ``stream``, by which comparable runs are found.
    """

    place: str
    state: str
    sentence: str = ""
    experiment: str = ""
    engine: str = ""
    semantics: str = ""
    workload: str = ""
    seed: str = ""
    precision: float | None = None
    recall: float | None = None
    delay: float | None = None
    memory: float | None = None
    cpu: float | None = None
    recorded: float = 0.0
    query: str = ""
    pace: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.place.rpartition("/")[2] or "this folder"

    @property
    def judged(self) -> bool:
        """Whether it has a verdict."""
        return self.state not in (NOT_JUDGED, DAMAGED)

    @property
    def above(self) -> str:
        """The folders that lead to it."""
        return self.place.rpartition("/")[0]

    @property
    def address(self) -> str:
        """The place as a part of an address."""
        return quote(self.place)

    @property
    def icon(self) -> str:
        """The icon of its verdict."""
        return ICONS.get(self.state, "unknown")

    @property
    def day(self) -> str:
        """When it was recorded: day and minute, in UTC."""
        if not 0 < self.recorded < LATEST:
            return NOTHING
        return f"{datetime.fromtimestamp(self.recorded, UTC):%Y-%m-%d %H:%M}"

    @property
    def cells(self) -> tuple[str, ...]:
        """The measures as the list shows them."""
        return texts(MEASURES.values(), self)

    @property
    def measures(self) -> list[tuple[str, str]]:
        """The measures with their headings."""
        return [(measure.heading, measure.text(self)) for measure in MEASURES.values()]


MEASURES: Final[Mapping[str, Measure[RunLine]]] = {
    "precision": Measure("precision", lambda line: line.precision, percent),
    "recall": Measure("recall", lambda line: line.recall, percent),
    "delay": Measure("median delay", lambda line: line.delay, duration),
    "memory": Measure("memory", lambda line: line.memory, lambda size: NOTHING if size is None else mebibytes(size)),
    "cpu": Measure("CPU", lambda line: line.cpu, lambda took: NOTHING if took is None else f"{number(took)} s"),
}
"""The columns of measures, by the name of their order."""


class RunLines:
    """The lines of a folder's runs, made once for each state of their files. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, Lock()
        self._made: dict[str, tuple[Stamp, RunLine]] = {}

    def of(self, places: Iterable[str]) -> list[RunLine]:
        """The lines of runs by their places."""
        with self._lock:
            lines = {place: self._line(place) for place in places}
            # Runs that were removed from the folder are forgotten, but not one by one at each look.
            if len(self._made) > 2 * RUNS:
                self._made = {place: kept for place, kept in self._made.items() if place in lines}
        return list(lines.values())

    def _line(self, place: str) -> RunLine:
        try:
            folder = inside(self._root, place)
            now = stamp(folder)
        except BenchError as error:
            return RunLine(place, DAMAGED, cut(str(error)))
        kept = self._made.get(place)
        if kept is not None and kept[0] == now:
            return kept[1]
        line = _line_of(folder, place, now)
        self._made[place] = now, line
        return line


def _line_of(folder: Path, place: str, now: Stamp) -> RunLine:
    recorded = next((changed / 1e9 for name, changed, _ in now if name == "run.json"), 0.0)
    try:
        return _read(folder, place, recorded)
    except MistakeError as error:
        sentence = str(error).replace(f"{folder}/", "").replace(str(folder), "it")
        return RunLine(place, DAMAGED, cut(sentence, 300), recorded=recorded)


def _read(folder: Path, place: str, recorded: float) -> RunLine:
    """The line of a run whose files are plain ones; MistakeError for a damaged one."""
    data = read_object(folder / "run.json", FORMAT)
    header = _table(data, "header", "run.json")
    verdict = _verdict(folder)
    failure = header.get("failure") or ("" if data.get("finished", True) else UNFINISHED)
    # Single columns and no run: a list of hundreds of runs must open at once.
    memory = column(folder, "samples", "rss")
    workload = header.get("workload") or {}
    semantics = header.get("semantics")
    state = str(verdict.get("judgement", NOT_JUDGED))
    if state not in STATES:
        raise BenchError(f"verdict.json: the judgement {state!r:.60} is none")
    delay = column(folder, "windows", "delay") if verdict else None
    # A run with an unknown verdict and no windows has 0 for precision and recall, which means nothing.
    scored = state != Judgement.UNKNOWN or (delay is not None and len(delay) > 0)
    return RunLine(
        place,
        state,
        cut(f"The engine failed: {failure}" if failure else _text(verdict.get("reason")), 300),
        _text(header.get("experiment")),
        _text(header.get("engine")),
        _text(semantics.get("name")) if isinstance(semantics, dict) else "",
        workload_text(workload) if isinstance(workload, dict) else "",
        _text(workload.get("seed")) if isinstance(workload, dict) else "",
        _number(verdict.get("precision")) if scored else None,
        _number(verdict.get("recall")) if scored else None,
        None if delay is None else _number(pc.quantile(delay.drop_null(), 0.5)[0].as_py()),
        None if memory is None else _number(pc.max(memory).as_py()),
        _number(header.get("cpu")),
        recorded,
        _text(header.get("query_name")),
        _pace(header.get("factor")),
        {"query": _digest(header.get("query_text")), "stream": _digest(_stream(workload))},
    )


def _pace(factor: object) -> str:
    """The pace of a run in words."""
    value = _number(factor)
    return "fast" if value is None else "real time" if value == 1 else f"{value:g} times real time"


def _stream(workload: object) -> object:
    """The fields of a workload that tell its stream from others."""
    table = workload if isinstance(workload, dict) else {}
    return {name: value for name, value in table.items() if name not in ("notes", "triples")}


def _digest(value: object) -> str:
    """Letters that are the same for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _verdict(folder: Path) -> Mapping[str, Any]:
    """The fields of the verdict, none where the run is not judged."""
    file = folder / "verdict.json"
    return _table(read_object(file, "streamgauge verdict"), "verdict", file.name) if file.exists() else {}


def read_object(file: Path, form: str) -> Mapping[str, Any]:
    """The JSON object of a format in a file; BenchError says what else the file is."""
    try:
        data = json.loads(read_text(file))  # a ValueError of its own for a number of thousands of digits
        data = unseal(data, file.name) if isinstance(data, dict) else data
    except SealError as error:
        raise BenchError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{file.name}: not readable JSON: was it changed by hand, or cut?") from error
    if not isinstance(data, dict) or data.get("format") != form or data.get("version") != VERSION:
        raise BenchError(f"{file.name}: expected {form!r}, version {VERSION}: this is another kind of file")
    return data


def _table(data: Mapping[str, Any], name: str, file: str) -> Mapping[str, Any]:
    table = data.get(name)
    if not isinstance(table, dict):
        raise BenchError(f"{file}: field {name} is missing")
    return table


def _text(value: object) -> str:
    return "" if value is None else cut(str(value))


def _number(value: object) -> float | None:
    # In Python, True is an int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        parsed = float(value)
    except OverflowError:
        return None
    return parsed if math.isfinite(parsed) else None


def cut(text: str, letters: int = LETTERS) -> str:
    """A text of at most this many characters; lone surrogates, which a page cannot contain, are escaped."""
    text = text[: letters + 1].encode(errors="backslashreplace").decode()
    return text if len(text) <= letters else f"{text[:letters]}…"


def workload_text(workload: Mapping[str, object]) -> str:
    """A workload in short: ``weather, stations 50, duration 30s``."""
    settings = [f"{key} {value}" for key, value in list(workload.items())[:20] if key not in _HIDDEN]
    name = ", ".join(part.rpartition("/")[2] for part in cut(str(workload.get("name", "")), 1000).split(", "))
    return cut(", ".join([name, *map(cut, settings)]))


SORTS: Final[Mapping[str, Callable[[RunLine], Any]]] = {
    "recorded": lambda line: line.recorded,
    "verdict": lambda line: STATES.index(line.state),
    "run": lambda line: line.place.casefold(),
    "engine": lambda line: line.engine.casefold(),
    "semantics": lambda line: line.semantics.casefold(),
    "workload": lambda line: line.workload.casefold(),
    # Texts of equal length sort like numbers: 7 is 00000000000000000007, before 12.
    "seed": lambda line: line.seed.zfill(20),
    **{name: measure.value for name, measure in MEASURES.items()},
}
"""The orders of the list."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The state of the list, as its address has it: words, a verdict, an order (``-delay``: greatest first), a page.

    ``query`` and ``stream`` are digests of what all runs have in common, empty for any.
    """

    words: str = ""
    verdict: str = ""
    sort: str = "-recorded"
    page: int = 1
    query: str = ""
    stream: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "ListRequest":
        """Read the query of an address; unknown values are ignored."""
        verdict, sort, page = parameters.get("verdict", ""), parameters.get("sort", ""), parameters.get("page", "")
        return cls(
            cut(parameters.get("q", "")),
            verdict if verdict in STATES else "",
            sort if sort.removeprefix("-") in SORTS else "-recorded",
            max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
            *(cut(parameters.get(name, ""), 16) for name in ("query", "stream")),
        )


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of the list: its lines, how many runs fit the request, how many pages they are, the page's number."""

    lines: Sequence[RunLine]
    fitting: int
    pages: int
    number: int
    counts: Mapping[str, int] = field(default_factory=dict)


def matching(lines: Sequence[RunLine], wanted: ListRequest) -> list[RunLine]:
    """The runs that have all words, the query and the stream, of any verdict."""
    words = wanted.words.casefold().split()
    same = {name: digest for name, digest in (("query", wanted.query), ("stream", wanted.stream)) if digest}
    alike = [line for line in lines if all(line.asked.get(name) == digest for name, digest in same.items())]
    return [line for line in alike if all(word in _searched(line) for word in words)]


def listed(lines: Sequence[RunLine], wanted: ListRequest) -> RunPage:
    """The selected runs, sorted, those without the value last; ``counts`` by verdict."""
    having = matching(lines, wanted)
    fitting = [line for line in having if wanted.verdict in ("", line.state)]
    key = SORTS[wanted.sort.removeprefix("-")]
    # The second sort is stable, so that equal runs stay in order of their places, also in the reverse order.
    has = sorted((line for line in fitting if key(line) is not None), key=lambda line: line.place)
    has.sort(key=key, reverse=wanted.sort.startswith("-"))
    ordered = has + [line for line in fitting if key(line) is None]
    pages = max(1, -(-len(ordered) // PAGE))
    at = min(wanted.page, pages)
    # Counted before the verdict is chosen: the numbers beside the verdicts stay the same whichever is chosen.
    counts = {state: count for state in STATES if (count := sum(line.state == state for line in having))}
    return RunPage(ordered[(at - 1) * PAGE : at * PAGE], len(ordered), pages, at, counts)


def _searched(line: RunLine) -> str:
    fields = (
        line.place, line.experiment, line.engine, line.semantics, line.workload, line.seed, line.query, line.sentence,
    )  # fmt: skip
    return "\n".join(fields).casefold()
