"""SPARQLstream (morph-streams), recorded only: its answers to CSRBench's queries can be imported and judged."""

from typing import NoReturn

from streamgauge.engines import EngineUnavailableError, on_the_pipe
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics

DIALECT = "sparqlstream"
PROFILES = ("sparqlstream",)
RECORDED = (
    "SPARQLstream (morph-streams) cannot be run: the artefact servers that its build needs are gone. What it answered "
    "to CSRBench's seven queries is recorded: `streamgauge import --semantics sparqlstream` makes runs of it"
)


def refuse(_query: ContinuousQuery, _semantics: Semantics) -> str:
    """The sentence that says where its recorded answers are, whatever is asked."""
    return RECORDED


def command() -> NoReturn:
    """EngineUnavailableError: there is no program to run."""
    raise EngineUnavailableError(RECORDED)


start = on_the_pipe(refuse, command, DIALECT)
