"""Every kind of file that is read back and decides something: how one is written, and all that is read from it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from streamgauge.engines.spark.state import Pane, State, StateLog
from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.run import read_run, read_verdict, stream_path, write_run, write_verdict
from streamgauge.formats.seals import check_beside, seal_beside
from streamgauge.formats.stream import elements, write
from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.run import Sample
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse, print_query
from streamgauge.report.comparison.measurements import measured, write_baseline
from streamgauge.semantics.profiles import RSPQL
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.suites.crowds.runs import ScenarioRunner, _write
from streamgauge.suites.crowds.scenario import CrowdOutcome, Scenario
from streamgauge.suites.experiments.plan import stream_facts, write_advance
from streamgauge.suites.sepbm import (
    BASE,
    About,
    CountedNotification,
    PublicationRecord,
    SepbmRecording,
    recordings,
    triples_text,
    write_due,
)
from streamgauge.suites.sepbm import read as read_configuration
from streamgauge.suites.sepbm import write as write_configuration
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run
from tests.servers.broker import test_damage as journals
from tests.servers.fragments.store import test_damage as stores
from tests.servers.fragments.store.opened import answers
from tests.suites.sepbm.small import NAMES, Small

TEXT: Final = " | ".join(f"{t}: s{t % 3} p {t}f." for t in range(12))


@dataclass(frozen=True)
class FileKind:
    """``write`` makes the files in a folder, ``read`` gives all that is read from them."""

    write: Callable[[Path], object]
    read: Callable[[Path], object]
    name: str = ""
    """What a sentence on damage names, where that is not the damaged file."""
    refused: float = 1 / 3
    """The least part of damages that is refused: pages that nothing is on, and locks, may hold anything."""


def write_judged(folder: Path) -> None:
    """A right run with a verdict, samples and background data, its stream beside."""
    run = right_run(RSPQL, text=TEXT, advance=12, sparql="SELECT ?s ?o { ?s <urn:p> ?o }")
    over = (StreamWindow(STREAM, Window(5, 5)),)
    query = replace(run.header.query, windows=over, static=(("<urn:s0>", "<urn:in>", "<urn:x>"),))
    header = replace(run.header, query=query, query_text=print_query(query, "csparql"), dialect="csparql")
    samples = tuple(Sample(at, 2**20, 1.0, 50.0, 3) for at in range(3))
    write_run(folder, replace(run, header=header, samples=samples))
    write(stream(TEXT), folder / "stream.parquet")
    write_verdict(folder, judged(folder))


def judged(folder: Path) -> Any:
    """The verdict on a run folder, found anew by the definition."""
    return judge_run(read_run(folder, parse), stream_path(folder), Means(_no_spark, "definition"))


def _no_spark() -> Any:
    raise AssertionError("a small run needs no Spark")


def _read_run(folder: Path) -> object:
    run = read_run(folder, parse)
    return run.header, run.answers, run.fed, run.samples, judged(folder), read_verdict(folder)


def _write_table(folder: Path) -> None:
    write(stream(TEXT), folder / "part-0.parquet")
    write_advance(folder, 40)


def _read_table(folder: Path) -> object:
    return list(elements(folder)), stream_facts(folder)


def _write_baseline(folder: Path) -> None:
    with TemporaryDirectory() as scratch:
        write_judged(Path(scratch) / "a-1")
        write_baseline(folder / "baseline.json", measured(Path(scratch)))


KNOWN: Final = State(
    batch=4,
    t0=0,
    greatest=9000,
    passed=8000,
    last=DueReport(8000, (View(3000, 8000, 3000, 7999, 1 << 62),)),
    sent=3,
    panes=(Pane(3, 2000, 6000, ("a.parquet",), (3, 4)),),
)


def _write_recording(folder: Path) -> None:
    published = tuple(
        PublicationRecord(publication.number, publication.number, 9, None) for publication in Small().publications
    )
    beside = (CountedNotification(NAMES[0], 1, (1, 2), 3, 4),)
    samples = (Sample(1, 2, 3.0, 4.0, 5),)
    recording = SepbmRecording("broker", {}, NAMES, published, (), samples, 1, 2.0, 1, None, None, 1, beside, None)
    recordings.write(folder, recording, Small())


def _read_recording(folder: Path) -> object:
    channels = [read_run(folder / "channels" / name, parse) for name in NAMES]
    return recordings.read(folder), [(run.header, run.answers, run.fed, run.samples) for run in channels]


def _write_configuration(folder: Path) -> None:
    small = Small()
    write_configuration(folder, About({}, {}), small.ontology(), small.channels, small.sequence())
    (folder / BASE).write_text(triples_text(small.base()), "utf-8")
    write_due(folder, small.due())
    seal_beside(folder)


def _read_configuration(folder: Path) -> object:
    result = read_configuration(folder)
    parts = (result.ontology(), result.base(), result.sequence(), result.due())
    return result.channels, result.about, *map(tuple, parts)


def _write_static(folder: Path) -> None:
    (folder / "static.nt").write_text("<urn:a> <urn:p> <urn:b> .\n<urn:b> <urn:p> <urn:c> .\n", "utf-8")
    seal_beside(folder / "static.nt")


def _read_static(folder: Path) -> object:
    check_beside(folder / "static.nt")
    return tuple(StaticFile(folder / "static.nt"))


SCENARIO: Final = Scenario("broker", 1)


def _outcomes(folder: Path) -> Any:
    return ScenarioRunner(folder, _no_spark).store


def _write_outcome(folder: Path) -> None:
    outcome = CrowdOutcome(SCENARIO, ((1.0, 2.0),), ((1.0, 3.0),), 4.0, 5.0, 6.0, 7, (8,), (), (), 0.5)
    _outcomes(folder).add("scenario", lambda place: _write(place, outcome))


def _write_journals(folder: Path) -> None:
    """The journal of a broker that was killed, with its log, and of one that was closed."""
    with TemporaryDirectory() as scratch:
        made = journals.fill(Path(scratch) / "kept")
        journals.copied(Path(scratch) / "kept", folder / "killed")
        made.close()
        journals.copied(Path(scratch) / "kept", folder / "closed")


def _read_journals(folder: Path) -> object:
    with TemporaryDirectory() as scratch:
        return [_journal(journals.copied(folder / name, Path(scratch) / name)) for name in ("killed", "closed")]


def _journal(folder: Path) -> object:
    made = journals.opened(folder)
    try:
        return journals.state(made)
    finally:
        made.close()


def _write_store(folder: Path) -> None:
    stores.changed(folder / "store", 1, 45)


def _read_store(folder: Path) -> object:
    with TemporaryDirectory() as scratch:
        store = DiskStore(stores.copied(folder / "store", Path(scratch) / "store"), stores.KEEP)
        try:
            return answers(store)
        finally:
            store.close()


KINDS: Final = {
    "journal": FileKind(_write_journals, _read_journals, "journal", 1 / 10),
    "store": FileKind(_write_store, _read_store, "store", 1 / 100),
    "run folder": FileKind(write_judged, _read_run),
    "stream table": FileKind(_write_table, _read_table),
    "baseline": FileKind(_write_baseline, lambda folder: measured(folder / "baseline.json")),
    "checkpoint": FileKind(lambda folder: StateLog(folder).commit(KNOWN), lambda folder: StateLog(folder).latest()),
    "configuration": FileKind(_write_configuration, _read_configuration),
    "static data": FileKind(_write_static, _read_static),
    "recording": FileKind(_write_recording, _read_recording),
    "crowd": FileKind(_write_outcome, lambda folder: _outcomes(folder).finished("scenario")),
}
