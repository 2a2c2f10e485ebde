"""Twenty ways to put a value under another's heading, and whether a quick test sees each.

``python -m tests.report.swapped_headings`` tries them all in a copy of the sources (about five minutes); ``make prove``
does so too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
QUICK = "tests/report/test_headings.py"


class Swap(NamedTuple):
    """Two texts of a file of the report or the workbench that change places."""

    file: str
    one: str
    other: str


MEASURES, SEPBM, CAPACITY = "report/measures.py", "report/sepbm.py", "report/capacity.py"
LIST, TEXT = "workbench/rooms/runs/run_list.py", "report/text.py"
TABLE = "report/templates/page.html.j2"
SWAPS = (
    Swap(MEASURES, "_scored(run, run.precision)", "_scored(run, run.recall)"),
    Swap(MEASURES, "lambda run: run.missed", "lambda run: run.surplus"),
    Swap(MEASURES, "lambda run: run.surplus", "lambda run: run.late"),
    Swap(MEASURES, "lambda run: median_delay(run.windows)", "lambda run: run.max_delay"),
    Swap(MEASURES, "lambda run: run.max_delay", "lambda run: run.last_answer"),
    Swap(MEASURES, "lambda report: report.window.precision", "lambda report: report.window.recall"),
    Swap(MEASURES, "lambda report: report.window.expected", "lambda report: report.window.actual"),
    Swap(MEASURES, "lambda report: report.window.actual", "lambda report: report.window.content"),
    Swap(MEASURES, "lambda report: report.window.content", "lambda report: report.window.undecided"),
    Swap(MEASURES, '"missed", lambda', '"reports", lambda'),
    Swap(LIST, "lambda line: line.precision", "lambda line: line.recall"),
    Swap(LIST, 'Measure("precision"', 'Measure("recall"'),
    Swap(CAPACITY, "lambda probe: probe.precision", "lambda probe: probe.recall"),
    Swap(CAPACITY, "lambda probe: probe.p99", "lambda probe: probe.slowest"),
    Swap(CAPACITY, "lambda probe: probe.slowest", "lambda probe: probe.feeder"),
    Swap(SEPBM, "lambda scored: scored.missed", "lambda scored: scored.surplus"),
    Swap(SEPBM, '_time("p50")', '_time("p99")'),
    Swap(TEXT, 'for line in (("precision", "recall")', 'for line in (("recall", "precision")'),
    Swap("report/cards.py", "percent(verdict.precision)", "percent(verdict.recall)"),
    Swap(
        TABLE,
        "{{ line.state }}</td>{% for cell in line.cells %}",
        "{{ line.state }}</td>{% for cell in line.cells | reverse %}",
    ),
)


def swapped(swap: Swap, text: str) -> str:
    """A text with both parts in each other's place; only one for the other where the other is nowhere."""
    assert swap.one in text, swap
    mark = "\0"
    return text.replace(swap.one, mark).replace(swap.other, swap.one).replace(mark, swap.other)


def survivors() -> Iterator[Swap]:
    """The swaps that no quick test sees."""
    with tempfile.TemporaryDirectory() as scratch:
        package = shutil.copytree(ROOT / "src", Path(scratch) / "src") / "streamgauge"
        assert _passes(package.parent), "the quick tests fail without a swap"
        for swap in SWAPS:
            file = package / swap.file
            before = file.read_text(encoding="utf-8")
            file.write_text(swapped(swap, before), encoding="utf-8")
            if _passes(package.parent):
                yield swap
            file.write_text(before, encoding="utf-8")


def _passes(sources: Path) -> bool:
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", QUICK]
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    return done.returncode == 0


if __name__ == "__main__":
    found = list(survivors())
    print(f"{len(SWAPS) - len(found)} of {len(SWAPS)} are seen")
    for each in found:
        print(each)
    sys.exit(bool(found))
