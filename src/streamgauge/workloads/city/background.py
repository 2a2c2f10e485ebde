"""Static data of the city: each sensor with what it observes and where, then cultural and library events.

Where a sensor lies is drawn, also for CityBench's files. Events fill up to the number of triples wanted.
"""

from collections.abc import Mapping
from functools import partial
from math import ceil

import pyarrow as pa

from streamgauge.model.terms import RDF_TYPE
from streamgauge.workloads import draws
from streamgauge.workloads.background import Section, background_plan
from streamgauge.workloads.city.model import CITY, CT, KINDS, SAO, SSN
from streamgauge.workloads.city.readings import place
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.plan import TablePlan
from streamgauge.workloads.rows import Statement, formatted, integers, text

_EVENT = 7


def least(sensors: Mapping[str, int]) -> int:
    """How many triples say what belongs to the sensors: four for each, three for each property."""
    return sum(_triples(kind) * number for kind, number in sensors.items())


def _triples(kind: str) -> int:
    return 4 + 3 * len(KINDS[kind])


def static_plan(seed: int, sensors: Mapping[str, int], wanted: int) -> TablePlan:
    """The plan of ``wanted`` different triples."""
    sections = [Section(1, number, _triples(kind), partial(_sensor, seed, kind)) for kind, number in sensors.items()]
    events = Section(0, ceil((wanted - least(sensors)) / _EVENT), _EVENT, partial(_event, seed))
    return background_plan((), (*sections, events), wanted)


def _sensor(seed: int, kind: str, ids: Ints) -> list[Statement]:
    sensor, where = _iri(f"{kind}-", ids), _iri(f"{kind}-", ids, "/place")
    latitude, longitude = place(seed, kind, ids)
    found = [
        Statement(sensor, RDF_TYPE, text(len(ids), f"<{SSN}Sensor>")),
        Statement(where, RDF_TYPE, text(len(ids), f"<{SSN}FeatureOfInterest>")),
        Statement(where, f"<{CT}hasStartLatitude>", latitude),
        Statement(where, f"<{CT}hasStartLongitude>", longitude),
    ]
    for name in KINDS[kind]:
        observed = _iri(f"{kind}-", ids, f"/{name}")
        found += [
            Statement(sensor, f"<{SSN}observes>", observed),
            Statement(observed, RDF_TYPE, text(len(ids), f"<{CT}{name}>")),
            Statement(observed, f"<{SSN}isPropertyOf>", where),
        ]
    return found


def _event(seed: int, ids: Ints) -> list[Statement]:
    """Every fifth event is a library's, the others are cultural; a ticket costs 0 to 499."""
    event, node, (latitude, longitude) = _iri("event-", ids), _iri("event-", ids, "/node"), place(seed, "event", ids)
    return [
        Statement(event, RDF_TYPE, formatted(ids % 5, lambda n: f"<{CT}{'Library' if n == 1 else 'Cultural'}Event>")),
        Statement(event, f"<{SAO}value>", text(len(ids), '"Event ', ids, '"')),
        Statement(event, f"<{CT}hasFirstNode>", node),
        Statement(node, f"<{CT}hasLatitude>", latitude),
        Statement(node, f"<{CT}hasLongitude>", longitude),
        Statement(event, f"<{CT}hasPrice>", integers(draws.below(500, seed, "price", ids))),
        Statement(event, f"<{SSN}featureOfInterest>", _iri("event-", ids, "/place")),
    ]


def _iri(kind: str, ids: Ints, rest: str = "") -> pa.Array:
    return text(len(ids), f"<{CITY}{kind}", ids, f"{rest}>")
