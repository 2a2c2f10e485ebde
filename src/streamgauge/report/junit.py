"""Verdicts as JUnit's XML, which CI servers show as tests: a suite per run, a case per group of windows."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from xml.etree import ElementTree

from streamgauge.model.controls import visible
from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Judgement, WindowVerdict
from streamgauge.report import cards
from streamgauge.report.numbers import interval, scope_borders
from streamgauge.report.series import Judged, Series, delay_of, rows_of, series_of, state
from streamgauge.report.windows import command_of, named, shortener

CASES = 100
"""Maximum cases of a run; more windows are grouped."""
WITNESSES = 5
"""Maximum rows of one side of a window."""
NAMED = 10
"""Maximum windows in the description of a failed case."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def page(runs: Sequence[Judged], at: datetime) -> str:
    """The verdicts as an XML document; ``at`` is its time, which the format requires.

    A wrong or late window is a failure, an engine's failure an error, a run that could not be judged is skipped. The
    time of a case is the sum of its windows' delays in s. ValueError without a run.
    """
    if not runs:
        raise ValueError("there is no run to report: give at least one run with its verdict")
    root = ElementTree.Element("testsuites")
    judged = [(one, run) for one in series_of(runs) for run in one.runs]
    for number, (one, run) in enumerate(judged):
        root.append(_suite(number, one, run, at))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(number: int, one: Series, judged: Judged, at: datetime) -> ElementTree.Element:
    run, verdict = judged
    cases = list(_cases(one, judged))
    outcomes = [child.tag for case in cases for child in case]
    counts = {name: str(outcomes.count(tag)) for name, tag in _OUTCOMES}
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": _token(named(one, run.header)),
            "package": "streamgauge",
            "id": str(number),
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": "localhost",
            "tests": str(len(cases)),
            **counts,
            "time": _seconds(sum(float(case.attrib["time"]) for case in cases)),
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in cards.facts_of(run.header, [verdict]):
        ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})
    suite.extend(cases)
    sub_element = ElementTree.SubElement(suite, "system-out")
    sub_element.text = _clean("\n".join([cards.explanation(one.unit, verdict), *cards.findings(one.unit, verdict)]))
    ElementTree.SubElement(suite, "system-err").text = _clean(run.header.failure or "")
    return suite


_OUTCOMES = (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))


def _cases(one: Series, judged: Judged) -> Iterator[ElementTree.Element]:
    run, verdict = judged
    if run.header.failure:
        case = _case(one, run.header.engine, 0.0)
        _outcome(case, "error", "engine failure", run.header.failure)
        yield case
    # Readers of the format take a suite without cases for one that did not run.
    if verdict.judgement is Judgement.UNKNOWN or not verdict.windows:
        case = _case(one, "the run", 0.0)
        if verdict.judgement is not Judgement.RIGHT:
            ElementTree.SubElement(case, "skipped", {"message": _clean(cards.explanation(one.unit, verdict))})
        yield case
        return
    # Adjacent windows share a case beyond so many: dashboards do not show tens of thousands.
    # Rounded up: 250 windows make cases of 3, that is 84 of them.
    width = -(-len(verdict.windows) // CASES)
    for begin in range(0, len(verdict.windows), width):
        yield _group(one, judged, verdict.windows[begin : begin + width])


def _group(one: Series, judged: Judged, windows: Sequence[WindowVerdict]) -> ElementTree.Element:
    """The case of adjacent windows."""
    run, verdict = judged
    first, last = windows[0], windows[-1]
    name = f"{one.unit} {first.index}" if len(windows) == 1 else f"{one.unit}s {first.index} to {last.index}"
    case = _case(one, name, sum(max(0.0, window.delay or 0.0) for window in windows) / 1000)
    bad = [window for window in windows if state(window) != "right"]
    if bad:
        wrong = [window for window in bad if not window.right]
        message = f"{len(wrong):,} of {counted(len(windows), one.unit)} not as expected" if wrong else "right but late"
        text = "\n".join(line for window in bad[:NAMED] for line in _window_lines(one, judged, window))
        if command := command_of(run, bad[0].index):
            text += f"\n{command}"
        _outcome(case, "failure", str(verdict.judgement.value), message, text)
    return case


def _window_lines(one: Series, judged: Judged, window: WindowVerdict) -> Iterator[str]:
    run, verdict = judged
    short = shortener(run.header.query_text)
    where = interval(window.start, window.end, scope_borders(run.header.query, run.header.semantics))
    yield f"{one.unit} {window.index} {where}, {state(window)}: {rows_of(window)}, delay {delay_of(window)}"
    for side, rows in (("missing", window.missing), ("surplus", window.surplus)):
        for row in rows[:WITNESSES]:
            cells = ", ".join(
                f"?{name} {'unbound' if term is None else short(term)}"
                for name, term in zip(verdict.variables, row, strict=False)
            )
            yield f"  {side}: {cells}"


def _case(one: Series, name: str, took: float) -> ElementTree.Element:
    attributes = {"name": _token(name), "classname": _token(f"streamgauge.{one.label}"), "time": _seconds(took)}
    return ElementTree.Element("testcase", attributes)


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, text: str = "") -> None:
    child = ElementTree.SubElement(case, tag, {"type": kind, "message": _clean(message)})
    child.text = _clean(text)


def _seconds(value: float) -> str:
    return f"{value:.4f}"


def _clean(text: str) -> str:
    """Text with visible control characters, without characters that XML forbids."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", visible(text))


def _token(text: str) -> str:
    return " ".join(_clean(text).split()) or "-"
