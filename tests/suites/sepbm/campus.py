"""A small configuration: facts of a campus, an ontology that joins and runs in circles, publications drawn."""

import random

from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import About, SepbmChannel, read, triples_text, write
from streamgauge.suites.sepbm.selection import varied
from tests.reasoning.ontology import triples

ONTOLOGY = triples(
    ":Student rdfs:subClassOf :Person . :Grad rdfs:subClassOf :Person . :worksFor rdfs:subPropertyOf :memberOf ."
    ":memberOf owl:inverseOf :member . :partOf a owl:TransitiveProperty . :mail rdfs:domain :Person ."
    ":Student owl:intersectionOf ( :Person [ owl:onProperty :takes ; owl:someValuesFrom :Course ] ) ."
    ":advisor rdfs:range :Professor . :Professor rdfs:subClassOf :Person . :near a owl:SymmetricProperty ."
    ":near a owl:TransitiveProperty ."
)
PATTERNS = {
    "students": "SELECT ?x { ?x a :Student }",
    "named": "SELECT ?x ?n { ?x a :Student ; :name ?n }",
    "whole": "SELECT ?x ?u { ?x a :Student ; :memberOf ?d . ?d :partOf ?u }",
    "courses": "SELECT ?x ?c { ?x a :Student ; :takes ?c . ?c :name ?n }",
    "triangle": "SELECT ?x ?y ?c { ?x :advisor ?y . ?y :teaches ?c . ?x :takes ?c }",
    "one": "SELECT ?x { ?x :memberOf :d1 . ?x a :Person }",
    "starts": 'SELECT ?x { ?x :name ?n FILTER regex(?n, "^(A|B)") }',
    "either": "SELECT ?x ?n { { ?x a :Student ; :name ?n } UNION { ?x a :Professor ; :name ?n } }",
    "alone": "SELECT ?x ?m { ?x a :Person OPTIONAL { ?x :mail ?m } }",
    "near": "SELECT ?y { :d0 :near ?y }",
}
CHANNELS = tuple(SepbmChannel(name, f"PREFIX : <urn:t:> {text}") for name, text in PATTERNS.items())
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name):
    return f"<urn:t:{name}>"


def pool():
    """All facts that may stand."""
    for n in range(4):
        yield from ((iri(f"s{n}"), TYPE, iri(kind)) for kind in ("Grad", "Person", "Professor"))
        yield from ((iri(f"s{n}"), iri("name"), f'"{letter}{n}"') for letter in "ABZ")
        yield from ((iri(f"s{n}"), iri("takes"), iri(f"c{m}")) for m in range(2))
        yield from ((iri(f"s{n}"), iri(link), iri(f"d{n % 3}")) for link in ("memberOf", "worksFor"))
        yield iri(f"s{n}"), iri("advisor"), iri(f"s{3 - n}")
        yield iri(f"s{n}"), iri("mail"), f'"s{n}@x.org"'
        yield iri(f"s{n}"), iri("teaches"), iri(f"c{n % 2}")
        yield iri(f"d{n}"), iri("partOf"), iri(f"d{n + 1}")
        yield iri(f"d{n}"), iri("near"), iri(f"d{(n + 1) % 3}")
    yield from ((iri(f"c{n}"), TYPE, iri("Course")) for n in range(2))
    yield from ((iri(f"c{n}"), iri("name"), f'"A{n}"') for n in range(2))


def drawn(folder, seed, publications, names=tuple(PATTERNS)):
    """A configuration whose publications add and remove facts of the pool, there or not; with channels of these names.

    Those alike come with them.
    """
    draw, facts = random.Random(seed), sorted(pool())
    sequence = [
        Publication(n, *(tuple(draw.sample(facts, draw.choice((0, 1, 1, 2, 5)))) for _ in range(2)))
        for n in range(1, publications + 1)
    ]
    alike = {name: entry for name, entry in alike_channels() if entry[1] in names}
    own = (channel for channel in CHANNELS if channel.name in names)
    channels = (*own, *(channel for channel, _, _ in alike.values()))
    about = About({}, {name: (of, value) for name, (_, of, value) in alike.items()})
    write(folder, about, ONTOLOGY, channels, sequence)
    (folder / "base.nt").write_text(triples_text(sorted(draw.sample(facts, len(facts) // 2))))
    return read(folder)


def alike_channels():
    """Channels alike for values that are there, and for one that is not."""
    values = {"whole": "d2 d3", "triangle": "s1 s2", "one": "d2 nowhere", "courses": "c0 c1", "near": "d1 d2"}
    for channel in CHANNELS:
        shape = varied(channel.form)
        for value in map(iri, values.get(channel.name, "").split()):
            name = f"{channel.name}-{value[7:-1]}"
            yield name, (shape.channel(name, value), channel.name, value)
    named = next(entry for entry in CHANNELS if entry.name == "either")
    yield "either-A1", (varied(named.form).channel("either-A1", '"A1"'), "either", '"A1"')
