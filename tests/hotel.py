"""A stream of reified observations of RDF 1.2: temperatures of a hotel's rooms, whose names have a base direction.

A reading is an asserted triple with a named reifier, which has the sensor, the time and the quality; each fifth is
disputed by a triple term within a triple term. What queries should answer is counted here from the readings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamgauge.model.terms import XSD, Row, Term, Triple, triple_term

NAMES: Final = ('"lobby"@en--ltr', '"\u05e1\u05e4\u05d0"@he--rtl', '"\u0627\u0644\u0628\u0627\u0631 (bar)"@ar--rtl')
BEGIN: Final = 1_772_352_000_000
"""2026-03-01T08:00:00Z, the time (ms) of the first reading; the others follow second by second."""
STREAM: Final = "http://example.org/hotel"
LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
PREFIXES: Final = """PREFIX : <http://example.org/hotel#>
PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
WINDOW: Final = f"FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT10S STEP PT5S]"
GOOD: Final = """<< ?room :temperature ?value ~ ?reading >> :quality ?quality . ?room rdfs:label ?name .
  OPTIONAL { ?audit :disputes ?claim . FILTER(SUBJECT(?claim) = ?reading) } FILTER(?quality >= 0.7)"""
SELECT: Final = f"{PREFIXES}SELECT ?room ?value ?reading ?name ?claim {WINDOW} WHERE {{ WINDOW :w {{ {GOOD} }} }}"
CONSTRUCT: Final = (
    f"{PREFIXES}CONSTRUCT {{ ?room :warm ?value ~ ?reading {{| :in ?name |}} . ?reading :against ?claim }} {WINDOW} "
    f"WHERE {{ WINDOW :w {{ {GOOD} }} }}"
)
STANDING: Final = f"{PREFIXES}SELECT ?room ?value ?reading ?name ?claim WHERE {{ {GOOD} }}"


def iri(name: str) -> Term:
    return f"<http://example.org/hotel#{name}>"


def decimal(number: float) -> Term:
    return f'"{number:.1f}"^^<{XSD}decimal>'


@dataclass(frozen=True)
class RoomReading:
    """A reading by its number, which is its second."""

    number: int

    @property
    def time(self) -> int:
        return BEGIN + 1000 * self.number

    @property
    def room(self) -> Term:
        return iri(f"room{self.number % 3}")

    @property
    def name(self) -> Term:
        return NAMES[self.number % 3]

    @property
    def value(self) -> Term:
        return decimal(18 + self.number * 7 % 11 + self.number % 10 / 10)

    @property
    def quality(self) -> float:
        return 0.5 + self.number % 5 / 10

    @property
    def reifier(self) -> Term:
        return iri(f"reading{self.number}")

    @property
    def claim(self) -> Term | None:
        """What an audit disputes, where one does: that the reading says its triple."""
        said = triple_term((self.room, iri("temperature"), self.value))
        return triple_term((self.reifier, iri("says"), said)) if self.number % 5 == 3 else None

    @property
    def row(self) -> Row:
        return (self.room, self.value, self.reifier, self.name, self.claim)

    @property
    def triples(self) -> Iterator[Triple]:
        """What CONSTRUCT makes of it."""
        yield self.room, iri("warm"), self.value
        yield (
            self.reifier,
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>",
            triple_term((self.room, iri("warm"), self.value)),
        )
        yield self.reifier, iri("in"), self.name
        if self.claim is not None:
            yield self.reifier, iri("against"), self.claim

    @property
    def turtle(self) -> str:
        """As people write it: an annotation of the triple."""
        value, second = self.value.split('"')[1], f"{self.number:02d}"
        audit = f":audit{self.number} :disputes {self.claim} .\n" if self.claim else ""
        return (
            f":room{self.number % 3} :temperature {value} ~ :reading{self.number} {{|\n"
            f'  sosa:madeBySensor :s{self.number % 4} ; sosa:resultTime "2026-03-01T08:00:{second}Z"^^xsd:dateTime ;\n'
            f"  :quality {self.quality:.1f} |}} .\n{self.room} rdfs:label {self.name} .\n{audit}"
        )


READINGS: Final = tuple(map(RoomReading, range(40)))


def log() -> str:
    """The stream as a log of messages in Turtle, a message for each reading."""
    return f'VERSION "1.2-messages"\n{PREFIXES}' + "MESSAGE\n".join(reading.turtle for reading in READINGS)


def document(readings: tuple[RoomReading, ...] = READINGS) -> str:
    """Readings as a document of Turtle."""
    return f'VERSION "1.2"\n{PREFIXES}' + "".join(reading.turtle for reading in readings)


def good(start: int, end: int) -> list[RoomReading]:
    """The readings of quality in [start, end) ms."""
    return [reading for reading in READINGS if start <= reading.time < end and reading.quality >= 0.7]
