"""Queries and publications that would cost too much are stopped; what they do not touch goes on as it was."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.budget import TooMuchError, gc_young
from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.query import parse_sparql
from streamgauge.reasoning import read_rules
from streamgauge.reasoning.closure import STATED, Closure
from tests.examples import examples
from tests.reasoning.ontology import AXIOMS, triples

MOST = 5000
EXPLODING = {
    "a cross product": "?a :p ?b . ?c :p ?d . ?e :p ?f",
    "one behind a filter": "?a :p ?b . ?c :p ?d FILTER(?b > ?d && ?d > ?b)",
    "operators without a shared variable": "{ ?a :p ?b FILTER(?b != 1) } { { ?c :p ?d } UNION { ?c :q ?d } }",
    "many optionals": "?a :p ?b " + " ".join(f"OPTIONAL {{ ?x{n} :p ?y{n} }}" for n in range(6)),
    "optional on a loose variable": "{ ?a :p ?b OPTIONAL { ?a :q ?c } } OPTIONAL { ?d :p ?e OPTIONAL { ?d :q ?c } }",
    "a condition on each pair": "?a :p ?b FILTER NOT EXISTS { ?c :p ?d FILTER(STRLEN(STR(?b)) + STRLEN(?d) > 99) }",
    "a path from everywhere": "?a :next+ ?b",
    "any triple with any": "?a ?p ?b . ?c ?q ?d",
    "texts that double": "?a :p ?b "
    + " ".join(f"BIND(CONCAT(?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(12)).replace("?t0", "STR(?a)"),
}


def iri(name):
    return f"<urn:t:{name}>"


def number(n):
    return f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def facts(count):
    return [
        *((iri(f"s{n}"), iri("p"), number(n)) for n in range(count)),
        *((iri(f"s{n}"), iri("next"), iri(f"s{n + 1}")) for n in range(count)),
    ]


def form(pattern):
    return parse_sparql(f"PREFIX : <urn:t:> SELECT * {{ {pattern} }}")


@pytest.mark.parametrize("name", EXPLODING)
def test_a_query_that_explodes_is_stopped_when_it_is_asked(name):
    driver = Landmark()
    driver.limit(MOST, MOST)
    driver.load(facts(200))
    with pytest.raises(TooMuchError, match=f"more than {MOST} facts and rows"):
        driver.ask(form(EXPLODING[name]))
    assert not driver.closure.facts.property_of(iri("p")).enter
    kept = driver.ask(form("?a :p ?b"))
    assert len(kept.kept.solutions()) == 200


@pytest.mark.parametrize("pattern", ["?a :next+ ?b", "?a :p ?b . ?c :p ?d"])
def test_rows_that_are_kept_count_as_eight_pairs_of_paths_too(pattern):
    """20,000 pairs and 40,000 rows: a change of so many is one table, which stops all threads when it grows."""
    driver = Landmark()
    driver.limit(150_000, MOST)
    driver.load(facts(200))
    with pytest.raises(TooMuchError, match="more than 150000 facts and rows"):
        driver.ask(form(pattern))


@pytest.mark.parametrize("name", EXPLODING)
def test_a_query_that_explodes_later_ends_and_others_go_on(name):
    driver = Landmark()
    driver.limit(MOST, MOST)
    exploding, calm, selective = (driver.ask(form(item)) for item in (EXPLODING[name], "?a :p ?b", ":s7 :p ?b"))
    failed, shown = {}, set()
    for n in range(0, 400, 40):
        changed = dict(driver.change(facts(n + 40)[n : n + 40] + facts(n + 40)[2 * n + 40 :], ()))
        shown |= set(changed[calm].added)
        failed |= driver.failed()
        for item in failed:
            item.end()
    assert set(failed) == {exploding}
    assert len(shown) == 400
    assert list(selective.kept.solutions()) == [(number(7),)]


def test_who_shares_joins_with_what_explodes_goes_on():
    """Two constants of one shape: one asks for few, the other for very many."""
    driver = Landmark()
    driver.limit(MOST, MOST)
    few, many = (driver.ask(form(f"?x :in {item} . ?y :in {item}")) for item in (":few", ":many"))
    crowd = [(iri(f"m{n}"), iri("in"), iri("many")) for n in range(150)]
    changed = dict(driver.change([*crowd, (iri("f"), iri("in"), iri("few"))], ()))
    assert set(driver.failed()) == {many}
    assert changed[few].added == ((iri("f"), iri("f")),)
    many.end()
    changed = dict(driver.change([(iri("g"), iri("in"), iri("few"))], crowd))
    assert len(changed[few].added) == 3


def crowded(queries, crowd=400):
    """Queries of which each looks at the same crowd because of one fact; the driver's bounds are small."""
    driver = Landmark()
    driver.limit(100_000, 1_000, 1_000, 4_000)
    driver.load([(iri("hub"), iri("has"), iri(f"m{n}")) for n in range(crowd)])
    asked = [driver.ask(form(f"?x :start ?s . ?x :has ?m FILTER(?m != :f{n})")) for n in range(queries)]
    return driver, asked, driver.ask(form("?x :start ?s"))


def test_all_queries_together_look_at_no_more_than_the_bound_for_one_publication():
    """Each is within its own bound; together they are not: those that look at most end, with a sentence."""
    driver, asked, calm = crowded(20)
    changed = dict(driver.change([(iri("hub"), iri("start"), number(1))], ()))
    failed = driver.failed()
    assert 5 <= len(failed) <= 15
    assert {str(why) for why in failed.values()} == {
        "one publication has all channels look at more than 4400 facts and rows, this one at more than "
        f"{driver.budget.part}, its part of as many"
    }
    assert all(len(changed[item].added) == 400 for item in asked if item not in failed)
    assert len(changed[calm].added) == 1
    assert set(changed) | set(failed) == {*asked, calm}


def test_the_bound_of_all_is_for_each_publication_and_few_are_within_it():
    driver, asked, calm = crowded(4)
    for n in range(20):
        start = [(iri("hub"), iri("start"), number(n))]
        assert set(dict(driver.change(start, ()))) == {*asked, calm}
        list(driver.change((), start))
    assert driver.failed() == {}


def test_a_hub_is_not_gone_through_beyond_the_bound():
    """One look-up finds more facts than may be looked at: the query ends before they are gone through."""
    driver, (asked,), calm = crowded(1, 3_000)
    changed = dict(driver.change([(iri("hub"), iri("start"), number(1))], ()))
    assert set(driver.failed()) == {asked}
    assert set(changed) == {calm}


def test_who_shares_a_search_with_what_explodes_finds_the_rest():
    """Many constants of one shape, in one fact's search: only those of the one with a crowd ends."""
    driver = Landmark()
    driver.limit(100_000, 1_000, 1_000)
    driver.load([(iri("x"), iri("to"), iri(f"k{n}")) for n in range(9)])
    driver.load([(iri(f"k{n}"), iri("has"), iri(f"m{m}")) for n in range(9) for m in range(900 if n == 4 else 1)])
    asked = [driver.ask(form(f"?s :in ?x . ?x :to :k{n} . :k{n} :has ?m . :k{n} :has ?o")) for n in range(9)]
    changed = dict(driver.change([(iri("s"), iri("in"), iri("x"))], ()))
    assert set(driver.failed()) == {asked[4]}
    assert {item: len(result.added) for item, result in changed.items()} == {
        item: 1 for item in asked if item is not asked[4]
    }


def test_all_that_ask_for_what_explodes_end():
    """Two queries of the same joins, and one that has them twice."""
    driver = Landmark()
    driver.limit(MOST, MOST)
    cross = "?a :p ?b . ?c :p ?d"
    asked = [
        driver.ask(parse_sparql(f"PREFIX : <urn:t:> SELECT {how}* {{ {pattern} }}"))
        for how in ("", "DISTINCT ")
        for pattern in (cross, f"{{ {cross} }} UNION {{ {cross} }}")
    ]
    list(driver.change(facts(200), ()))
    failed = driver.failed()
    assert set(failed) == set(asked)
    for item in failed:
        item.end()
    assert not driver.closure.facts.property_of(iri("p")).enter
    assert len(driver.ask(form("?a :p ?b")).kept.solutions()) == 200


def test_a_bound_is_for_each_change_and_not_for_all_of_them():
    driver = Landmark()
    driver.limit(50, 50)
    kept = driver.ask(form("?a :p ?b . ?a :next ?c"))
    for n in range(300):
        list(driver.change([(iri(f"s{n}"), iri("p"), number(n)), (iri(f"s{n}"), iri("next"), iri("s"))], ()))
    assert (len(kept.kept.solutions()), driver.failed()) == (300, {})


def test_no_full_collection_runs_while_much_is_made_and_let_go():
    full, before = list[int](), gc.get_threshold()

    def note(phase, info):
        if phase == "start" and info["generation"] == 2:
            full.append(1)

    gc.callbacks.append(note)
    try:
        with gc_young():
            gc.set_threshold(50, 2, gc.get_threshold()[2])
            assert len([[n] for n in range(20_000)]) == 20_000
            gc.set_threshold(*before[:2], gc.get_threshold()[2])
    finally:
        gc.callbacks.remove(note)
    assert not full
    assert gc.get_threshold() == before


def closed(closure):
    """All that a closure knows."""
    states = {name: {**class_.members} for name, class_ in closure.facts.classes.items() if class_.members}
    pairs = {
        name: {pair: property_.states.get(pair, STATED) for pair in property_.pairs()}
        for name, property_ in closure.facts.properties.items()
        if property_.out
    }
    derived = {(of.name, subject, end): count for (of, subject, end), count in closure._derived.items()}
    return states, pairs, derived, closure.explicit


def test_a_publication_of_which_too_much_follows_is_taken_back():
    closure = Closure(read_rules(triples(":p a owl:TransitiveProperty .")))
    closure.apply([(iri(f"a{n}"), iri("p"), iri(f"a{n + 1}")) for n in range(5)])
    before, closure.most = closed(closure), 1000
    chain = [(iri(f"b{n}"), iri("p"), iri(f"b{n + 1}")) for n in range(300)]
    with pytest.raises(TooMuchError, match="derive more than 1000 facts from this change: publish it in smaller parts"):
        closure.apply(chain, [(iri("a2"), iri("p"), iri("a3"))])
    assert closed(closure) == before
    closure.apply(chain[:5])


NAMES = [iri(name) for name in "ABCDxyz"]
KIND = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
FACT = st.one_of(
    st.tuples(st.sampled_from(NAMES[4:]), st.sampled_from([iri("p"), iri("q"), iri("r")]), st.sampled_from(NAMES[4:])),
    st.tuples(st.sampled_from(NAMES[4:]), st.just(KIND), st.sampled_from(NAMES[:4])),
)


@pytest.mark.slow
@examples(60, prove=2000)
@given(st.sets(st.sampled_from(AXIOMS), max_size=8), st.lists(FACT), st.lists(FACT), st.lists(FACT), st.integers(0, 6))
def test_what_is_taken_back_leaves_no_trace(axioms, there, added, removed, most):
    rules = read_rules(triples("\n".join(sorted(axioms))))
    closure, other = Closure(rules), Closure(rules)
    closure.apply(there)
    other.apply(there)
    before, closure.most = closed(closure), most
    try:
        closure.apply(added, removed)
    except TooMuchError:
        assert closed(closure)[1:] == before[1:]
        assert {name: set(item) for name, item in closed(closure)[0].items()} == {
            n: set(e) for n, e in before[0].items()
        }
        closure.most = 1 << 62
        closure.apply(added, removed)
    other.apply(added, removed)
    assert {*closure.facts.match(None, None, None)} == {*other.facts.match(None, None, None)}
    assert {name: class_.members for name, class_ in closure.facts.classes.items() if class_.members} == {
        name: class_.members for name, class_ in other.facts.classes.items() if class_.members
    }
