"""The page of one run: verdict, measures, query, semantics, commands; and the report's page about the run."""

import shlex
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from streamgauge.formats.run import RunError, read_header, read_run, read_verdict
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.query import parse
from streamgauge.report import cards
from streamgauge.report.document import RunConditions, conditions, document
from streamgauge.report.plots import plots
from streamgauge.report.series import series_of
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.rooms.runs.experiment_page import experiment_text
from streamgauge.workbench.rooms.runs.folder import BenchError, Stamp, inside, refuse_large, stamp
from streamgauge.workbench.rooms.runs.run_list import read_object

SECONDS: Final = 20.0
"""CPU seconds that reading and drawing a run may take."""

GROWTH: Final = 2 * 2**30
"""Bytes by which the process may grow meanwhile."""

TOGETHER: Final = 40
"""Runs on one page of the report."""

KEPT: Final = 16
"""Pages of reports that are kept until their runs change."""

REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The report's page runs no script and loads nothing: what its own head says, as a header."""

_NO_VERDICT: Final = Verdict(Judgement.UNKNOWN, None, None, 0.0, 0.0, 0, 0, 0, None, (), ())

TABLES: Final = ("answers", "rows", "fed", "samples", "static", "windows")


@dataclass(frozen=True, slots=True)
class RunView:
    """The parts of a run's page; ``card`` is ``None`` for a run that is not judged."""

    header: RunHeader
    verdict: Verdict | None
    card: cards.Card | None
    about: RunConditions
    commands: Sequence[tuple[str, str]]
    experiment: str


def view(root: Path, place: str, reproduce: Callable[[RunHeader], str]) -> RunView:
    """The page of a run; MistakeError for one that cannot be read. ``reproduce`` gives the command that does it again.

    The command is empty where the folder has no experiment file that makes such a run: then the page has its text.
    """
    folder = inside(root, place)
    stamp(folder)
    with DEADLINES.within(SECONDS, GROWTH):
        read_object(folder / "run.json", "streamgauge run")
        header = read_header(folder, parse)
        verdict = verdict_of(folder)
        series = series_of([(Run(header, (), (), ()), verdict or _NO_VERDICT)])
        card = cards.cards(series)[0] if verdict else None
        again = reproduce(header)
        text = "" if again else experiment_text(header)
        return RunView(header, verdict, card, conditions(series)[0], commands(place, again, verdict), text)


def verdict_of(folder: Path) -> Verdict | None:
    """The verdict that a run folder keeps, ``None`` where it is not judged; MistakeError for a damaged one."""
    if not (folder / "verdict.json").exists():
        return None
    refuse_large(folder, ["windows"])
    return read_verdict(folder)


def commands(place: str, again: str, verdict: Verdict | None) -> list[tuple[str, str]]:
    """Commands about a run, to be called in the folder of the workbench: the purpose of each, and its line."""
    path = shlex.quote(place or ".")
    wrong = verdict is not None and verdict.judgement is Judgement.WRONG
    return [
        *([("Record and judge such a run again", again)] if again else []),
        ("Judge it again", f"streamgauge check {path}"),
        *([("Find out why it is wrong", f"streamgauge explain {path}")] if wrong else []),
        ("Write its report", f"streamgauge report {path} --out report.html"),
    ]


def judged(root: Path, place: str) -> tuple[Run, Verdict]:
    """A run with all its tables and its verdict; MistakeError for one that is damaged, too large or not judged."""
    folder = inside(root, place)
    stamp(folder)
    read_object(folder / "run.json", "streamgauge run")
    refuse_large(folder, TABLES)
    verdict = verdict_of(folder)
    if verdict is None:
        raise RunError(f"{place or 'this run'} is not judged yet: judge it first")
    return read_run(folder, parse), verdict


class Reports:
    """The report's pages of runs, kept until the files of a run change. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, Lock()
        self._kept: OrderedDict[tuple[str, ...], tuple[list[Stamp], str]] = OrderedDict()

    def page(self, places: tuple[str, ...], title: str) -> str:
        """The page of judged runs; MistakeError."""
        if len(places) > TOGETHER:
            raise BenchError(f"these are {len(places):,} runs: streamgauge report makes a page of more than {TOGETHER}")
        with self._lock:
            now = [stamp(inside(self._root, place)) for place in places]
            kept = self._kept.get(places)
            if kept is not None and kept[0] == now:
                self._kept.move_to_end(places)
                return kept[1]
            plots()  # imports, which may not be stopped in their midst
            with DEADLINES.within(SECONDS, GROWTH):
                text = document([judged(self._root, place) for place in places], title)
            self._kept[places] = now, text
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return text
