"""The Extended Data Set of SEP-BM: values as people would give them, and three more statements about each person."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.workloads.university.terms import foaf, plain, ub
from streamgauge.workloads.university.words import Words

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
