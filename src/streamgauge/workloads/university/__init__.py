"""LUBM's universities, with SEP-BM's Extended Data Set and its twenty queries.

Guo, Pan and Heflin, LUBM: a benchmark for OWL knowledge base systems (2005): the same seed gives the same triples as
its published generator. Murth, Winkler, Biffl, Kühn and Moser, Performance testing of semantic publish/subscribe
systems (2010): the Extended Data Set and queries 15 to 20.
"""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.extras import missing
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.workloads import on_spark
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.java_random import next_int, scramble
from streamgauge.workloads.parameters import Parameter, ParameterError, duration, resolve, whole
from streamgauge.workloads.plan import TablePlan, unchanged

NAME = "university"
ABOUT = "LUBM's universities, an element per resource, plain or as SEP-BM's Extended Data Set."
QUERIES = Path(__file__).parent / "queries"
ONTOLOGY = Path(__file__).parent / "ontology.ttl"
"""The facts about classes and properties that the queries need."""

MAX_UNIVERSITIES = 1 << 20
"""Upper bound on the numbers of universities, and on the resources of one."""

TASKS = 1024
"""Maximum number of tasks that generate universities on Spark; by default one per university."""

PARAMETERS = {
    "universities": Parameter(whole, 1, "number of universities"),
    "first": Parameter(whole, 0, "index of the first university"),
    "extended": Parameter(str, "no", "no, or the names of the Extended Data Set: own (a small list) or census"),
    "interval": Parameter(duration, 1, "time between two resources (ms, or 1s)"),
}


def plan(seed: int, **parameters_: object) -> TablePlan:
    """The plan of the stream table (formats.stream.SCHEMA): an element for each resource, university by university.

    ParameterError names a parameter that is unknown or out of range.
    """
    values: dict[str, Any] = resolve(NAME, PARAMETERS, parameters_)
    first, count = values["first"], values["universities"]
    if first < 0 or not 1 <= count <= MAX_UNIVERSITIES - first:
        raise ParameterError(
            f"{NAME}: universities is {count}, first is {first}: give 1 or more with indexes below {MAX_UNIVERSITIES}"
        )
    if values["extended"] != "no":
        if values["extended"] not in LISTS:
            raise ParameterError(f"{NAME}: extended is {values['extended']!r}: choose from no, {', '.join(LISTS)}")
        # Loaded here for its error: tasks would find out one by one that the extra is missing.
        words(values["extended"])
    drawing = DrawnUniversities(seed, first, values["extended"], values["interval"])
    return TablePlan(count, count * _STATEMENTS, SCHEMA, SCHEMA, drawing, unchanged, _STATEMENTS)


generate = on_spark(plan, TASKS)

UB = "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#"
FOAF = "http://xmlns.com/foaf/0.1/"


def ub(name: str) -> Term:
    """A class or property of univ-bench."""
    return f"<{UB}{name}>"


def foaf(name: str) -> Term:
    """A property of foaf."""
    return f"<{FOAF}{name}>"


def plain(text: str) -> Term:
    """A plain literal; the text has neither quotes nor backslashes."""
    return f'"{text}"'


def typed(subject: Term, name: str) -> Triple:
    """The rdf:type triple of a resource with a class of univ-bench."""
    return subject, RDF_TYPE, ub(name)


def university(number: int) -> Term:
    """The IRI of a university, which the data may only mention."""
    return f"<http://www.University{number}.edu>"


@dataclass(frozen=True, slots=True)
class Words:
    """The word lists for values of the Extended Data Set."""

    first: tuple[str, ...]
    last: tuple[str, ...]
    places: tuple[str, ...]
    subjects: tuple[str, ...]
    manners: tuple[str, ...]


LISTS = ("own", "census")


@cache
def words(name: str) -> Words:
    """``own``: the small list; ``census``: US names of 1990, ParameterError if the extra is not installed."""
    text = (resources.files(__package__) / "words.toml").read_text(encoding="utf-8")
    own = Words(**{key: tuple(listed.split()) for key, listed in tomllib.loads(text).items()})
    if name == "own":
        return own
    if lack := missing("names"):
        raise ParameterError(f"university: {lack}")
    folder = resources.files("names")
    first = _column(folder, "dist.female.first") + _column(folder, "dist.male.first")
    return replace(own, first=first, last=_column(folder, "dist.all.last"))


def _column(folder: Traversable, name: str) -> tuple[str, ...]:
    """The names in the first column of a census file, which has them in capitals."""
    lines = (folder / name).read_text(encoding="ascii").splitlines()
    return tuple(line.split()[0].capitalize() for line in lines if line.strip())


class Random:
    """``java.util.Random`` with the draws of LUBM's generator; the same seed gives the same numbers as in Java."""

    def __init__(self, seed: int) -> None:
        self._state = scramble(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1."""
        self._state, drawn = next_int(self._state, bound)
        return drawn

    def within(self, least: int, upper: int) -> int:
        """A random integer from ``least`` to ``upper``, both included."""
        return least + self.below(upper - least + 1)

    def some(self, count: int, upper: int) -> list[int]:
        """Distinct integers from 0 to ``upper``, in the order of drawing."""
        # As LUBM draws without repetition, so that the generator makes as many steps.
        left = list(range(upper + 1))
        return [left.pop(self.within(0, len(left) - 1)) for _ in range(count)]


def seed_of(base: int, university: int) -> int:
    """The seed of one university: the generator's product, wrapped to 64 bits as in Java; its index for base 0."""
    return (base * -(1 << 31) + university) & ((1 << 64) - 1)


PROFESSORS = ("FullProfessor", "AssociateProfessor", "AssistantProfessor")
SIZES = {"FullProfessor": (7, 10), "AssociateProfessor": (10, 14), "AssistantProfessor": (8, 11), "Lecturer": (5, 7)}
PUBLICATIONS = {
    "FullProfessor": (15, 20),
    "AssociateProfessor": (10, 18),
    "AssistantProfessor": (5, 10),
    "Lecturer": (0, 5),
}
UNIVERSITIES = 1000
"""The number of universities that may have awarded a degree."""

INTERESTS = 30
POOL = 100
"""The number of courses of each kind that a department may offer."""


@dataclass
class Department:
    """The drawn sizes of a department, by class; courses and publications are added while it is described."""

    number: int
    of: int
    random: Random
    sizes: dict[str, int]
    students: int
    graduates: int
    assistants: tuple[int, int]
    groups: int
    chair: int
    courses: int = 0
    graduate_courses: int = 0
    publications: list[tuple[Term, str, list[Term]]] = field(default_factory=list)

    @property
    def host(self) -> str:
        """The host name of the department."""
        return f"Department{self.number}.University{self.of}.edu"

    @property
    def iri(self) -> Term:
        """The IRI of the department."""
        return f"<http://www.{self.host}>"

    def member(self, name: str) -> Term:
        """The IRI of a member of the department."""
        return f"<http://www.{self.host}/{name}>"


def descriptions(number: int, seed: int) -> Iterator[list[Triple]]:
    """The triples about each resource of a university in LUBM's order, repetitions included."""
    random = Random(seed_of(seed, number))
    departments = random.within(15, 25)
    yield [typed(university(number), "University"), (university(number), ub("name"), plain(f"University{number}"))]
    for index in range(departments):
        department = _drawn(index, number, random)
        yield [
            typed(department.iri, "Department"),
            (department.iri, ub("name"), plain(f"Department{index}")),
            *_at(department.iri, "subOrganizationOf", number),
        ]
        yield from _people(department)
        yield from _rest(department)


def _drawn(number: int, of: int, random: Random) -> Department:
    sizes = {name: random.within(*bounds) for name, bounds in SIZES.items()}
    # The order of draws is LUBM's, as each one depends on those before.
    faculty = sum(sizes.values())
    students = random.within(8 * faculty, 14 * faculty)
    graduates = random.within(3 * faculty, 4 * faculty)
    teaching = random.within(graduates // 5, graduates // 4)
    research = random.within(graduates // 4, graduates // 3)
    groups, chair = random.within(10, 20), random.below(sizes["FullProfessor"])
    return Department(number, of, random, sizes, students, graduates, (teaching, research), groups, chair)


def _at(subject: Term, relation: str, number: int) -> list[Triple]:
    """A relation to a university, and the type of that university."""
    return [(subject, ub(relation), university(number)), typed(university(number), "University")]


def _people(department: Department) -> Iterator[list[Triple]]:
    for kind, count in department.sizes.items():
        for number in range(count):
            yield _faculty(department, kind, number)
    for number in range(department.students):
        yield _student(department, number)
    for number in range(department.graduates):
        yield _graduate(department, number)


def _person(department: Department, kind: str, number: int, relation: str) -> tuple[Term, list[Triple], list[Triple]]:
    """(resource, type and name, affiliation and contact data) of a person."""
    person = department.member(f"{kind}{number}")
    first = [typed(person, kind), (person, ub("name"), plain(f"{kind}{number}"))]
    reach = [
        (person, ub(relation), department.iri),
        (person, ub("emailAddress"), plain(f"{kind}{number}@{department.host}")),
        (person, ub("telephone"), plain("xxx-xxx-xxxx")),
    ]
    return person, first, reach


def _faculty(department: Department, kind: str, number: int) -> list[Triple]:
    random = department.random
    person, triples, reach = _person(department, kind, number, "worksFor")
    for course in _courses(random, department.courses):
        triples.append((person, ub("teacherOf"), department.member(f"Course{course}")))
        department.courses += 1
    for course in _courses(random, department.graduate_courses):
        triples.append((person, ub("teacherOf"), department.member(f"GraduateCourse{course}")))
        department.graduate_courses += 1
    for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
        triples += _at(person, degree, random.below(UNIVERSITIES))
    triples += reach
    if kind in PROFESSORS:
        triples.append((person, ub("researchInterest"), plain(f"Research{random.below(INTERESTS)}")))
    if kind == "FullProfessor" and number == department.chair:
        triples.append((person, ub("headOf"), department.iri))
    for publication in range(random.within(*PUBLICATIONS[kind])):
        name = f"{kind}{number}/Publication{publication}"
        department.publications.append((department.member(name), f"Publication{publication}", [person]))
    return triples


def _courses(random: Random, begin: int) -> range:
    """The next one or two courses of the pool."""
    count = random.within(1, 2)
    for taken in range(begin, begin + count):
        # LUBM draws one of the remaining courses. All are alike, but the draw moves the generator on.
        random.within(0, POOL - taken - 1)
    return range(begin, begin + count)


def _student(department: Department, number: int) -> list[Triple]:
    random = department.random
    person, first, reach = _person(department, "UndergraduateStudent", number, "memberOf")
    triples = first + reach
    taken = random.some(random.within(2, 4), department.courses - 1)
    triples += [(person, ub("takesCourse"), department.member(f"Course{course}")) for course in taken]
    if random.below(5) == 0:
        triples.append(_advised(department, person))
    return triples


def _graduate(department: Department, number: int) -> list[Triple]:
    random = department.random
    person, first, reach = _person(department, "GraduateStudent", number, "memberOf")
    triples = first + reach
    taken = random.some(random.within(1, 3), department.graduate_courses - 1)
    triples += [(person, ub("takesCourse"), department.member(f"GraduateCourse{course}")) for course in taken]
    triples += _at(person, "undergraduateDegreeFrom", random.below(UNIVERSITIES))
    # LUBM draws whether a graduate has an advisor, although all of them have: only the generator's state changes.
    random.below(1)
    triples.append(_advised(department, person))
    for publication in random.some(random.within(0, 5), len(department.publications) - 1):
        # Publications are described after all people, so that all of their authors are known by then.
        department.publications[publication][2].append(person)
    return triples


def _advised(department: Department, person: Term) -> Triple:
    kind = PROFESSORS[department.random.within(0, len(PROFESSORS) - 1)]
    number = department.random.below(department.sizes[kind])
    return person, ub("advisor"), department.member(f"{kind}{number}")


def _rest(department: Department) -> Iterator[list[Triple]]:
    for number in range(department.groups):
        group = department.member(f"ResearchGroup{number}")
        yield [typed(group, "ResearchGroup"), (group, ub("subOrganizationOf"), department.iri)]
    for publication, name, authors in department.publications:
        triples = [typed(publication, "Publication"), (publication, ub("name"), plain(name))]
        yield triples + [(publication, ub("publicationAuthor"), author) for author in authors]
    for kind, count in (("Course", department.courses), ("GraduateCourse", department.graduate_courses)):
        for number in range(count):
            course = department.member(f"{kind}{number}")
            yield [typed(course, kind), (course, ub("name"), plain(f"{kind}{number}"))]
    yield from _assistants(department)


def _assistants(department: Department) -> Iterator[list[Triple]]:
    teaching, research = department.assistants
    chosen = department.random.some(teaching + research, department.graduates - 1)
    courses = department.random.some(teaching, department.courses - 1)
    yield from (_teaching(department, *pair) for pair in zip(chosen, courses, strict=False))
    yield from ([typed(_graduate_iri(department, number_), "ResearchAssistant")] for number_ in chosen[teaching:])


def _teaching(department: Department, graduate: int, course: int) -> list[Triple]:
    person = _graduate_iri(department, graduate)
    return [
        typed(person, "TeachingAssistant"),
        (person, ub("teachingAssistantOf"), department.member(f"Course{course}")),
    ]


def _graduate_iri(department: Department, number: int) -> Term:
    return department.member(f"GraduateStudent{number}")


_PERSON = ub("emailAddress")
_NAME, _PHONE = ub("name"), ub("telephone")


class Chosen:
    """Draws for one resource that depend only on the seed and its IRI."""

    def __init__(self, seed: int, resource: Term) -> None:
        self._bits = int.from_bytes(blake2b(f"{seed} {resource}".encode(), digest_size=32).digest())

    def of(self, choices: Sequence[str]) -> str:
        """One of the choices."""
        return choices[self.below(len(choices))]

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1; its bias is below bound / 2^160."""
        # 256 bits as a number in a mixed base: each draw takes one digit off.
        self._bits, remainder = divmod(self._bits, bound)
        return remainder


def extended(descriptions: Iterable[list[Triple]], seed: int, words: Words) -> Iterator[list[Triple]]:
    """The descriptions with the Extended Data Set's names, addresses, telephone numbers and titles."""
    for description in descriptions:
        subject = description[0][0]
        # The first triple of a description is the resource's type.
        kind = description[0][2]
        if any(predicate == _PERSON for _, predicate, _ in description):
            yield _extended_person(description, Chosen(seed, subject), words)
        elif kind == ub("Publication") and description[0][1] == RDF_TYPE:
            yield _named(description, _title(Chosen(seed, subject), words))
        elif kind == ub("University") and description[0][1] == RDF_TYPE:
            yield _named(description, f"University of {Chosen(seed, subject).of(words.places)}")
        else:
            yield description


def _extended_person(triples: list[Triple], chosen: Chosen, words: Words) -> list[Triple]:
    subject = triples[0][0]
    first, last = chosen.of(words.first), chosen.of(words.last)
    phone = f"+1-{200 + chosen.below(800)}-{200 + chosen.below(800)}-{chosen.below(10_000):04}"
    host = next(value for _, predicate, value in triples if predicate == _PERSON).rpartition("@")[2].rstrip('"')
    address = f"{first}.{last}@{host}".lower()
    values = {_NAME: plain(f"{first} {last}"), _PERSON: plain(address), _PHONE: plain(phone)}
    more = [
        (subject, foaf("firstName"), plain(first)),
        (subject, foaf("surname"), plain(last)),
        (subject, foaf("mbox"), f"<mailto:{address}>"),
    ]
    return [(s, p, values.get(p, o)) for s, p, o in triples] + more


def _title(chosen: Chosen, words: Words) -> str:
    first, second = chosen.of(words.subjects), chosen.of(words.subjects)
    return f"{chosen.of(words.manners)} {first} and {chosen.of(words.manners)} {second}, Part {1 + chosen.below(9)}"


def _named(triples: list[Triple], name: str) -> list[Triple]:
    return [(s, p, plain(name) if p == _NAME else o) for s, p, o in triples]


STREAM: Final = "http://ex.org/streams/university"
BITS: Final = 20
"""Low bits of a sequence number that count resources; the high bits are the university's index."""

_ROWS = 50_000
_STATEMENTS = 130_000
"""The approximate number of triples of one university with the Extended Data Set."""


@dataclass(frozen=True, slots=True)
class DrawnUniversities:
    """Draws universities from index ``first`` on, resources ``interval`` ms apart; ``names``: see ``words``."""

    seed: int
    first: int
    names: str
    interval: int

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The rows of the universities with these ids."""
        for order in ids.tolist():
            yield from _batches(self.first + order, self.seed, self.names, self.interval, order)


def described(number: int, seed: int, names: str = "no") -> Iterator[list[Triple]]:
    """The triples of each resource of one university, plain or of the Extended Data Set."""
    triples = descriptions(number, seed)
    return triples if names == "no" else extended(triples, seed, words(names))


def _batches(number: int, seed: int, names: str, interval: int, order: int) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[int, int, Triple]] = []
    for at, triples in enumerate(described(number, seed, names)):
        rows += [(at, position, triple) for position, triple in enumerate(triples)]
        # Between two resources, so that a batch has whole elements.
        if len(rows) >= _ROWS:
            yield _batch(rows, order, interval)
            rows = []
    if rows:
        yield _batch(rows, order, interval)


def _batch(rows: list[tuple[int, int, Triple]], order: int, interval: int) -> pa.RecordBatch:
    # A university's resources have a range of their own, so that tasks need not know how many those before have made.
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
