"""``make mutants``: how many changes of the oracle's source the quick tests notice.

The tests are collected once; every mutant is tried in a copy of that process. Which tests reach which lines is
measured once and kept in ``.mutants/``; after a change only those tests are measured again that reached a function
which has changed. The mutants of the last run are kept there too.
"""

import argparse
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest

import streamgauge
from tests.mutants.equivalent import entry, proofs
from tests.mutants.mutant import Mutant
from tests.mutants.mutations import MutableFile
from tests.mutants.reached import Reached, kept, measured, print_of, prints_of, told
from tests.mutants.sample import draw, files, texts
from tests.mutants.table import Ended, share, survivors, table
from tests.mutants.trial import Steady, Trials, Tried, fails, forked

FOLDERS = (
    *("streamgauge/oracle/judging", "streamgauge/oracle/worlds", "streamgauge/oracle/expected"),
    *("streamgauge/oracle/diagnosis", "streamgauge/oracle/diagnosis/faults", "streamgauge/semantics"),
)
WITHOUT = (
    *(f"streamgauge/oracle/expected/{name}.py" for name in ("on_spark", "extent", "in_tasks", "ranks", "stretches")),
    *(f"streamgauge/oracle/judging/{name}.py" for name in ("gracious_tables", "hand_overs", "instant_tasks", "tables")),
    "streamgauge/oracle/diagnosis/whole_run.py",
)
"""Files that only tests with a JVM reach, which are not run here."""
TESTS = (
    *("tests/oracle", "tests/semantics", "tests/conformance", "tests/sparql"),
    *("tests/papers/rules", "tests/harness/importing", "tests/suites/conformance"),
    "tests/engines/test_live_at_once.py",  # what grows and may be sent at once (semantics/growth.py)
    "tests/incremental/drivers/test_jumps.py",
)
"""The folders and files that concern the oracle."""
OPTIONS = (
    *("--quick", "--slow-too", "-q", "-s", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *(
        "--basetemp",
        ".mutants/tmp",
        "-o",
        "tmp_path_retention_policy=none",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ),
)
KEPT = Path(".mutants")
AT_ONCE = 400
"""Tests that are measured in one process."""


def parser() -> argparse.ArgumentParser:
    """What can be asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1, help="which are drawn")
    parser.add_argument("--least", type=float, default=95.0, help="the least share that is caught, in percent")
    parser.add_argument(
        "--most", type=float, default=20.0, help="seconds of tests without a mutant, the fastest, for each"
    )
    parser.add_argument("--file", action="append", default=[], help="only this file, as judging/align.py")
    parser.add_argument("tests", nargs="*", default=TESTS, help="only the tests of these files and folders")
    parser.add_argument("--again", action="store_true", help="try the survivors of the last run again")
    return parser


class Session:
    """A pytest plugin: tries the mutants in place of running the tests."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self.ended: list[Ended] = []
        self._sound: set[str] = set()  # tests that passed without a mutant in this state of the code
        self.sources = Path(streamgauge.__file__).parents[1]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """After the collection."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        originals = texts(self.sources, FOLDERS, WITHOUT)
        reached = self._reached(session.items, originals)
        drawn = self._drawn(files(originals, self._asked.file))
        known = proofs()
        trials = Trials(self.sources, session.items, reached.seconds, OPTIONS)
        gc.freeze()
        for mutant in drawn:
            before = originals[mutant.file]
            if mutant.key in known:
                tried = Tried("equivalent")
            else:
                tests = reached.tests(mutant.file, before, mutant.line)
                tests = reached.within(tests, self._asked.most)
                tried = trials.attempt(mutant, before, tests)
                self._refuse_broken(tried, session.items)
            self.ended.append(Ended(mutant, tried, before))
            print(f"{tried.ended:10} {mutant.file}:{mutant.line} {tried.by} {tried.ran or ''}", flush=True)
            if tried.ended == "survived":
                print(survivors(self.ended[-1:]), flush=True)
                keep([item.mutant for item in self.ended if item.tried.ended == "survived"])
        return True

    def _reached(self, items: Sequence[pytest.Item], mutable: Mapping[str, str]) -> Reached:
        path = KEPT / f"reached-{print_of([Path('tests')])}.json"
        result = kept(path).fresh(prints_of(item.nodeid for item in items)).moved(mutable)
        new = [item for item in items if item.nodeid not in result.seconds]
        self._sound = {item.nodeid for item in new}
        if new:
            print(f"{len(new)} tests are run once without a mutant", flush=True)
        for first in range(0, len(new), AT_ONCE):  # kept piece by piece: an interrupted run goes on where it was
            some = new[first : first + AT_ONCE]
            result.add(told(forked(lambda say: asdict(measured(some, self.sources, mutable, say)))))  # noqa: B023
            result.keep(path)
        if result.failed:
            raise pytest.UsageError(f"these tests fail without any mutant: {', '.join(result.failed)}")
        return result.only({item.nodeid for item in items})

    def _refuse_broken(self, tried: Tried, items: Sequence[pytest.Item]) -> None:
        """UsageError where the test that caught a mutant, measured in an earlier state, fails without one now."""
        if tried.ended != "caught" or tried.by in self._sound:
            return
        for item in (item for item in items if item.nodeid == tried.by):
            if forked(lambda _say: fails(item)) is not False:  # noqa: B023
                raise pytest.UsageError(f"this test fails without any mutant: {tried.by}")
            self._sound.add(tried.by)

    def _drawn(self, mutable: Sequence[MutableFile]) -> list[Mutant]:
        drawn = draw(mutable, self._asked.count, self._asked.seed)
        if self._asked.again:
            left = {tuple(key) for key in json.loads((KEPT / "survivors.json").read_text("utf-8"))}
            drawn = [item for item in drawn if item.key in left]
        Random(self._asked.seed).shuffle(drawn)  # so that an interrupted run has tried a sample of all files
        return drawn


def keep(survivors: Sequence[Mutant]) -> None:
    """For ``--again``, and as entries of ``equivalent.toml`` to be proven."""
    (KEPT / "survivors.json").write_text(json.dumps([survivor.key for survivor in survivors]), "utf-8")
    (KEPT / "survivors.toml").write_text("\n\n".join(map(entry, survivors)), "utf-8")


def main() -> int:
    """Exit code 1 where fewer are caught than asked for."""
    asked = parser().parse_args()
    session = Session(asked)
    KEPT.mkdir(exist_ok=True)  # pytest makes no parents of its basetemp
    code = pytest.main([*OPTIONS, *asked.tests], plugins=[session, Steady()])
    if code != pytest.ExitCode.OK or not session.ended:
        return int(code) or 1
    print(f"\n{survivors(session.ended)}\n\n{table(session.ended)}\n")
    return int(share(session.ended) < asked.least)


if __name__ == "__main__":
    sys.exit(main())
