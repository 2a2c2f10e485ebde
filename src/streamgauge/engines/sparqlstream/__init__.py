"""SPARQLstream (morph-streams), which only exists as recordings: its answers to CSRBench can be imported and judged."""

from typing import NoReturn

from streamgauge.engines import EngineUnavailableError, on_the_pipe
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics

DIALECT = "sparqlstream"
PROFILES = ("sparqlstream",)
RECORDED = (
    "SPARQLstream (morph-streams) cannot be run, because the artefact servers of its build are gone. Its answers to "
    "CSRBench's seven queries are recorded: `streamgauge import --semantics sparqlstream` turns them into runs"
)


def refuse(_query: ContinuousQuery, _semantics: Semantics) -> str:
    """Refuse every query, with a pointer to the recorded answers."""
    return RECORDED


def command() -> NoReturn:
    """EngineUnavailableError, as the program is no longer available."""
    raise EngineUnavailableError(RECORDED)


start = on_the_pipe(refuse, command, DIALECT)
