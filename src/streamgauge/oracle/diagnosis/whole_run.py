"""A model that was found on the beginning of a run, tried on the whole run in tasks of Spark.

Such a model is another query under another semantics: the run is judged by these, where its tables are. Models that do
more, such as windows that never evict, are only known to hold for the beginning.
"""

from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import SparkSession

from streamgauge.formats.places import Place
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Origin
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.diagnose import Explained
from streamgauge.oracle.diagnosis.models import Case
from streamgauge.oracle.judging.oracle import JudgingRules
from streamgauge.oracle.judging.tables import NotInTablesError, judge_tables


class WholeRunFit(NamedTuple):
    """Of how many reports of the whole run a model gives exactly the answers."""

    fitting: int
    reports: int

    @property
    def sentence(self) -> str:
        """The fit in words."""
        if self.fitting == self.reports:
            return f"it fits all {self.reports:,} reports of the whole run"
        return f"of the whole run it fits {self.fitting:,} of {self.reports:,} reports"


def tried(session: SparkSession, run: Run, stream: Place, explained: Explained) -> WholeRunFit | None:
    """The best model on the whole run, which is read without its rows; ``None`` where tables do not judge it."""
    found = explained.found[0] if explained.found else None
    if found is None or found.fit is not None or (header := declared_by(run.header, found.case)) is None:
        return None
    try:
        verdict = judge_tables(session, replace(run, header=header), stream, JudgingRules("definition"))
    except NotInTablesError:
        return None
    if verdict.judgement is Judgement.UNKNOWN:
        return None
    return WholeRunFit(sum(window.right for window in verdict.windows), len(verdict.windows))


def declared_by(header: RunHeader, case: Case) -> RunHeader | None:
    """The header of an engine that declares to be as a case; ``None`` for a case that no declaration describes."""
    if any((case.scopings, case.content_rules, case.keeps, case.gate, case.row_rules, case.tellings)):
        return None
    if header.evaluator == "definition":
        return None
    semantics = replace(case.semantics, origin=Origin.FIXED, t0=case.t0)
    return replace(header, query=case.query, semantics=semantics)
