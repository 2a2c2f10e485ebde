"""Certificates as pages: every cell leads to its case in the playground; EARL says the same; the badge is an image."""

from collections import Counter
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pyoxigraph as ox
import pytest

from streamgauge.report import implementation_report
from streamgauge.report.implementation_report import AddressError
from streamgauge.suites.conformance.cases import OWN, Scale, asked, load
from streamgauge.suites.conformance.certificate import Certificate, Deviation, TaskStanding, certificate
from streamgauge.suites.conformance.runner import ConformanceOutcome, TaskResult
from streamgauge.workbench.rooms.playground.examples import example
from tests.report.test_page import read

AT = datetime(2026, 11, 23, 12, 0, 5, tzinfo=UTC)
EVIL = '<script>alert("1")</script>'
KINDS = (TaskResult.PASSED, TaskResult.PASSED, TaskResult.REFUSED, TaskResult.WRONG)
EARL = "http://www.w3.org/ns/earl#"


def made(cases: int = 12, engine: str = "mine", fails: bool = True) -> Certificate:
    """A certificate of tasks that went all ways; of two that are wrong one is listed."""
    tasks = list(asked(load()[:cases], None, Scale()))
    outcomes = [
        ConformanceOutcome(task, KINDS[place % 4] if fails else TaskResult.PASSED, f"said {EVIL}")
        for place, task in enumerate(tasks)
    ]
    wrong = [outcome.name for outcome in outcomes if outcome.kind is TaskResult.WRONG]
    listed = [Deviation(f"late {EVIL}", "a reason", "a source", ("late",), tuple(wrong[::2]))] if wrong else []
    return certificate(engine, outcomes, listed, True, lambda _outcome: ("late",))


@pytest.fixture(scope="module")
def page() -> str:
    return implementation_report.page(made(engine=EVIL), AT, "c.ttl", "c.svg")


@pytest.mark.slow
def test_the_grid_has_a_cell_for_each_task_and_is_sound(page: str) -> None:
    outline = read(page)
    result = made()
    links = [attrs["href"] for tag, attrs in outline.tags if tag == "a" and "playground" in (attrs["href"] or "")]
    assert len(links) == len(result.stood)
    assert all(link.startswith("../playground/?case=") for link in links)
    assert "<script" not in page
    assert "Not certified" in outline.text
    assert "a reason" in outline.text
    kinds = Counter(attrs["class"] for tag, attrs in outline.tags if tag == "a" and "playground" in attrs["href"])
    counts = result.counts()
    assert kinds["passed"] == counts[TaskStanding.PASSED]
    assert kinds["deviating"] == counts[TaskStanding.DEVIATING] > 0
    assert kinds["bad"] == counts[TaskStanding.FAILING] > 0


@pytest.mark.slow
def test_every_case_opens_in_the_playground_under_every_profile() -> None:
    tasks = list(asked(load(), None, Scale()))
    assert len({task.case.slug for task in tasks}) == len({task.case.name for task in tasks})
    text = implementation_report.page(made(1), AT, "c.ttl", "c.svg", "http://127.0.0.1:8700")
    links = [unescape(part.partition('"')[0]) for part in text.split('href="http://127.0.0.1:8700')[1:]]
    for link in links:
        given = parse_qs(urlsplit(link).query)
        assert example(given["case"][0], given.get("profile", [""])[0]).query
    for slug in {task.case.slug for task in tasks}:
        assert example(slug).query
    for profile in {task.profile for task in tasks} - {OWN}:
        assert example(tasks[0].case.slug, profile).query


@pytest.mark.slow
def test_the_earl_report_says_the_same(tmp_path: Path) -> None:
    result = made()
    files = implementation_report.write(result, tmp_path / "mine.html", AT)
    assert [file.name for file in files] == ["mine.html", "mine.ttl", "mine.svg"]
    store = ox.Store()
    store.load(path=tmp_path / "mine.ttl", format=ox.RdfFormat.TURTLE)
    query = f"""PREFIX earl: <{EARL}> SELECT ?test ?outcome {{ ?a a earl:Assertion ; earl:test ?test ;
      earl:assertedBy [ a earl:Assertor ] ; earl:subject [ a earl:TestSubject ] ; earl:mode earl:automatic ;
      earl:result [ a earl:TestResult ; earl:outcome ?outcome ] . ?test a earl:TestCase }}"""
    solutions = list(store.query(query))
    assert len({solution["test"] for solution in solutions}) == len(solutions) == len(result.stood)
    outcomes = Counter(solution["outcome"].value.removeprefix(EARL) for solution in solutions)
    counts = result.counts()
    assert outcomes["passed"] == counts[TaskStanding.PASSED]
    assert outcomes["inapplicable"] == counts[TaskStanding.REFUSED]
    assert outcomes["failed"] == counts[TaskStanding.DEVIATING] + counts[TaskStanding.FAILING]


def test_the_badge_says_whether_and_how_many() -> None:
    bad, good = made(1), made(1, fails=False)
    said = ["".join(ElementTree.fromstring(implementation_report.badge(item)).itertext()) for item in (bad, good)]
    assert "not certified" in said[0]
    assert f"certified, {len(good.stood):,} of {len(good.stood):,}" in said[1]


@pytest.mark.parametrize("name", ["page.ttl", "page", "absent/page.html"])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(AddressError, match="--out"):
        implementation_report.places(tmp_path / name)


@pytest.mark.parametrize("given", ["javascript:alert(1)", "data:text/html,x", "http:", "http://a/?x=1"])
def test_an_address_that_is_no_workbench_is_refused(given: str) -> None:
    with pytest.raises(AddressError, match="--workbench"):
        implementation_report.address(given)
