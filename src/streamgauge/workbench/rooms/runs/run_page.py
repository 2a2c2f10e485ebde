"""The page of one run: verdict, measures, query, semantics, commands."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from markupsafe import Markup

from streamgauge.formats.run import RunError, read_header, read_run, read_verdict
from streamgauge.model.phrases import counted
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.query import parse
from streamgauge.report import cards
from streamgauge.report.document import RunConditions, conditions
from streamgauge.report.numbers import NOTHING, interval, scope_borders
from streamgauge.report.series import series_of, state, unit_of
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.rooms.runs.experiment_page import experiment_text
from streamgauge.workbench.rooms.runs.folder import inside, refuse_large, stamp
from streamgauge.workbench.rooms.runs.run_list import read_object

WRONG: Final = 12
"""Maximum wrong windows on the page of a run; its report lists all."""

SECONDS: Final = 20.0
"""CPU seconds that reading and drawing a run may take."""

GROWTH: Final = 2 * 2**30
"""Bytes by which the process may grow meanwhile."""

Draw: TypeAlias = Callable[[RunHeader, Verdict], Markup]
"""Draws the timeline of a run."""

_NO_VERDICT: Final = Verdict(Judgement.UNKNOWN, None, None, 0.0, 0.0, 0, 0, 0, None, (), ())

TABLES: Final = ("answers", "rows", "fed", "samples", "static", "windows")


@dataclass(frozen=True, slots=True)
class WrongWindow:
    """A judged report that is not right: its name, state, a description of the fault, and its verdict."""

    name: str
    state: str
    difference: str
    verdict: WindowVerdict


@dataclass(frozen=True, slots=True)
class RunView:
    """The parts of a run's page; ``card`` is ``None`` for a run that is not judged.

    ``wrong`` are the first of its reports that are not right, ``wrongs`` how many there are; ``picture`` is the
    timeline of all.
    """

    header: RunHeader
    verdict: Verdict | None
    card: cards.Card | None
    about: RunConditions
    commands: Sequence[tuple[str, str]]
    experiment: str
    wrong: Sequence[WrongWindow]
    wrongs: int
    picture: Markup


def view(root: Path, place: str, reproduce: Callable[[RunHeader], str], draw: Draw) -> RunView:
    """The page of a run; MistakeError for one that cannot be read. ``reproduce`` gives the command that does it again.

    The command is empty where the folder has no experiment file that makes such a run: then the page has its text.
    """
    folder = inside(root, place)
    stamp(folder)
    with DEADLINES.within(SECONDS, GROWTH):
        read_object(folder / "run.json", "streamgauge run")
        # Without tables: the page shows the verdict, which has its own.
        header = read_header(folder, parse)
        verdict = verdict_of(folder)
        # A series needs a verdict; where there is none, no card is shown.
        series = series_of([(Run(header, (), (), ()), verdict or _NO_VERDICT)])
        card = cards.cards(series)[0] if verdict else None
        again = reproduce(header)
        text = "" if again else experiment_text(header)
        wrong = [window for window in verdict.windows if state(window) not in ("right", "late")] if verdict else []
        shown = [_wrong(header, window) for window in wrong[:WRONG]]
        picture = draw(header, verdict) if verdict else Markup("")
        lines, about = commands(place, again, verdict), conditions(series)[0]
        return RunView(header, verdict, card, about, lines, text, shown, len(wrong), picture)


def _wrong(header: RunHeader, window: WindowVerdict) -> WrongWindow:
    borders = scope_borders(header.query, header.semantics)
    scope = interval(window.start, window.end, borders)
    name = f"{unit_of(header.semantics)} {window.index:,}" + (f", {scope}" if window.start is not None else "")
    counts = {"missing": window.expected - window.true_positives, "surplus": window.actual - window.true_positives}
    rows = [f"{counted(count, 'row')} {side}" for side, count in counts.items() if count]
    return WrongWindow(name, state(window), ", ".join(rows) or NOTHING, window)


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
