"""Universities as the stream table, and the Extended Data Set of SEP-BM: text values and more statements a person."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.plan import TablePlan, unchanged
from streamgauge.workloads.university.departments import Words, descriptions, foaf, plain, ub, words

_PERSON = ub("emailAddress")
_NAME, _PHONE = ub("name"), ub("telephone")


class Chosen:
    """Draws for one resource that follow from the seed and its IRI alone."""

    def __init__(self, seed: int, resource: Term) -> None:
        self._bits = int.from_bytes(blake2b(f"{seed} {resource}".encode(), digest_size=32).digest())

    def of(self, choices: Sequence[str]) -> str:
        """One of the choices."""
        return choices[self.below(len(choices))]

    def below(self, bound: int) -> int:
        """A whole number below a bound; its bias is below bound / 2^160."""
        self._bits, found = divmod(self._bits, bound)
        return found


def extended(descriptions: Iterable[list[Triple]], seed: int, words: Words) -> Iterator[list[Triple]]:
    """The descriptions with people's names, addresses and telephones, titles, and universities' names."""
    for said in descriptions:
        subject = said[0][0]
        kind = said[0][2]
        if any(predicate == _PERSON for _, predicate, _ in said):
            yield _person(said, Chosen(seed, subject), words)
        elif kind == ub("Publication") and said[0][1] == RDF_TYPE:
            yield _named(said, _title(Chosen(seed, subject), words))
        elif kind == ub("University") and said[0][1] == RDF_TYPE:
            yield _named(said, f"University of {Chosen(seed, subject).of(words.places)}")
        else:
            yield said


def _person(said: list[Triple], chosen: Chosen, words: Words) -> list[Triple]:
    subject = said[0][0]
    first, last = chosen.of(words.first), chosen.of(words.last)
    phone = f"+1-{200 + chosen.below(800)}-{200 + chosen.below(800)}-{chosen.below(10_000):04}"
    host = next(value for _, predicate, value in said if predicate == _PERSON).rpartition("@")[2].rstrip('"')
    address = f"{first}.{last}@{host}".lower()
    values = {_NAME: plain(f"{first} {last}"), _PERSON: plain(address), _PHONE: plain(phone)}
    more = [
        (subject, foaf("firstName"), plain(first)),
        (subject, foaf("surname"), plain(last)),
        (subject, foaf("mbox"), f"<mailto:{address}>"),
    ]
    return [(s, p, values.get(p, o)) for s, p, o in said] + more


def _title(chosen: Chosen, words: Words) -> str:
    first, second = chosen.of(words.subjects), chosen.of(words.subjects)
    return f"{chosen.of(words.manners)} {first} and {chosen.of(words.manners)} {second}, Part {1 + chosen.below(9)}"


def _named(said: list[Triple], name: str) -> list[Triple]:
    return [(s, p, plain(name) if p == _NAME else o) for s, p, o in said]


STREAM: Final = "http://ex.org/streams/university"
BITS: Final = 20
"""A resource's sequence number is its university's number, then its own in so many bits."""

_ROWS = 50_000
_STATEMENTS = 130_000
"""The approximate size of one university: its statements, with those of the Extended Data Set about its people."""


def stream_plan(seed: int, values: dict[str, Any]) -> TablePlan:
    """The plan of ``values["universities"]`` from the number ``values["first"]`` on; an id is a university."""
    count = values["universities"]
    drawing = DrawnUniversities(seed, values["first"], values["extended"], values["interval"])
    return TablePlan(count, count * _STATEMENTS, SCHEMA, SCHEMA, drawing, unchanged, _STATEMENTS)


@dataclass(frozen=True, slots=True)
class DrawnUniversities:
    """Universities from the number ``first`` on, their resources ``interval`` ms apart; ``names``: see ``words``."""

    seed: int
    first: int
    names: str
    interval: int

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The rows of some universities."""
        for order in ids.tolist():
            yield from _batches(self.first + order, self.seed, self.names, self.interval, order)


def described(number: int, seed: int, names: str = "no") -> Iterator[list[Triple]]:
    """The statements of each resource of one university, plain or of the Extended Data Set."""
    found = descriptions(number, seed)
    return found if names == "no" else extended(found, seed, words(names))


def _batches(number: int, seed: int, names: str, interval: int, order: int) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[int, int, Triple]] = []
    for at, said in enumerate(described(number, seed, names)):
        rows += [(at, position, triple) for position, triple in enumerate(said)]
        if len(rows) >= _ROWS:
            yield _batch(rows, order, interval)
            rows = []
    if rows:
        yield _batch(rows, order, interval)


def _batch(rows: list[tuple[int, int, Triple]], order: int, interval: int) -> pa.RecordBatch:
    sequences = [(order << BITS) + at for at, _, _ in rows]
    subjects, predicates, objects = zip(*(triple for _, _, triple in rows), strict=True)
    columns = [
        [STREAM] * len(rows),
        [interval * sequence for sequence in sequences],
        sequences,
        [position for _, position, _ in rows],
        subjects,
        predicates,
        objects,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
