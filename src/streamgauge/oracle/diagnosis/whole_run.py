"""The diagnosis of a run of any size: models are searched on a prefix, and the best one is tried on the whole run.

Hundreds of models are tried, so the prefix is what one process can replay. A model that amounts to another query under
another semantics is then judged over the whole run by tasks of Spark. Other models, such as windows that never evict,
are only known to hold for the prefix.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamgauge.formats.manifest import manifest
from streamgauge.formats.places import Place
from streamgauge.formats.run import Parse, read_heads, read_run
from streamgauge.formats.stream import elements
from streamgauge.formats.tables import first_answers
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Origin
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.diagnose import Explained, explained
from streamgauge.oracle.diagnosis.models import Case
from streamgauge.oracle.diagnosis.prefix import prefix
from streamgauge.oracle.diagnosis.search import ANSWERS_LIMIT, TRIPLES_LIMIT
from streamgauge.oracle.judging.oracle import JudgingRules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]


@dataclass(frozen=True, slots=True)
class StoredDiagnosis:
    """A diagnosis, and the number of triples it is based on (``seen``).

    ``note`` says if these are not all of the run.
    """

    explained: Explained
    seen: int
    note: str = ""

    @property
    def cautions(self) -> tuple[str, ...]:
        """The note as a caution of the verdict, if there is one."""
        return (f"The diagnosis was found {self.note}.",) if self.note else ()


def explain_stored(folder: Path, parse: Parse, stream: Place, session: Session | None) -> StoredDiagnosis:
    """The diagnosis of a run in a folder; without a ``session`` of Spark the model is not tried on the whole run.

    Raises RefusedError for a run that ``search.refuse`` names, NoPrefixError for a long run without a prefix.
    """
    heads = read_heads(folder, parse)
    run = heads or read_run(folder, parse)
    part, elements = prefix(
        run, _elements(stream, session), partial(first_answers, folder), TRIPLES_LIMIT, ANSWERS_LIMIT
    )
    explanation = explained(part, elements)
    seen = sum(len(element.added) for element in elements)
    if part.header.advanced_to == run.header.advanced_to:
        return StoredDiagnosis(explanation, seen)
    note = f"on the first {seen:,} of {_triples(stream, session):,} triples"
    fit = tried(session(), heads, stream, explanation) if session is not None and heads is not None else None
    return StoredDiagnosis(explanation, seen, note if fit is None else f"{note}; {fit.sentence}")


def _elements(stream: Place, session: Session | None) -> Iterator[StreamElement]:
    """The elements of a stream in order, lazily; from a remote stream no more than a prefix needs."""
    if isinstance(stream, Path):
        yield from elements(stream)
        return
    assert session is not None
    spark = session()
    from streamgauge.spark.hadoop_tables import manifest as remote_manifest
    from streamgauge.spark.hadoop_tables import read_parquet

    # Of all parts, the first rows of each would meet in one task.
    listed = remote_manifest(spark, stream)
    parts = listed.first_parts(TRIPLES_LIMIT + 1)
    whole = len(parts) == len(listed.parts)
    rows = read_parquet(spark, *([stream] if whole else (stream / part.file for part in parts)))
    yield from elements(rows.orderBy("sequence", "position").limit(TRIPLES_LIMIT + 1).toArrow())


def _triples(stream: Place, session: Session | None) -> int:
    if isinstance(stream, Path):
        return manifest(stream).rows
    assert session is not None
    spark = session()
    from streamgauge.spark.hadoop_tables import manifest as remote_manifest

    return remote_manifest(spark, stream).rows


class WholeRunFit(NamedTuple):
    """The number of reports of the whole run that a model explains exactly."""

    fitting: int
    reports: int

    @property
    def sentence(self) -> str:
        """The fit as a clause."""
        if self.fitting == self.reports:
            return f"it fits all {self.reports:,} reports of the whole run"
        return f"of the whole run it fits {self.fitting:,} of {self.reports:,} reports"


def tried(session: "SparkSession", run: Run, stream: Place, explained: Explained) -> WholeRunFit | None:
    """The fit of the best model over the whole run (``run`` lacks rows); ``None`` if it cannot be judged in tables."""
    result = explained.found[0] if explained.found else None
    # A model with slips names single reports of the prefix and says nothing about later ones.
    if result is None or result.fit is not None or (header := declared_by(run.header, result.case)) is None:
        return None
    from streamgauge.oracle.judging.tables import NotInTablesError, judge_tables

    try:
        verdict = judge_tables(session, replace(run, header=header), stream, JudgingRules("definition"))
    except NotInTablesError:
        return None
    if verdict.judgement is Judgement.UNKNOWN:
        return None
    return WholeRunFit(sum(window.right for window in verdict.windows), len(verdict.windows))


def declared_by(header: RunHeader, case: Case) -> RunHeader | None:
    """The header of an engine whose declared query and semantics are the case.

    ``None`` if no declaration describes it.
    """
    if any((case.scopings, case.content_rules, case.keeps, case.gate, case.row_rules, case.report_rules)):
        return None
    # The definition does not judge an engine that runs on it.
    if header.evaluator == "definition":
        return None
    # The t0 that the search found: searching again over the whole run could find another.
    semantics = replace(case.semantics, origin=Origin.FIXED, t0=case.t0)
    return replace(header, query=case.query, semantics=semantics)
