"""Results of benchmarks: a JSON file each, with machine and commit, and one page of tables made of all of them.

python -m benchmarks.results              write RESULTS.md from results/*.json
python -m benchmarks.results --check      exit code 1 when RESULTS.md is not the page of these files
BENCHMARK_RECORD=1 python -m benchmarks.NAME    measure, and keep the tables in results/
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, TypeAlias

import psutil

HOME: Final = Path(__file__).parent
FILES: Final = HOME / "results"
PAGE: Final = HOME / "RESULTS.md"
RECORD: Final = "BENCHMARK_RECORD"
"""The variable under which benchmarks keep their tables in ``results/``."""

_REACHED: Final = {True: "reached", False: "not reached", None: ""}


@dataclass(frozen=True)
class Result:
    """A table of figures: what was measured, against what, which goal, and where it was measured by which command.

    ``ratio`` sums the table up; ``reached`` says whether the goal was, ``None`` where there is none. ``commit`` is the
    one that was measured, or for results from before this file the one that recorded them.
    """

    title: str
    what: str
    against: str
    ratio: str
    goal: str
    reached: bool | None
    command: str
    date: str
    commit: str
    machine: str
    load: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def load(name: str) -> Result:
    """The result of that name; FileNotFoundError where there is none."""
    return Result(**json.loads((FILES / f"{name}.json").read_text(encoding="utf-8")))


def save(name: str, result: Result) -> None:
    """Write a result's file, replacing what is there."""
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
    (FILES / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def machine() -> str:
    """Cores, memory and the versions of what figures depend on."""
    parts = [f"{os.cpu_count()} cores ({platform.machine()})", f"{psutil.virtual_memory().total >> 30} GB"]
    parts.append(f"Python {platform.python_version()}")
    for package in ("pyspark", "pyoxigraph"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


def commit() -> str:
    """The commit that is measured, with a plus sign where files differ from it; empty outside a checkout."""
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=HOME, capture_output=True, text=True
    )
    return process.stdout.strip()


Summary: TypeAlias = Callable[[Sequence[Sequence[str]]], tuple[str, bool]]
"""The sentence that sums up the rows of a result, and whether its goal is reached."""


def goals_reached(rows: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """A summary of rows whose last cell says of each goal that it is reached or not, behind the goal and a colon."""
    outcomes = [part.rpartition(": ")[2] for row in rows for part in row[-1].split("; ")]
    reached, missed = (sum(outcome.startswith(word) for outcome in outcomes) for word in ("reached", "not reached"))
    return f"{reached} of {reached + missed} goals", missed == 0 < reached


class ResultTable:
    """A table that is printed row by row as Markdown, and kept as a result where BENCHMARK_RECORD is set.

    ``part``: rows that were not measured stay, and a note says which were, by which command on which commit.
    ``summary`` gives the result's ``ratio`` and ``reached`` from all rows; without one they stay as they are.
    """

    def __init__(self, name: str, columns: Sequence[str], part: bool = False, summary: "Summary | None" = None) -> None:
        self._name, self._columns, self._part, self._summary = name, tuple(columns), part, summary
        self._rows: list[tuple[str, ...]] = []
        print(f"\n| {' | '.join(self._columns)} |\n|{'---|' * len(self._columns)}", flush=True)

    def add(self, *cells: object) -> None:
        """Print a row; ValueError where it has not as many cells as there are columns."""
        row = tuple(map(str, cells))
        if len(row) != len(self._columns):
            raise ValueError(f"{len(row)} cells for {len(self._columns)} columns of {self._name}: {row}")
        print(f"| {' | '.join(row)} |", flush=True)
        self._rows.append(row)

    def __enter__(self) -> "ResultTable":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and RECORD in os.environ:
            self._keep()

    def _keep(self) -> None:
        """Keep the rows with this machine, commit, load and command; title, goal and notes stay as they are."""
        try:
            before = load(self._name)
        except FileNotFoundError:
            before = Result(self._name, self._name, "", "", "", None, "", "", "", "", "", (), ())
        words = [f"python -m benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]
        now = {
            "command": " ".join(words), "date": datetime.now(UTC).date().isoformat(), "commit": commit(),
            "machine": machine(), "load": f"{os.getloadavg()[0]:.1f} at the end", "columns": self._columns,
            "rows": tuple(self._rows),
        }  # fmt: skip
        result = self._in_part(before, now) if self._part else replace(before, **now)  # type: ignore[arg-type]
        if self._summary is not None:
            ratio, reached = self._summary(result.rows)
            result = replace(result, ratio=ratio, reached=reached)
        save(self._name, result)

    def _in_part(self, before: Result, now: dict[str, object]) -> Result:
        """The result of before with the rows that were measured; ValueError for a row that it does not have."""
        rows, measured = {row[0]: row for row in before.rows}, {row[0]: row for row in self._rows}
        if measured.keys() - rows.keys() or self._columns != tuple(before.columns):
            raise ValueError(f"{self._name} has no such rows: {', '.join(measured)}")
        note = f"Measured later: {', '.join(measured)}, by `{now['command']}` ({now['date']}, commit {now['commit']}, "
        note += f"load {now['load']})."
        return replace(before, rows=tuple((rows | measured).values()), notes=(*before.notes, note))


def page(results: dict[str, Result]) -> str:
    """The page: an overview with a line for each result, then every table."""
    machines = list(dict.fromkeys(result.machine for result in results.values()))
    letters = {machine: chr(ord("A") + at) for at, machine in enumerate(machines)}
    head = (
        "# Results\n\nWritten by `python -m benchmarks.results` from `benchmarks/results/`, a file each; do not edit. "
        "Ratios come from one run with both sides in it; absolute times drift on a shared machine. A commit is the one "
        "that was measured, of results before 2026-11-23 the one that recorded them.\n"
    )
    kinds = [f"- Machine {letter}: {kind}" for kind, letter in letters.items()]
    columns = ("what", "against", "ratio", "goal", "", "machine, load", "date, commit", "command")
    lines = [_overview(result, letters[result.machine]) for result in results.values()]
    tables = [_table(result) for result in results.values()]
    return "\n".join([head, *kinds, "", *_markdown(columns, lines), "", *tables])


def _overview(result: Result, letter: str) -> list[str]:
    anchor = "".join(
        character for character in result.title.lower().replace(" ", "-") if character.isalnum() or character in "-_"
    )
    load = f"{letter}, {result.load}" if result.load else letter
    return [
        f"[{result.title}](#{anchor}): {result.what}", result.against, result.ratio, result.goal,
        _REACHED[result.reached], load, f"{result.date}, {result.commit}", f"`{result.command}`",
    ]  # fmt: skip


def _table(result: Result) -> str:
    notes = "".join(f"\n{note}\n" for note in result.notes)
    return "\n".join([f"## {result.title}\n", *_markdown(result.columns, result.rows), notes])


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]


def everything() -> dict[str, Result]:
    """All results by their names, sorted."""
    return {file.stem: load(file.stem) for file in sorted(FILES.glob("*.json"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    text = page(everything())
    if parser.parse_args().check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("" if same else "RESULTS.md is not the page of results/*.json: run python -m benchmarks.results")
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
