"""The scenarios of the TPF Query Streamer's experiment, in full and quick."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from streamgauge.suites.crowds.scenario import BROKER, PAPER, SERVICES, Scenario
from streamgauge.workloads.trains import PROPERTIES

CACHES: Final = {
    "streamer": "with cache",
    "streamer-no-cache": "without cache",
    "streamer-prototype-off": "the prototype's off",
}
"""How the plan of the paper is run."""

METHODS: Final = ("graphs", "singleton", "implicit")
"""The paper's three."""

LABELS: Final = ("interval", "expiration")

FRAGMENTS: Final = ("incremental", "streamer", "streamer-no-cache", "streamer-prototype-off", "polling")
WINDOWED: Final = tuple(SERVICES)
PUSHED: Final = (*WINDOWED, BROKER)
"""Systems that push their answers instead of being polled."""

FOREIGN: Final = ("csparql", "cqels")
HERD: Final = 1000
POLL_MS: Final = 1000
"""Of clients that poll blindly."""


@dataclass(frozen=True, slots=True)
class TpfExtent:
    """The extent of a measurement: clients, seconds of each, of each annotation, its update (s); foreign processes.

    ``processes`` bounds distinct queries of engines that are programs: each is a process of its own behind the service.
    ``each``: how many seconds longer it lasts for each client, as all have to start. ``systems`` take part in figures 2
    and 3, ``parts`` are done unless others are named.
    """

    clients: tuple[int, ...]
    distinct: tuple[int, ...]
    seconds: int
    iterating: int
    update: str
    processes: int
    each: float
    systems: tuple[str, ...]
    parts: tuple[str, ...]


PARTS: Final = ("scaling", "annotations", "static", "proxy", "herd", "capacity")
"""Of the experiment, which may be done one by one."""

FULL: Final = TpfExtent(
    tuple(range(10, 201, 10)), (10, 50, 100, 150, 200), 60, 75, "10s", 50, 0.3, (*FRAGMENTS, *PUSHED), PARTS
)
QUICK: Final = TpfExtent(
    (10, 50, 200), (10, 50, 200), 32, 25, "4s", 10, 0.3,
    ("incremental", "streamer", "live-csparql", *FOREIGN, BROKER), ("scaling", "annotations", "static"),
)  # fmt: skip


def scaling(extent: TpfExtent, systems: tuple[str, ...]) -> Iterator[Scenario]:
    """Figures 2 and 3: both sides' cost against the number of clients, with identical and distinct queries."""
    there = [system for system in extent.systems if system in systems]
    for clients, system in product(extent.clients, there):
        yield scaled(extent, system, clients, distinct=False)
    for clients, system in product(extent.distinct, there):
        if system not in FOREIGN or clients <= extent.processes:
            yield scaled(extent, system, clients, distinct=True)


def scaled(extent: TpfExtent, system: str, clients: int, *, distinct: bool) -> Scenario:
    """A system with so many clients; a third of the time they start one after the other.

    Engines with windows get all five properties with each update, as the paper's baselines were fed.
    """
    seconds = extent.seconds + round(extent.each * clients)
    usual = Scenario(system, clients, distinct, seconds, spread=seconds / 3)
    if system == "polling":
        return replace(usual, renewal="plain", period=POLL_MS)
    if system in SERVICES:
        return replace(usual, workload=(*usual.workload, ("dynamic", ",".join(PROPERTIES))))
    return usual


def annotations(extent: TpfExtent) -> Iterator[Scenario]:
    """Figure 4: a client, by annotation method, label and cache, renewed as the prototype does."""
    for method, label, system in product(METHODS, LABELS, CACHES):
        yield annotated(extent, method, label, system, "published")
    for label in LABELS:
        yield annotated(extent, "graphs", label, "incremental", "kept")


def annotated(extent: TpfExtent, method: str, label: str, system: str, renewal: str) -> Scenario:
    """One client of a data set that is annotated so."""
    workload = {**PAPER, "update": extent.update, "per_hour": 25, "speedup": 60}
    return Scenario(
        system, 1, False, extent.iterating, method, label, renewal, jitter=0.0, spread=0.0,
        workload=tuple(workload.items()),
    )  # fmt: skip


def static_patterns(extent: TpfExtent) -> Iterator[Scenario]:
    """Hypothesis 3: 0 to 4 of the five patterns static, with the cache and without; five need no second poll."""
    for number, system in product(range(len(PROPERTIES)), CACHES):
        yield with_static(extent, number, system)


def with_static(extent: TpfExtent, number: int, system: str) -> Scenario:
    """One client, whose query has so many static patterns; the board is a prototype's, 25 departures."""
    dynamic = ",".join(PROPERTIES[: len(PROPERTIES) - number])
    workload = {**PAPER, "update": extent.update, "per_hour": 25, "dynamic": dynamic}
    return Scenario(
        system, 1, False, extent.iterating, jitter=0.0, spread=0.0, workload=tuple(workload.items())
    )  # fmt: skip


def herd(extent: TpfExtent) -> tuple[Scenario, ...]:
    """A thousand clients with one expiration a minute, with jitter and without; they start in the first 80 s.

    A client's start and a poll cost its process some 40 and 8 ms of CPU: with less time a small machine measures those.
    """
    workload = tuple({**PAPER, "update": "60s"}.items())
    seconds = max(200, 3 * extent.seconds)
    return tuple(
        Scenario("incremental", HERD, seconds=seconds, spread=80.0, jitter=jitter, workload=workload)
        for jitter in (0.1, 0.0)
    )


def proxied(extent: TpfExtent) -> Iterator[Scenario]:
    """A cache in front: one client, 200 of one query, 200 of distinct ones."""
    for clients, distinct in ((1, False), (200, False), (200, True)):
        yield replace(scaled(extent, "incremental", clients, distinct=distinct), proxy=True)
