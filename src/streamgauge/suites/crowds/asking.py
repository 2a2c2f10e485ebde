"""What clients ask: the trains workload's queries, for the fragments client and for engines with windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from streamgauge import workloads
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.terms import Triple
from streamgauge.query import fill, parse
from streamgauge.suites.crowds.scenario import Scenario

WINDOWS: Final = {"WSIZE": "1h", "WSLIDE": "10s"}
"""As the paper's baselines had them: C-SPARQL [RANGE 1h STEP 10s], CQELS [RANGE 60m SLIDE 10s]."""

TOWNS: Final = 18
PLATFORMS: Final = 14
SLIDE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Service:
    """An engine behind the query service, under a semantics."""

    engine: str
    semantics: str


PLANS: Final = {
    "incremental": ("incremental", "on"),
    "polling": ("incremental", "off"),
    "streamer": ("streamer", "on"),
    "streamer-no-cache": ("streamer", "off"),
    "streamer-prototype-off": ("streamer", "prototype"),
}
"""Fragments clients: the system's name, its plan and cache; polling has data without times, asked anew."""

SERVICES: Final = {
    "live-csparql": Service("live", "csparql-0.9.7"),
    "live-cqels": Service("live", "cqels"),
    "csparql": Service("csparql", "csparql-0.9.7"),
    "cqels": Service("cqels", "cqels-1.x"),
}
"""Engines behind ``engine serve``."""

BROKER: Final = "broker"
"""The broker: a channel for each query, its subscribers told how the answer changes."""

SYSTEMS: Final = (*PLANS, *SERVICES, BROKER)


def continuous(scenario: Scenario, client: int) -> tuple[ContinuousQuery, str]:
    """What a client asks with windows, and its text (RSP-QL)."""
    name = "head-sign" if scenario.distinct else scenario.query
    template = workloads.query_text(workloads.load("trains"), name)
    town, platform = client % TOWNS + 1, client // TOWNS % PLATFORMS + 1
    values = {**WINDOWS, "TOWN": town, "PLATFORM": platform}
    text = fill(template, {name: value for name, value in values.items() if f"${{{name}}}" in template})
    return _read(text), text


@lru_cache(maxsize=4096)
def _read(text: str) -> ContinuousQuery:
    return parse(text, "rspql")


def lasting(query: ContinuousQuery, static: Sequence[Triple]) -> ContinuousQuery:
    """The query over all that holds: what the fragments client is to answer."""
    windows = tuple(StreamWindow(each.stream, Window(SLIDE_MS, SLIDE_MS, "landmark")) for each in query.windows)
    return ContinuousQuery(query.form, windows, None, static, sparql=query.sparql)


def wish(scenario: Scenario, client: int) -> dict[str, Any]:
    """What registers a client's query at the service; all that it reads comes by the stream."""
    service = SERVICES[scenario.system]
    text = continuous(scenario, client)[1]
    return {"query": text, "dialect": "rspql", "semantics": service.semantics}
