"""Every W3C SPARQL 1.1 evaluation test as a run of one report: right, or refused by name as w3c_refused.txt says."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamgauge.compute.spark.answers import answers, refuse
from streamgauge.model.algebra import QueryForm
from streamgauge.model.report import DueReport, View
from streamgauge.query.parser import parse_sparql
from tests.compute.spark.streams import table
from tests.sparql.suite import Case, Result, cases, difference

NOT_PARSED = {"construct/constructwhere04"}
NAMED_GRAPHS = "named graphs"
ONE_REPORT = (DueReport(0, (View(0, 1, 0, 0, 1),)),)


@pytest.fixture(scope="module")
def suite(shared_data: Path) -> dict[str, tuple[Case, QueryForm]]:
    found = cases(shared_data / "w3c-sparql11")
    return {case.name: (case, parse_sparql(case.query)) for case in found if case.name not in NOT_PARSED}


def refusals() -> dict[str, str]:
    lines = (Path(__file__).parent / "w3c_refused.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("  ", 1) for line in lines if line and not line.startswith("#"))


def refused(case: Case, query: QueryForm) -> str:
    reason = NAMED_GRAPHS if case.graphs else refuse(query)
    return (reason or "").removeprefix("compute/spark does not evaluate ")


def test_the_list_of_refusals_is_true(suite: dict[str, tuple[Case, QueryForm]]) -> None:
    found = {name: reason for name, pair in suite.items() if (reason := refused(*pair))}
    assert found == refusals()


def test_a_refusal_is_raised(tiny: SparkSession, suite: dict[str, tuple[Case, QueryForm]]) -> None:
    for case, query in suite.values():
        if reason := refuse(query):
            with pytest.raises(ValueError, match="compute/spark does not evaluate"):
                answers(tiny, table(tiny, [(0, case.data)]), ONE_REPORT, query)
            assert reason.endswith(refused(case, query)) or case.graphs


def test_every_other_answer_is_right(tiny: SparkSession, suite: dict[str, tuple[Case, QueryForm]]) -> None:
    def told(name: str) -> str:
        case, query = suite[name]
        return difference(replace(case.expected, ordered=False), answer(tiny, case, query))

    names = sorted(suite.keys() - refusals().keys())
    with ThreadPoolExecutor(2) as pool:
        wrong = dict(zip(names, pool.map(told, names), strict=True))
    assert {name: difference for name, difference in wrong.items() if difference} == {}
    assert len(wrong) > 150


def answer(spark: SparkSession, case: Case, query: QueryForm) -> Result:
    found = answers(spark, table(spark, [(0, case.data)]), ONE_REPORT, query).collect()
    assert {row[0] for row in found} <= {0}
    variables = getattr(query, "variables", ("ask",))
    rows = tuple(tuple(row[1:]) for row in found)
    return Result("boolean" if variables == ("ask",) else "solutions", variables, rows)
