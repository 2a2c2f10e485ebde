"""Every engine through the conformance suite: what passes, what is refused by name, what deviates as listed."""

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from streamgauge.engines import EngineUnavailableError, folder, names, profiles
from streamgauge.engines import load as load_engine
from streamgauge.model.semantics import Clock
from streamgauge.semantics.profiles import PROFILES
from streamgauge.suites.conformance.cases import Scale, asked, load
from streamgauge.suites.conformance.certificate import BAD, Certificate, TaskStanding, certificate, read_deviations
from streamgauge.suites.conformance.runner import Subject, certify, engine, findings

pytestmark = pytest.mark.server

WAITING = 4
"""How many programs run at a time that mostly wait for the time of the next element."""

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "engines"


def certified(subject: Subject, jobs: int = 2) -> Certificate:
    tasks = tuple(asked(load(), subject.profiles, subject.scale))
    outcomes = certify(subject, tasks, jobs, lambda: pytest.fail("no evaluator but the definition is needed"))
    return certificate(subject.name, outcomes, read_deviations(subject.deviations), True, findings)


def bad(result: Certificate) -> list[str]:
    named = [
        f"{item.outcome.name}: {item.outcome.sentence} {item.found}" for item in result.stood if item.standing in BAD
    ]
    return [*named, *result.unknown, *result.bare]


def refused(result: Certificate) -> Counter[str]:
    return Counter(item.outcome.sentence for item in result.stood if item.standing is TaskStanding.REFUSED)


@pytest.mark.server
@pytest.mark.heavy("181 cases under 15 profiles")
@pytest.mark.parametrize("form", ["lines", pytest.param("arrow", marks=pytest.mark.prove)])
def test_live_passes_every_case_under_every_profile(form, monkeypatch):
    """Its cases are short, so they go as lines unless Arrow is asked for."""
    if form == "arrow":
        monkeypatch.setattr("streamgauge.harness.forms.ARROW_FROM", 0)
    result = certified(engine("live"))
    assert bad(result) == []
    assert result.counts().keys() == {TaskStanding.PASSED, TaskStanding.REFUSED}
    reasons = ("no clock of its own", "bag as window content", "reports at expirations", "answers per message")
    assert all(any(reason in sentence for reason in reasons) for sentence in refused(result))


@pytest.mark.server
def test_the_broker_passes_every_case_that_it_takes():
    result = certified(engine("broker"))
    assert bad(result) == []
    assert result.counts()[TaskStanding.PASSED] >= 20
    reasons = ("its own semantics", "based window")
    assert all(any(reason in sentence for reason in reasons) for sentence in refused(result))


@pytest.mark.server
@pytest.mark.parametrize(
    ("program", "file"), [(sys.executable, "minimal.py"), ("node", "minimal.js")], ids=["python", "javascript"]
)
def test_the_reference_engines_are_right_or_refuse(program, file):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: the reference engine {file} cannot run")
    assert len((EXAMPLES / file).read_text().splitlines()) < 60
    result = certified(Subject(file, (program, str(EXAMPLES / file))))
    assert bad(result) == []
    assert result.counts()[TaskStanding.PASSED] > 100
    kinds = {sentence.split(" = ")[0].partition(" reads ")[0].partition(" reports ")[0] for sentence in refused(result)}
    assert kinds == {"borders", "r2s", "due", "content", "answers", "lateness", "this engine"}


def listed() -> list[str]:
    """The engines beside which deviations are listed."""
    homes = {name: folder(load_engine(name)) for name in names()}
    return [name for name, home in homes.items() if home is not None and (home / "deviations.toml").exists()]


@pytest.mark.parametrize("name", listed())
def test_a_list_gives_reasons_and_names_tasks_that_there_are(name):
    """Also where the engine itself is absent."""
    module = load_engine(name)
    result = read_deviations((folder(module) or Path()) / "deviations.toml")
    tasks = {task.name for task in asked(load(), profiles(module), Scale())}
    assert [case for entry in result for case in entry.cases if case not in tasks] == []
    assert [entry.name for entry in result if not (entry.why and entry.source and entry.findings)] == []


def in_real_time(name: str) -> bool:
    return any(PROFILES[profile].clock is not Clock.APPLICATION for profile in profiles(load_engine(name)) or ())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.prove] if in_real_time(name) else []) for name in listed()]
)
def test_an_engine_deviates_exactly_as_listed(name):
    try:
        subject = engine(name)
    except EngineUnavailableError as error:
        pytest.skip(str(error))
    result = certified(subject, WAITING if in_real_time(name) else 2)
    assert bad(result) == []
    assert result.counts()[TaskStanding.DEVIATING] > 0
    assert result.counts()[TaskStanding.PASSED] > 0
