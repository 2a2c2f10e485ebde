"""Runs the W3C's tests: ``python -m tests.w3c --data FOLDER [--on definition,close,change,spark] [--only sparql12]``.

FOLDER is a copy of https://github.com/w3c/rdf-tests, or a part of it. Prints how many tests are right, refused by name
and wrong, by suite and system, then every refusal by its reason and every wrong one. Exit code 1 when any is wrong.
"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.w3c.suites import Kind, Test, read
from tests.w3c.systems import (
    IN_PROCESS,
    REFUSED,
    RIGHT,
    WRONG,
    Outcome,
    Prepared,
    evaluated,
    on_spark,
    prepared,
    read_outcome,
    update_outcome,
)

_BATCH = 48
"""Tests that Spark is given at once, of which progress is shown."""


def outcomes(folder: Path, tests: Sequence[Test], systems: Sequence[str]) -> Iterator[Outcome]:
    """The outcomes of tests on systems: syntax tests once, evaluation tests on each."""
    cases: list[Prepared] = []
    for test in tests:
        if test.kind in (Kind.ACCEPTED_UPDATE, Kind.REFUSED_UPDATE):
            yield update_outcome(test)
        elif test.kind is not Kind.EVALUATION:
            yield read_outcome(test)
        elif isinstance(item := prepared(folder, test), Outcome):
            yield from (Outcome(test, system, item.verdict, item.why) for system in systems)
        else:
            cases.append(item)
            yield from (evaluated(item, system) for system in systems if system in IN_PROCESS)
    if "spark" in systems:
        yield from _by_spark(cases)


def _by_spark(cases: Sequence[Prepared]) -> Iterator[Outcome]:
    from streamgauge.spark.session import session
    from tests.conftest import SMALL_JOBS, YOUNG

    os.environ["SPARK_SUBMIT_OPTS"] += f" {YOUNG}"
    with session("local[2]", memory="2g", shuffle=1) as spark:
        for key, value in SMALL_JOBS.items():
            spark.conf.set(key, value)
        for first in range(0, len(cases), _BATCH):
            print(f"spark: {first} of {len(cases)} tests", file=sys.stderr)
            yield from on_spark(spark, cases[first : first + _BATCH])


def summary(results: Sequence[Outcome], left: Counter[str]) -> str:
    """The table of counts, the refusals by their reason, the wrong ones, and what was left out."""
    lines = [f"{'suite':26}{'system':12}{'right':>8}{'refused':>9}{'wrong':>7}"]
    groups: dict[tuple[str, str], Counter[str]] = {}
    for result in results:
        groups.setdefault((f"{result.test.suite} {result.test.kind}", result.system), Counter())[result.verdict] += 1
    for (suite, system), counts in sorted(groups.items()):
        lines.append(f"{suite:26.26}{system:12}{counts[RIGHT]:8}{counts[REFUSED]:9}{counts[WRONG]:7}")
    others = [result for result in results if result.verdict != RIGHT]
    lines += [f"{one.verdict}: {one.test.name} on {one.system}: {one.why}" for one in others]
    lines += [f"left out: {count} of {what}" for what, count in left.most_common()]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run the tests that the arguments name; the exit code."""
    parser = ArgumentParser(prog="tests.w3c", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the suites")
    parser.add_argument("--on", default=",".join(IN_PROCESS), help="systems, with commas between them")
    parser.add_argument("--only", default="", help="tests whose name has this")
    asked = parser.parse_args(arguments)
    systems = asked.on.split(",")
    if unknown := set(systems) - {*IN_PROCESS, "spark"}:
        parser.error(f"no system {', '.join(sorted(unknown))}: there are {', '.join(IN_PROCESS)} and spark")
    tests, left = read(asked.data.resolve())
    tests = [test for test in tests if asked.only in test.name]
    if not tests:
        parser.error(f"{asked.data} has no test whose name has {asked.only!r}: give a copy of w3c/rdf-tests")
    results = list(outcomes(asked.data.resolve(), tests, systems))
    print(summary(results, left))
    return int(any(result.verdict == WRONG for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
