"""Replays of the query streamer in simulated time: every method, label, plan, cache setting and seed, answers judged.

A line of a log for each that is done; what is in the log is not done again, so that the same command goes on.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tests.servers.fragments.live_queries.simulated import run
from tests.servers.fragments.live_queries.test_replay import PLANS, replayed

from benchmarks.results import ResultTable
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.labels import Label, Style

SETTINGS = (*PLANS, ("streamer", "prototype"))
WHAT = ("minutes", "seed", "method", "label", "plan", "cache")


def wanted(minutes: int, seeds: int, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All replays, those of a seed together."""
    for seed, name, label, (plan, cache) in product(range(seeds), methods(), map(Label, labels), SETTINGS):
        yield dict(zip(WHAT, (minutes, seed, name, label.value, plan, cache), strict=True))


def done(wish: Mapping[str, Any]) -> dict[str, Any]:
    """One replay: its answers, those that differ from the definition, polls that failed, CPU of both sides (s)."""
    began = time.process_time()
    style = Style(wish["method"], Label(wish["label"]))
    answers, wrong, failed = run(replayed(style, wish["plan"], wish["cache"], wish["seed"], wish["minutes"]))
    cpu = round(time.process_time() - began, 2)
    return {**wish, "answers": answers, "wrong": list(map(repr, wrong)), "failed": len(failed), "cpu": cpu}


def kept(log: Path) -> list[dict[str, Any]]:
    """The replays in the log."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def main() -> None:
    """Do what is not in the log, then print what is."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("log", type=Path)
    reading.add_argument("--minutes", type=int, default=30)
    reading.add_argument("--seeds", type=int, default=20)
    reading.add_argument("--label", nargs="+", choices=list(Label), default=list(Label))
    reading.add_argument("--kept", action="store_true", help="do nothing, show what the log has")
    given = reading.parse_args()
    todo = list(wanted(given.minutes, given.seeds, given.label))
    there = {tuple(each[name] for name in WHAT) for each in kept(given.log)}
    for place, wish in enumerate(todo if not given.kept else ()):
        if tuple(wish[name] for name in WHAT) in there:
            continue
        found = done(wish)
        with given.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(f"{place + 1} of {len(todo)}: {found}", flush=True)
    _table(kept(given.log), len(todo))


def _table(found: list[dict[str, Any]], of: int) -> None:
    columns = ("plan", "cache", "label", "replays", "answers", "wrong", "failed polls", "CPU s each")
    with ResultTable("replays", columns) as table:
        _rows(found, table)
    print(f"{len(found)} of {of} replays")


def _rows(found: list[dict[str, Any]], table: ResultTable) -> None:
    for (plan, cache), label in product(SETTINGS, Label):
        rows = [each for each in found if (each["plan"], each["cache"], each["label"]) == (plan, cache, label.value)]
        if rows:
            wrong, answers, failed = (
                sum(each) for each in zip(*((len(r["wrong"]), r["answers"], r["failed"]) for r in rows), strict=True)
            )
            cpu = sum(each["cpu"] for each in rows) / len(rows)
            cells = (plan, cache, label.value, len(rows), answers, wrong, failed, f"{cpu:.1f}")
            table.add(*cells)


if __name__ == "__main__":
    main()
