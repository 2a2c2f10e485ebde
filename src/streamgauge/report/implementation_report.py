"""A certificate in the form of W3C's implementation reports: a page of cases by profiles, EARL in Turtle, a badge.

EARL is W3C's language for test results (https://www.w3.org/TR/EARL10-Schema/).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import pyoxigraph as ox

from streamgauge.model.controls import visible
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.report.certified import headline
from streamgauge.report.sections import PageSection, PageStyle, PageTable, TableLine, render
from streamgauge.suites.conformance.cases import OWN, ConformanceCase
from streamgauge.suites.conformance.certificate import BAD, DIMENSIONS, Certificate, CertifiedTask, TaskStanding

PLAYGROUND: Final = "../"
"""The default address of the workbench, relative to the page."""


class AddressError(MistakeError, ValueError):
    """A page that cannot be written, or an address that is not a workbench's."""


_KINDS: Final = {
    TaskStanding.PASSED: ("\N{CHECK MARK}", "passed"),
    TaskStanding.REFUSED: ("\N{EN DASH}", "refused"),
    TaskStanding.DEVIATING: ("\N{INCREMENT}", "deviating"),
    TaskStanding.FLAKY: ("\N{ALMOST EQUAL TO}", "flaky"),
    **dict.fromkeys(BAD, ("✗", "bad")),
}
"""Sign and style of each standing."""
_WORDS: Final = {
    "passed": "passed",
    "refused": "refused by the engine, which says why",
    "deviating": "another answer, as the engine's list of deviations says",
    "flaky": "right now and then, as the list says",
    "bad": "fails, or is not as the list says",
}


@dataclass(frozen=True)
class GridCell:
    """A task: profile, sign, style, outcome in words, and the address that opens the case."""

    profile: str
    sign: str
    kind: str
    words: str
    title: str
    link: str


@dataclass(frozen=True)
class GridRow:
    """A case with a cell per profile, ``None`` if it does not apply."""

    name: str
    cells: tuple[GridCell | None, ...]

    @property
    def whole(self) -> bool:
        """Whether the case passed under every profile that the engine accepts."""
        return all(cell is None or cell.kind in ("passed", "refused") for cell in self.cells)


def write(certificate: Certificate, path: Path, at: datetime, workbench: str = PLAYGROUND) -> list[Path]:
    """Write the page, and next to it the EARL report (``.ttl``) and the badge (``.svg``).

    ``at`` is the time of the certification. AddressError, OSError.
    """
    # All three texts exist before the first file is written, so that an error leaves no half of a report.
    files = places(path)
    texts = (page(certificate, at, files[1].name, files[2].name, workbench), earl(certificate, at), badge(certificate))
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return files


def places(path: Path) -> list[Path]:
    """The paths of the page's files; AddressError if it does not end in .html or its folder does not exist."""
    if path.suffix not in (".html", ".htm"):
        raise AddressError(f"--out {path}: name a page such as certificate.html; .ttl and .svg are written next to it")
    if not path.parent.is_dir():
        raise AddressError(f"--out {path}: the folder {path.parent} does not exist: create it, or name another")
    return [path, path.with_suffix(".ttl"), path.with_suffix(".svg")]


def page(certificate: Certificate, at: datetime, turtle: str, badge_name: str, workbench: str = PLAYGROUND) -> str:
    """One self-contained HTML file with links to the files ``turtle`` and ``badge_name``."""
    home = address(workbench)
    profiles = tuple(dict.fromkeys(task.outcome.asked.profile for task in certificate.stood))
    themes = [
        (theme, list(rows)) for theme, rows in groupby(_rows(certificate, profiles, home), key=lambda pair: pair[0])
    ]
    look = PageStyle(
        "Streamgauge certificate",
        f"Conformance of {certificate.engine}",
        f"{headline(certificate)}.",
        {},
    )
    return render(
        "certificate.html.j2",
        look,
        tuple(_sections(certificate)),
        engine=certificate.engine,
        good=certificate.good,
        counts=[
            (str(standing), certificate.counts()[standing]) for standing in _KINDS if certificate.counts()[standing]
        ],
        made=f"{at:%Y-%m-%d}",
        version=version("streamgauge"),
        turtle=quote(turtle),
        badge=quote(badge_name),
        profiles=profiles,
        themes=[(theme, [row for _, row in rows]) for theme, rows in themes],
        key=[(sign, kind, _WORDS[kind]) for sign, kind in dict.fromkeys(_KINDS.values())],
    )


def address(workbench: str) -> str:
    """The workbench's address with a final slash; AddressError unless it is relative, http or https."""
    parts = urlsplit(workbench)
    if parts.scheme not in ("", "http", "https") or (parts.scheme and not parts.netloc) or parts.query:
        raise AddressError(
            f"--workbench {workbench}: not an address of a workbench: as in http://127.0.0.1:8700 or ../"
        )
    return workbench if workbench.endswith("/") else f"{workbench}/"


def _rows(certificate: Certificate, profiles: Sequence[str], home: str) -> Iterator[tuple[str, GridRow]]:
    """The rows with their themes, in the order of the suite."""
    # Tasks are in the order of the suite: ``page`` groups by theme, which needs a theme's cases side by side.
    cases: dict[str, dict[str, CertifiedTask]] = {}
    for profile in certificate.stood:
        cases.setdefault(profile.outcome.asked.case.name, {})[profile.outcome.asked.profile] = profile
    for name, tasks in cases.items():
        case = next(iter(tasks.values())).outcome.asked.case
        cells = tuple(_cell(case, tasks[profile], home) if profile in tasks else None for profile in profiles)
        yield case.theme, GridRow(name, cells)


def _cell(case: ConformanceCase, task: CertifiedTask, home: str) -> GridCell:
    sign, kind = _KINDS[task.standing]
    profile = task.outcome.asked.profile
    beside = "" if profile == OWN else f"&profile={quote(profile)}"
    title = f"{task.standing}: {_why(task)}" if _why(task) else str(task.standing)
    link = f"{home}playground/?case={quote(case.slug)}{beside}"
    return GridCell(profile, sign, kind, str(task.standing), title, link)


def _why(task: CertifiedTask) -> str:
    name = task.deviation.name if task.deviation else ""
    return " ".join(f"{name}. {task.outcome.sentence}".strip(". ").split())[:300]


def _sections(certificate: Certificate) -> Iterator[PageSection]:
    listed = {task.deviation.name: task.deviation for task in certificate.stood if task.deviation is not None}
    counts = {name: sum(task.deviation is not None and task.deviation.name == name for task in certificate.stood)
              for name in listed}  # fmt: skip
    if listed:
        lines = tuple(
            TableLine(
                (
                    deviation.name,
                    deviation.why or "no reason is written",
                    deviation.source,
                    f"{counts[deviation.name]:,}",
                )
            )
            for deviation in listed.values()
        )
        table = PageTable("", ("deviation", "why", "source", "tasks"), lines)
        yield PageSection("deviations", "What it does differently", (), (table,))
    tally = certificate.tally()
    shown = [standing for standing in _KINDS if certificate.counts()[standing]]
    tables = tuple(
        PageTable(
            dimension,
            (dimension, *map(str, shown)),
            tuple(
                TableLine((value, *(f"{counts[standing]:,}" for standing in shown)))
                for (of, value), counts in sorted(tally.items())
                if of == dimension
            ),
        )
        for dimension in DIMENSIONS
    )
    yield PageSection("features", "By what the cases ask for", (), tuple(table for table in tables if table.lines))


_EARL: Final = "http://www.w3.org/ns/earl#"
_DCT: Final = "http://purl.org/dc/terms/"
_RDF_TYPE: Final = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_DATE_TIME: Final = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
_OUTCOMES: Final = {
    TaskStanding.PASSED: "passed",
    TaskStanding.REFUSED: "inapplicable",
    TaskStanding.DEVIATING: "failed",
    TaskStanding.FLAKY: "cantTell",
    **dict.fromkeys(BAD, "failed"),
}
"""EARL's outcome for each standing: a listed deviation is a failed test with a reason."""


def earl(certificate: Certificate, at: datetime) -> str:
    """The certificate in EARL as Turtle: an assertion per task, by Streamgauge, about the engine.

    A test is a case under a semantics, ``urn:streamgauge:case:SLUG:PROFILE``. A listed deviation is ``earl:failed``
    with its reason, a refusal is ``earl:inapplicable``.
    """
    triples = ox.serialize(
        _assertions(certificate, at),
        format=ox.RdfFormat.TURTLE,
        prefixes={"earl": _EARL, "dct": _DCT, "doap": "http://usefulinc.com/ns/doap#"},
    )
    assert triples is not None
    return triples.decode()


def _assertions(certificate: Certificate, at: datetime) -> Iterator[ox.Triple]:
    engine = ox.NamedNode(f"urn:streamgauge:engine:{quote(certificate.engine, safe='')}")
    judge = ox.NamedNode("urn:streamgauge:assertor")
    yield from _described(engine, ("TestSubject", "Software"), {"title": certificate.engine})
    yield ox.Triple(engine, ox.NamedNode("http://usefulinc.com/ns/doap#name"), ox.Literal(certificate.engine))
    yield from _described(judge, ("Assertor", "Software"), {"title": f"Streamgauge {version('streamgauge')}"})
    moment = ox.Literal(at.strftime("%Y-%m-%dT%H:%M:%SZ"), datatype=_DATE_TIME)
    for number, task in enumerate(certificate.stood):
        asked_for = task.outcome.asked
        test = ox.NamedNode(f"urn:streamgauge:case:{asked_for.case.slug}:{quote(asked_for.profile, safe='')}")
        words = {"title": asked_for.name, "description": asked_for.case.why, "source": asked_for.case.source}
        yield from _described(test, ("TestCase",), words)
        assertion, result = ox.BlankNode(f"a{number}"), ox.BlankNode(f"r{number}")
        yield from _described(assertion, ("Assertion",), {})
        for name, value in (
            ("assertedBy", judge),
            ("subject", engine),
            ("test", test),
            ("mode", ox.NamedNode(f"{_EARL}automatic")),
            ("result", result),
        ):
            yield ox.Triple(assertion, ox.NamedNode(_EARL + name), value)
        yield from _described(result, ("TestResult",), {"description": _result(task)})
        yield ox.Triple(result, ox.NamedNode(f"{_EARL}outcome"), ox.NamedNode(_EARL + _OUTCOMES[task.standing]))
        yield ox.Triple(result, ox.NamedNode(f"{_DCT}date"), moment)


def _described(node: ox.NamedNode | ox.BlankNode, kinds: Sequence[str], words: dict[str, str]) -> Iterator[ox.Triple]:
    for kind in kinds:
        yield ox.Triple(node, _RDF_TYPE, ox.NamedNode(_EARL + kind))
    for name, text in words.items():
        if text:
            yield ox.Triple(node, ox.NamedNode(_DCT + name), ox.Literal(text))


def _result(task: CertifiedTask) -> str:
    reason = task.deviation.why if task.deviation else ""
    return ". ".join(part for part in (str(task.standing), _why(task), reason) if part)


def badge(certificate: Certificate) -> str:
    """The certificate as a small SVG for a README."""
    passed, of = certificate.counts()[TaskStanding.PASSED], len(certificate.stood)
    message = f"certified, {passed:,} of {of:,}" if certificate.good else "not certified"
    colour = "#0a7d57" if certificate.good else "#c0341d"
    name = "conformance"
    # A letter of Verdana 11 is 6.6 px wide on average; a browser without that font has one that is about as wide.
    left, right = (round(6.6 * len(text)) + 16 for text in (name, message))
    text = visible(
        f"{certificate.engine}: {message} {counted(of, 'task').partition(' ')[2]} passed"
        if certificate.good
        else message
    )
    texts = "".join(
        f'<text x="{x:g}" y="14" text-anchor="middle">{escape(text)}</text>'
        for x, text in ((left / 2, name), (left + right / 2, message))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{escape(text)}"><title>{escape(text)}</title>'
        f'<clipPath id="c"><rect width="{left + right}" height="20" rx="3"/></clipPath><g clip-path="url(#c)">'
        f'<rect width="{left}" height="20" fill="#3d444d"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )
