"""A small university to publish in: facts, an ontology, queries, answers from scratch, a broker with a still clock."""

import pyoxigraph as ox

from streamgauge.model.algebra import BGP, Call, Filter
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query import parse_sparql
from streamgauge.query.printer import group, sparql
from streamgauge.reasoning import read_rules
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.strategies import begin
from tests.reasoning.naive import closure
from tests.reasoning.ontology import triples

ONTOLOGY = triples(
    ":Student rdfs:subClassOf :Person . :Grad rdfs:subClassOf :Person . :worksFor rdfs:subPropertyOf :memberOf ."
    ":memberOf owl:inverseOf :member . :partOf a owl:TransitiveProperty . :mail rdfs:domain :Person ."
    ":Student owl:intersectionOf ( :Person [ owl:onProperty :takes ; owl:someValuesFrom :Course ] ) ."
    ":advisor rdfs:range :Professor . :Professor rdfs:subClassOf :Person ."
)
RULES = read_rules(ONTOLOGY)
QUERIES = {
    "students": "?x a :Student",
    "named": "?x a :Student ; :name ?n",
    "whole": "?x a :Student ; :memberOf ?d . ?d :partOf ?u",
    "courses": "?x a :Student ; :takes ?c . ?c :name ?n",
    "triangle": "?x :advisor ?y . ?y :teaches ?c . ?x :takes ?c",
    "one": "?x :memberOf :d1 . ?x a :Person",
    "starts": '?x :name ?n FILTER regex(?n, "^(A|B)")',
    "either": "{ ?x a :Student ; :name ?n } UNION { ?x a :Professor ; :name ?n }",
}


def iri(name):
    return f"<urn:t:{name}>"


def fact(subject, predicate, end):
    return iri(subject), RDF_TYPE if predicate == "a" else iri(predicate), end if end[0] == '"' else iri(end)


def select(pattern):
    return f"PREFIX : <urn:t:> SELECT * {{ {pattern} }}"


def student(n, department=1):
    """The description of one student."""
    return (
        fact(f"s{n}", "a", "Grad"),
        fact(f"s{n}", "name", f'"{"ABCD"[n % 4]}{n}"'),
        fact(f"s{n}", "mail", f'"s{n}@d{department}.org"'),
        fact(f"s{n}", "memberOf", f"d{department}"),
        fact(f"s{n}", "takes", f"c{n % 3}"),
        fact(f"s{n}", "takes", f"c{(n + 1) % 3}"),
        fact(f"s{n}", "advisor", f"p{n % 2}"),
    )


BASE = (
    *(fact(f"c{n}", "a", "Course") for n in range(3)),
    *(fact(f"c{n}", "name", f'"Course {n}"') for n in range(3)),
    *(fact(f"p{n}", "teaches", f"c{n}") for n in range(2)),
    *(fact(f"p{n}", "name", f'"B. Professor {n}"') for n in range(2)),
    fact("d1", "partOf", "f1"),
    fact("d2", "partOf", "f1"),
    fact("f1", "partOf", "u1"),
)


def proper(rule):
    """No literal is a subject."""
    return Call("!", (Call("ISLITERAL", (rule.head.subject,)),))


def by_updates(rules, facts):
    """A store with the closure, by one SPARQL update a rule, again and again."""
    store = ox.Store()
    store.bulk_load("\n".join(f"{' '.join(fact)} ." for fact in facts).encode(), format=ox.RdfFormat.N_TRIPLES)
    before = 0
    while len(store) != before:
        before = len(store)
        for rule in rules.rules:
            head = group(BGP((rule.head,)))
            store.update(f"INSERT {head} WHERE {group(Filter(proper(rule), BGP(rule.body)))}")
    return store


def triples_in(store):
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in store}


def answers(facts):
    """The answer of each query over the closure of facts, from scratch."""
    store = ox.Store()
    lines = "\n".join(f"{' '.join(triple)} ." for triple in closure(RULES, facts))
    store.extend(ox.parse(lines, format=ox.RdfFormat.N_TRIPLES))
    return answered(store)


def answered(store):
    """The answer of each query."""
    return {name: rows(store, parse_sparql(select(pattern))) for name, pattern in QUERIES.items()}


def rows(store, form):
    return {tuple(str(solution[name]) for name in form.variables) for solution in store.query(sparql(form))}


class Clock:
    """Time that moves when it is told to."""

    def __init__(self):
        self.now = 0.0

    def steady(self):
        return self.now

    def wall(self):
        return int(self.now * 1000)


def broker(strategy="incremental", clock=None, rules=RULES, **more):
    clock = clock or Clock()
    return Broker(begin(strategy, rules), clock.wall, clock.steady, **more)


def listening(broker, names=QUERIES):
    """Channels for queries, and a subscriber of each."""
    for name in names:
        broker.create_channel(name, select(QUERIES[name]))
    return {name: broker.subscribe(name, "me", lambda: None) for name in names}
