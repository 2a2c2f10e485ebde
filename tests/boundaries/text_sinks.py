"""Every sink of text for people, fed with hostile terms: the text that it gives."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from streamgauge.formats.stream import write
from streamgauge.model.tabular import html_table
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.report import junit, markdown, page, tables
from streamgauge.report.comparison.changes import Tolerances, compared
from streamgauge.report.comparison.formats import markdown as comparison_markdown
from streamgauge.report.comparison.measurements import Measurements, RunMeasurement
from streamgauge.report.exports import alone
from streamgauge.report.timeline import drawn
from streamgauge.semantics.profiles import RSPQL
from streamgauge.timelines import TimelinePicture
from tests.notation import stream
from tests.oracle.runs import right_run

HOSTILE: Final = "x\x1b]0;PWN\x07\x1b[2J\x9b31mred\u202eevil\u2066\u2028\x85\rFAKE"
"""What a stranger may put into a term: a terminal's title, a clear screen, a colour, another direction."""

FIGURE: Final = (
    f'<svg class="plot wide" viewBox="0 0 9 9" role="img" aria-label="{HOSTILE}"><text>{HOSTILE}</text></svg>'
)

TERM: Final = json.dumps(HOSTILE, ensure_ascii=False)
TEXT: Final = " | ".join(f"{t}: s{t % 3} p {t}f." for t in range(12))


@cache
def judged() -> tuple[Any, Verdict]:
    """A run with hostile rows and a hostile failure, and its verdict."""
    run = right_run(RSPQL, text=TEXT, advance=12, sparql="SELECT ?s ?o { ?s <urn:p> ?o }")
    hostile = [replace(answer, added=((TERM, TERM), *answer.added)) for answer in run.answers]
    header = replace(run.header, failure=f"it failed: {HOSTILE}", engine="live")
    run = replace(run, header=header, answers=tuple(hostile))
    with TemporaryDirectory() as scratch:
        write(stream(TEXT), Path(scratch) / "part-0.parquet")
        return run, judge_run(run, Path(scratch), Means(lambda: None, "definition"))  # type: ignore[arg-type, return-value]


def _comparison() -> str:
    run = RunMeasurement(HOSTILE, "live", "rspql", 1, Judgement.RIGHT, 0, 1, 0)
    return comparison_markdown(compared(Measurements((run,)), Measurements((run,)), Tolerances()))


SINKS: Final[dict[str, Callable[[], str]]] = {
    "report in HTML": lambda: page([judged()], HOSTILE),
    "Markdown": lambda: markdown.page([judged()], HOSTILE),
    "JUnit": lambda: junit.page([judged()], datetime(2026, 1, 1, tzinfo=UTC)),
    "comparison in Markdown": _comparison,
    "timeline in SVG": lambda: drawn(HOSTILE, (), 10),
    "picture in a notebook": lambda: TimelinePicture("<svg/>", HOSTILE)._repr_html_(),
    "table in a notebook": lambda: html_table((HOSTILE,), ((HOSTILE,),), HOSTILE),
    "table of runs in CSV": lambda: tables.csv_table([judged()]),
    "tables of runs in LaTeX": lambda: tables.latex_tables([judged()], HOSTILE),
    "figure in SVG": lambda: alone(FIGURE, ((0, HOSTILE), (1, HOSTILE))),
}
"""The text of each sink that is not the console's."""
