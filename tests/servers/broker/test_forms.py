"""Forms and features of SPARQL 1.1 in channels: each is answered exactly, or refused by name when a channel is made."""

import json
from functools import lru_cache
from random import Random

import pytest

from streamgauge.formats.streams import FormatError
from streamgauge.model.algebra import graph_of
from streamgauge.model.fact import in_graph, parted
from streamgauge.query import QueryError, parse_sparql
from streamgauge.reasoning.closure import NO_RULES
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import ExistingChannelError
from streamgauge.servers.broker.contract import Opened
from streamgauge.servers.broker.delivery import NotificationTexts
from streamgauge.servers.broker.limits import LimitError, Limits, read_changes, read_files
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.broker.strategies import begin
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.needs import TooManySolutionsError
from tests.servers.broker.served import TURTLE, Client
from tests.servers.broker.world import Clock

P, Q = "?s <urn:p> ?v", "?s <urn:q> ?w"
ANSWERED = {
    "SELECT": f"SELECT ?s ?v {{ {P} }}",
    "SELECT *": f"SELECT * {{ {P} }}",
    "SELECT expression": f"SELECT (?v + 1 AS ?n) {{ {P} }}",
    "SELECT DISTINCT": f"SELECT DISTINCT ?v {{ {P} }}",
    "SELECT REDUCED": f"SELECT REDUCED ?v {{ {P} }}",
    "ASK": f"ASK {{ {P} . {Q} }}",
    "ASK that is never true": "ASK { ?s <urn:none> ?o }",
    "CONSTRUCT": f"CONSTRUCT {{ ?s <urn:has> ?v . <urn:x> <urn:y> ?s }} WHERE {{ {P} }}",
    "CONSTRUCT of nothing": f"CONSTRUCT {{ }} WHERE {{ {P} GRAPH ?g {{ {Q} }} }}",
    "CONSTRUCT WHERE": f"CONSTRUCT WHERE {{ {P} }}",
    "CONSTRUCT where some triples are none": f"CONSTRUCT {{ ?v <urn:of> ?s }} WHERE {{ {P} }}",
    "group graph pattern": f"SELECT * {{ {{ {P} }} {{ {Q} }} }}",
    "OPTIONAL": f"SELECT * {{ {P} OPTIONAL {{ {Q} FILTER(?w > ?v) }} }}",
    "UNION": f"SELECT * {{ {{ {P} }} UNION {{ {Q} }} }}",
    "MINUS": f"SELECT * {{ {P} MINUS {{ {Q} }} }}",
    "FILTER": f"SELECT * {{ {P} FILTER(?v > 0 && isNumeric(?v)) }}",
    "FILTER EXISTS": f"SELECT * {{ {P} FILTER EXISTS {{ {Q} }} }}",
    "FILTER NOT EXISTS": f"SELECT * {{ {P} FILTER NOT EXISTS {{ {Q} }} }}",
    "BIND": f"SELECT * {{ {P} BIND(STR(?v) AS ?t) }}",
    "VALUES": f"SELECT * {{ VALUES ?v {{ 0 1 }} {P} }}",
    "VALUES at the end": f"SELECT * {{ {P} }} VALUES ?v {{ 1 }}",
    "subquery": f"SELECT * {{ {Q} {{ SELECT ?s (COUNT(*) AS ?n) {{ {P} }} GROUP BY ?s }} }}",
    "sequence path": "SELECT * { ?s <urn:r>/<urn:p> ?v }",
    "inverse path": "SELECT * { ?s ^<urn:r> ?o }",
    "alternative path": "SELECT * { ?s (<urn:p>|<urn:q>) ?v }",
    "path *": "SELECT * { <urn:n0> <urn:r>* ?o }",
    "path +": "SELECT * { ?s <urn:r>+ ?o }",
    "path ?": "SELECT * { <urn:n1> <urn:r>? ?o }",
    "negated path": "SELECT * { ?s !(<urn:p>|<urn:q>) ?o }",
    "GROUP BY": f"SELECT ?v (COUNT(?s) AS ?n) {{ {P} }} GROUP BY ?v",
    "HAVING": f"SELECT ?s (SUM(?v) AS ?n) {{ {P} }} GROUP BY ?s HAVING (COUNT(*) > 1)",
    "aggregates without GROUP BY": f"SELECT (COUNT(*) AS ?n) (MIN(?v) AS ?a) (MAX(?v) AS ?b) (AVG(?v) AS ?c) {{ {P} }}",
    "COUNT DISTINCT": f"SELECT (COUNT(DISTINCT ?v) AS ?n) {{ {P} }}",
    "ORDER BY alone": f"SELECT * {{ {P} }} ORDER BY ?v",
    "ASK with OFFSET": f"ASK {{ {P} }} OFFSET 2",
    "CONSTRUCT with LIMIT": f"CONSTRUCT {{ ?s <urn:has> ?v }} WHERE {{ {P} }} ORDER BY DESC(?v) ?s LIMIT 2 OFFSET 1",
    "GRAPH with a name": f"SELECT * {{ GRAPH <urn:g0> {{ {P} }} }}",
    "GRAPH with a variable": f"SELECT * {{ GRAPH ?g {{ {P} }} }}",
    "GRAPH and the default graph": f"SELECT * {{ {P} GRAPH ?g {{ {Q} }} }}",
    "ASK with GRAPH": f"ASK {{ GRAPH ?g {{ {P} . {Q} }} }}",
    "CONSTRUCT with GRAPH": f"CONSTRUCT {{ ?s <urn:in> ?g }} WHERE {{ GRAPH ?g {{ {P} }} }}",
}
CUT = {
    "LIMIT with ORDER BY": (f"SELECT ?s ?v {{ {P} }} ORDER BY DESC(?v) ?s LIMIT 2", 0, 2),
    "LIMIT with ORDER BY and OFFSET": (f"SELECT ?s ?v {{ {P} }} ORDER BY DESC(?v) ?s LIMIT 2 OFFSET 1", 1, 2),
    "OFFSET": (f"SELECT ?s ?v {{ {P} }} ORDER BY DESC(?v) ?s OFFSET 2", 2, None),
    "LIMIT 0": (f"SELECT ?s ?v {{ {P} }} ORDER BY DESC(?v) ?s LIMIT 0", 0, 0),
}
REFUSED = {
    "DESCRIBE": ("DESCRIBE <urn:n0>", "DESCRIBE has no defined answer"),
    "FROM": (f"SELECT * FROM <urn:g0> {{ {P} }}", "FROM is not supported"),
    "FROM NAMED": (f"SELECT * FROM NAMED <urn:g0> {{ {P} }}", "FROM"),
    "SERVICE": (f"SELECT * {{ SERVICE <urn:e> {{ {P} }} }}", "SERVICE is not supported"),
    "LIMIT in a subquery": (f"SELECT * {{ {{ SELECT ?s {{ {P} }} ORDER BY ?v LIMIT 1 }} }}", "LIMIT and OFFSET"),
    "EXISTS in ORDER BY": (f"SELECT ?s {{ {P} }} ORDER BY (EXISTS {{ {Q} }}) LIMIT 1", "EXISTS in ORDER BY"),
    "RAND in ORDER BY": (f"SELECT ?s {{ {P} }} ORDER BY RAND() LIMIT 1", "RAND"),
    "NOW": (f"SELECT * {{ {P} FILTER(NOW() > ?v) }}", "NOW"),
    "RAND": (f"SELECT (RAND() AS ?r) {{ {P} }}", "RAND"),
    "UUID": (f"SELECT (UUID() AS ?r) {{ {P} }}", "UUID"),
    "STRUUID": (f"SELECT (STRUUID() AS ?r) {{ {P} }}", "STRUUID"),
    "BNODE": (f"SELECT (BNODE() AS ?r) {{ {P} }}", "BNODE"),
    "timestamp()": (f"SELECT (timestamp(?s) AS ?t) {{ {P} }}", "timestamp"),
    "a path with * inside GRAPH ?g": ("SELECT * { GRAPH ?g { ?s <urn:r>* ?o } }", "name the graph"),
    "an update": ("INSERT DATA { <urn:a> <urn:b> 1 }", "line 1"),
}
NUMBERS = [f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in range(4)]
NODES = [f"<urn:n{number}>" for number in range(4)]


def bare(strategy="incremental", **more):
    """A broker without rules and facts."""
    clock = Clock()
    return Broker(begin(strategy, NO_RULES), clock.wall, clock.steady, **more)


def drawn(random):
    """A fact of the default graph or of a named one."""
    predicate = random.choice(("<urn:p>", "<urn:q>", "<urn:r>"))
    fact = random.choice(NODES), predicate, random.choice(NODES if predicate == "<urn:r>" else NUMBERS)
    return in_graph(random.choice(("<urn:g0>", "<urn:g1>")), fact) if random.random() < 0.4 else fact


form = lru_cache(parse_sparql)


def dataset(held):
    plain, named = parted(tuple(held))
    names = {name for name, _ in named}
    return Dataset(IndexedGraph(plain), {name: IndexedGraph(t for n, t in named if n == name) for name in names})


def steps(random, count):
    contents = set()
    for _ in range(count):
        came = {drawn(random) for _ in range(random.randint(1, 3))}
        gone = set(random.sample(sorted(contents), min(len(contents), random.choice((0, 1, 2, 3)))))
        contents = contents - gone | came
        yield came, gone, contents


def test_each_that_is_answered_is_answered_exactly():
    made = bare()
    texts = ANSWERED | {name: text for name, (text, _, _) in CUT.items()}
    shown, told = {}, {}
    for name, text in texts.items():
        made.create_channel(name, text)
        shown[name], told[name] = set(made.rows(name)[1]), made.listen(name, lambda: None)
    for came, gone, held in steps(Random(3), 60):
        made.update(came, gone)
        for name, text in texts.items():
            for notification in told[name].take():
                assert shown[name].issuperset(notification.removed), name
                assert shown[name].isdisjoint(notification.added), name
                shown[name] = (shown[name] - set(notification.removed)) | set(notification.added)
            assert shown[name] == set(made.rows(name)[1]) == expected(name, text, dataset(held)), (name, held)


def expected(name, text, held):
    if name not in CUT:
        return set(answer(form(text), held))
    _, offset, limit = CUT[name]
    rows = sorted(answer(form(ANSWERED["SELECT"]), held), key=lambda row: (-int(row[1][1]), row[0]))
    return set(rows[offset:][:limit])


@pytest.mark.parametrize("name", REFUSED)
def test_each_that_is_not_is_refused_by_name(name):
    text, says = REFUSED[name]
    made = bare()
    with pytest.raises((QueryError, ValueError), match=says.replace("(", r"\(")):
        made.create_channel("c", text)
    assert made.channels() == []


def test_blank_nodes_of_a_template_are_those_of_their_solution_as_long_as_it_is_there():
    made = bare()
    made.create_channel("c", f"CONSTRUCT {{ _:b <urn:of> ?s ; <urn:is> ?v }} WHERE {{ {P} }}")
    told = made.listen("c", lambda: None)
    one, two = (("<urn:n0>", "<urn:p>", number) for number in NUMBERS[:2])
    made.publish([one, two])
    made.publish([("<urn:n0>", "<urn:q>", NUMBERS[0])])
    made.delete([one])
    first, second = told.take()
    assert len(first.added) == 4
    assert len({subject for subject, _, _ in first.added}) == 2
    assert all(subject.startswith("_:") for subject, _, _ in first.added)
    assert set(second.removed) < set(first.added)
    assert len({subject for subject, _, _ in second.removed}) == 1
    assert {end for _, predicate, end in second.removed if predicate == "<urn:is>"} == {NUMBERS[0]}


def test_ask_is_told_when_its_truth_changes():
    made = bare()
    with Client(made) as ask:
        ask("PUT", "/channels/c", content=f"ASK {{ {P} }}")
        assert ask("GET", "/channels/c").json()["form"] == "ASK"
        assert ask("GET", "/channels/c/rows").json() == {"head": {}, "boolean": False}
        told = made.listen("c", lambda: None)
        for body, operation in (("1", "publish"), ("2", "publish"), ("1", "delete"), ("2", "delete")):
            ask("POST", f"/{operation}", content=f"<urn:n0> <urn:p> {body} .", headers=TURTLE)
            if operation == "publish":
                assert ask("GET", "/channels/c/rows").json()["boolean"] is True
        texts = [json.loads(NotificationTexts().text(told.channel, notification)) for notification in told.take()]
    assert [text["boolean"] for text in texts] == [True, False]
    assert [text["publications"] for text in texts] == [[1], [4]]


TRIG = {"Content-Type": "application/trig"}
QUADS = {"Content-Type": "application/n-quads"}
UPDATE = {"Content-Type": "application/sparql-update"}


def test_named_graphs_are_published_deleted_updated_and_survive(tmp_path):
    query = "SELECT ?g ?v { GRAPH ?g { ?s <urn:p> ?v } }"
    made = bare(journal=SqliteJournal(tmp_path / "j.db"))
    with Client(made) as ask:
        assert ask("PUT", "/channels/c", content=query).status_code == 201

        def rows(broker_=made):
            return {(g, v[1]) for g, v in broker_.rows("c")[1]}

        trig = "<urn:g0> { <urn:n0> <urn:p> 1, 2 } <urn:n0> <urn:p> 3 ."
        assert ask("POST", "/publish", content=trig, headers=TRIG).status_code == 200
        assert rows() == {("<urn:g0>", "1"), ("<urn:g0>", "2")}
        quad = '<urn:n0> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g0> .'
        assert ask("POST", "/delete", content=quad, headers=QUADS).status_code == 200
        assert rows() == {("<urn:g0>", "2")}
        for update, after in (
            ("INSERT DATA { GRAPH <urn:g1> { <urn:n1> <urn:p> 1 } <urn:n1> <urn:p> 2 }", {"g0 2", "g1 1"}),
            ("INSERT { GRAPH ?g { ?s <urn:p> 3 } } WHERE { GRAPH ?g { ?s <urn:p> 1 } }", {"g0 2", "g1 1", "g1 3"}),
            ("DELETE { GRAPH <urn:g1> { ?s <urn:p> ?v } } INSERT { GRAPH <urn:g2> { ?s <urn:p> ?v } }"
             " WHERE { GRAPH <urn:g1> { ?s <urn:p> ?v } }", {"g0 2", "g2 1", "g2 3"}),
            ("DELETE DATA { GRAPH <urn:g2> { <urn:n1> <urn:p> 3 } }", {"g0 2", "g2 1"}),
            ("DELETE WHERE { ?s <urn:p> ?v }", {"g0 2", "g2 1"}),
            ("WITH <urn:g2> DELETE { ?s <urn:p> ?v } INSERT { ?s <urn:p> 5 . GRAPH <urn:g1> { ?s <urn:p> 6 } }"
             " WHERE { ?s <urn:p> ?v }", {"g0 2", "g1 6", "g2 5"}),
            ("PREFIX : <urn:> WITH :g2 DELETE { ?s :p 5 } INSERT { ?s :p 1 } USING :g1 WHERE { ?s :p ?v }",
             {"g0 2", "g1 6", "g2 1"}),
            ("DELETE { GRAPH ?g { ?s <urn:p> 6 } } USING <urn:g1> WHERE { ?s <urn:p> ?v . GRAPH ?g { ?s <urn:p> ?v } }",
             {"g0 2", "g1 6", "g2 1"}),
            ("DELETE { GRAPH ?g { ?s <urn:p> 6 } } USING <urn:g1> USING NAMED <urn:g1>"
             " WHERE { ?s <urn:p> ?v . GRAPH ?g { ?s <urn:p> ?v } }", {"g0 2", "g2 1"}),
            ("WITH <urn:g2> DELETE WHERE { ?s <urn:p> 1 }", None),
            ("INSERT { GRAPH <urn:g5> { ?s <urn:p> 1 } } USING <urn:g0> USING <urn:g2> WHERE { ?s <urn:p> ?v }",
             {"g0 2", "g2 1", "g5 1"}),
            ("INSERT { ?s <urn:p> 1 } USING NAMED <urn:g0> WHERE { ?s <urn:p> ?v }", {"g0 2", "g2 1", "g5 1"}),
            ("MOVE <urn:g5> TO <urn:g6>", {"g0 2", "g2 1", "g6 1"}),
            ("COPY GRAPH <urn:g6> TO <urn:g0>; ADD SILENT <urn:g2> TO <urn:g6>", {"g0 1", "g2 1", "g6 1"}),
            ("CLEAR GRAPH <urn:g6>; DROP SILENT GRAPH <urn:none>; CREATE GRAPH <urn:g6>", {"g0 1", "g2 1"}),
            ("CLEAR NAMED; INSERT DATA { GRAPH <urn:g0> { <urn:n0> <urn:p> 2 } GRAPH <urn:g2> { <urn:n0> <urn:p> 1 } }",
             {"g0 2", "g2 1"}),
            ("DELETE WHERE { GRAPH ?g { ?s <urn:p> 1 } }", {"g0 2"}),
            ("INSERT DATA { GRAPH <urn:g3> { _:b <urn:p> 1 } GRAPH <urn:g4> { _:b <urn:p> 2 . } . _:b <urn:q> 1 # all",
             None),
            ("INSERT DATA { GRAPH <urn:g3> { _:b <urn:p> 1 } # one\n GRAPH <urn:g4> { _:b <urn:p> 2 . } ."
             " _:b <urn:q> 1 }", {"g0 2", "g3 1", "g4 2"}),
        ):  # fmt: skip
            answered = ask("POST", "/update", content=update, headers=UPDATE)
            if after is None:
                assert answered.status_code == 400
                continue
            assert answered.status_code == 200, answered.text
            assert {f"{g[5:-1]} {v}" for g, v in rows()} == after, update
        assert len({fact[0].split(" ")[-1] for fact in made._journal.facts() if "_:" in fact[0]}) == 1
    again = bare(journal=SqliteJournal(tmp_path / "j.db"))
    assert rows(again) == {("<urn:g0>", "2"), ("<urn:g3>", "1"), ("<urn:g4>", "2")}
    again.close()


def test_a_channel_that_an_earlier_version_took_and_never_answered_is_gone(tmp_path):
    journal = SqliteJournal(tmp_path / "j.db")
    journal.create(Opened("old", "SELECT * { GRAPH ?g { ?s <urn:p>* ?o } }", 1, 0))
    journal.create(Opened("good", ANSWERED["GRAPH with a variable"], 2, 0))
    journal.close()
    made = bare(journal=SqliteJournal(tmp_path / "j.db"))
    assert [channel.name for channel in made.channels()] == ["good"]
    made.close()


def test_looks_of_an_update_at_graphs_are_bounded():
    made = bare(limits=Limits(effort=2_000))
    made.publish([in_graph(f"<urn:g{n}>", ("<urn:n0>", "<urn:p>", f'"{n}"')) for n in range(100)])
    cross = "INSERT { ?a <urn:q> ?b } WHERE { GRAPH ?g { ?a <urn:p> ?x } GRAPH ?h { ?b <urn:none> ?x } }"
    future = made.modify(read_changes(cross))
    made.step()
    with pytest.raises(TooManySolutionsError, match="more than 2000 facts"):
        future.result(0)


def test_publishing_to_a_named_graph_is_idempotent_and_apart_from_the_default_graph():
    made = bare()
    made.create_channel("all", "SELECT ?g { GRAPH ?g { } }")
    told, fact = made.listen("all", lambda: None), ("<urn:n0>", "<urn:p>", NUMBERS[0])
    for _ in range(2):
        made.publish([in_graph("<urn:g0>", fact)])
    made.publish([fact])
    made.delete([fact])
    made.delete([in_graph("<urn:g1>", fact)])
    made.delete([in_graph("<urn:g0>", fact)])
    assert [(notification.causes, notification.added, notification.removed) for notification in told.take()] == [
        ((1,), (("<urn:g0>",),), ()),
        ((6,), (), (("<urn:g0>",),)),
    ]


@pytest.mark.parametrize("strategy", ["reevaluate", "stringrs", "graphss"])
def test_strategies_that_evaluate_again_refuse_by_name(strategy):
    made = bare(strategy)
    for text, says in (
        (ANSWERED["ASK"], "only a SELECT"),
        (CUT["OFFSET"][0], "LIMIT and OFFSET are not evaluated again"),
        (ANSWERED["GRAPH with a name"], "facts have no graphs here"),
    ):
        with pytest.raises(ValueError, match=says):
            made.create_channel("c", text)
    with pytest.raises(LimitError, match="facts of named graphs"):
        made.publish([in_graph("<urn:g0>", ("<urn:n0>", "<urn:p>", NUMBERS[0]))])
    made.create_channel("c", ANSWERED["SELECT"])
    with pytest.raises(ExistingChannelError):
        made.create_channel("c", ANSWERED["SELECT"])


def test_a_template_with_very_many_graphs_is_read_in_one_pass():
    many = " ".join(f"GRAPH <urn:g{n}> {{ <urn:n0> <urn:p> {n} }}" for n in range(201))
    declared = " ".join(f"PREFIX p{n}: <urn:{n}>" for n in range(500))
    (made,) = read_changes(f"{declared} INSERT {{ {many} }} WHERE {{}}")
    assert [graph_of(item) for item in made.insert] == [f"<urn:g{n}>" for n in range(201)]
    (data,) = read_changes(f"INSERT DATA {{ {many} }}")
    assert len(data.added) == 201


def test_files_that_a_broker_begins_with_keep_their_graphs_and_blank_nodes(tmp_path):
    """Facts of named graphs were put into the default graph, and a blank node of one file was that of another."""
    (tmp_path / "a.trig").write_text("<urn:g> { <urn:a> <urn:p> _:b } <urn:a> <urn:p> _:b .")
    (tmp_path / "b.ttl").write_text("<urn:c> <urn:p> _:b .")
    made = bare()
    made.load(read_files([tmp_path / "a.trig", tmp_path / "b.ttl"]))
    made.create_channel("default", "SELECT * { ?s <urn:p> ?o }")
    made.create_channel("named", "SELECT * { GRAPH ?g { ?s <urn:p> ?o } }")
    default, named = (made.rows(item)[1] for item in ("default", "named"))
    assert sorted(row[0] for row in default) == ["<urn:a>", "<urn:c>"]
    assert len({row[1] for row in default}) == 2
    assert [row[:2] for row in named] in ([("<urn:g>", "<urn:a>")], [("<urn:a>", "<urn:g>")])
    (tmp_path / "c.trig").write_text("_:g { <urn:a> <urn:p> 1 }")
    with pytest.raises(FormatError, match="name it by an IRI"):
        bare().load(read_files([tmp_path / "c.trig"]))
