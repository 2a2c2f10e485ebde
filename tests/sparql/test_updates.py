"""Updates against the definition: WHERE is evaluated over the facts that it needs, and the answer is that over all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.fact import apart, asked, in_graph, is_named
from streamgauge.query import parse_sparql
from streamgauge.query.updates import ALL, GraphNames, UpdateContext, UpdateOperation, read_update
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.needs import Looks, Needs, TooManySolutionsError
from streamgauge.sparql.updates import change, together
from tests.examples import examples
from tests.sparql.draw import OPERATORS, queries, triples

NAMES = ("<urn:g:1>", "<urn:g:2>", "<urn:g:3>")
PREFIX = "PREFIX : <urn:x:> "
BOUNDLESS = 10**9


def holding(facts):
    """The facts by terms, as stores answer."""

    def matching(subject, predicate, end):
        if subject is not None and " " in subject and not subject.startswith("<<"):
            name, own = asked(subject)
            for fact in facts:
                graph, triple = apart(fact) if is_named(fact[0]) else (None, fact)
                if graph is not None and name in (None, graph) and agrees(triple, (own, predicate, end)):
                    yield fact
            return
        yield from (f for f in facts if not is_named(f[0]) and agrees(f, (subject, predicate, end)))

    return matching


def agrees(triple, wanted):
    return all(other in (None, term) for term, other in zip(triple, wanted, strict=True))


def dataset(facts, graphs=ALL):
    """All facts as the dataset that graphs describe."""
    named = {}
    for fact in facts:
        if is_named(fact[0]):
            name, triple = apart(fact)
            named.setdefault(name, []).append(triple)
    default = [fact for fact in facts if not is_named(fact[0])]
    if graphs.default is not None:
        default = [triple for name in graphs.default for triple in named.get(name, ())]
    shown = {n: IndexedGraph(ts) for n, ts in named.items() if graphs.named is None or n in graphs.named}
    return Dataset(IndexedGraph(default), shown)


def rows_of(form, facts, graphs=ALL):
    needs = Needs(holding(facts), graphs, BOUNDLESS, Looks(BOUNDLESS))
    needs.of(form.pattern)
    return sorted(answer(form, needs.dataset()), key=repr)


def expected(form, facts, graphs=ALL):
    return sorted(answer(form, dataset(facts, graphs)), key=repr)


@examples(40, 20_000)
@given(queries(OPERATORS), triples())
def test_the_facts_that_a_pattern_needs_give_its_answer(query, facts):
    assert rows_of(query, facts) == expected(query, facts)


@st.composite
def in_graphs(draw):
    """A drawn query with parts in GRAPH, facts in graphs, and a dataset."""
    query = draw(queries(OPERATORS))

    def within(pattern):
        if isinstance(pattern, al.BGP) and draw(st.booleans()):
            return al.Graph(draw(st.sampled_from((*NAMES, al.Var("g")))), pattern)
        return replaced(pattern)

    def replaced(pattern):
        from streamgauge.query.traversal import exists_parts, parts

        return parts(pattern, within, lambda tree: exists_parts(tree, within))

    facts = [
        fact if name is None else in_graph(name, fact)
        for fact in draw(triples())
        for name in draw(st.lists(st.sampled_from((None, *NAMES)), min_size=1, max_size=2, unique=True))
    ]
    default, named = (
        draw(st.one_of(st.none(), st.lists(st.sampled_from(NAMES), unique=True).map(tuple))) for _ in range(2)
    )
    return al.Select(replaced(query.pattern), query.variables), facts, GraphNames(default, named)


@examples(30, 20_000)
@given(in_graphs())
def test_the_facts_that_a_pattern_over_graphs_needs_give_its_answer(drawn):
    query, facts, graphs = drawn
    assert rows_of(query, facts, graphs) == expected(query, facts, graphs)


PATHS = (
    ":knows+", ":knows*", ":knows?", "^:knows", ":knows/:near", "(:knows/:near)+", ":knows|:near", "(:knows|^:near)*",
    "!:knows", "!(:knows|^:near)", "(!:knows)+", ":knows/:knows*", "(:knows*/:near)?", "(:knows+|:value)*",
)  # fmt: skip
AROUND = (
    "?s {0} ?o", ":a {0} ?o", "?s {0} :b", ":a {0} :b", "?s {0} ?s", "?s :value ?v . ?s {0} ?o",
    "VALUES ?s {{ :a :z }} ?s {0} ?o", "?s :value ?v OPTIONAL {{ ?o {0} ?s }}",
    "?s :value ?v FILTER EXISTS {{ ?s {0} ?v }}", "BIND(:a AS ?s) ?s {0} ?o", "?s :near ?o MINUS {{ ?o {0} ?s }}",
    "GRAPH ?g {{ ?s {0} ?o }}",
    "GRAPH <urn:g:1> {{ :a {0} ?o }}",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@examples(6, 500)
@given(facts=triples())
def test_paths_are_walked_from_what_is_known(path, facts):
    facts = [*facts, *(in_graph("<urn:g:1>", fact) for fact in facts[::2])]
    for text in AROUND:
        form = parse_sparql(f"{PREFIX} SELECT * {{ {text.format(path)} }}")
        assert rows_of(form, facts) == expected(form, facts), text


def test_an_update_asks_for_no_more_than_it_needs():
    """Of 10,000 sensors one is named: its facts are read, in OPTIONAL and EXISTS and along paths too."""
    facts = [(f"<urn:x:s{n}>", f"<urn:x:{name}>", f'"{n}"') for n in range(10_000) for name in ("val", "unit")]
    index = IndexedGraph(facts)

    def matching(*pattern):
        known = [(place, term) for place, term in enumerate(pattern) if term is not None]
        terms = tuple(term for _, term in known)
        return index.at(tuple(place for place, _ in known), terms[0] if len(terms) == 1 else terms)

    for where in (
        ":s1 :val ?v OPTIONAL { :s1 :unit ?u }",
        "OPTIONAL { :s1 :val ?v }",
        "{ :s1 :val ?v } UNION { :s2 :val ?v }",
        "?s :val '7' FILTER NOT EXISTS { ?s :unit '8' }",
        "VALUES ?s { :s1 :s2 } ?s :val ?v MINUS { ?s :unit '2' }",
        ":s1 (:val|^:unit)+ ?v",
        "{ SELECT (COUNT(?v) AS ?n) { :s1 :val ?v } } :s2 :unit ?u",
    ):
        (operation,) = read_update(f"{PREFIX} INSERT {{ :x :y ?v }} WHERE {{ {where} }}", UpdateContext(str))
        looks = Looks(20)
        change(operation, matching, 100, looks)
    with pytest.raises(TooManySolutionsError, match="more than 20 facts"):
        change(*read_update(f"{PREFIX} DELETE WHERE {{ ?s :val ?v }}", UpdateContext(str)), matching, 100, Looks(20))


def done(text, facts=(), **context):
    known = set(facts)
    added, removed = together(
        read_update(PREFIX + text, UpdateContext(lambda name: f"_:new{name!r}".replace(" ", ""), True, **context)),
        holding(sorted(known)), 10_000, 10_000,
    )  # fmt: skip
    return (known - set(removed)) | set(added)


def x(*names):
    return tuple(f"<urn:x:{name}>" if name.isalpha() else f'"{name}"' for name in names)


def test_the_update_of_sepa_clients():
    text = "DELETE {{ :t :val ?o }} INSERT {{ :t :val '{0}' }} WHERE {{ OPTIONAL {{ :t :val ?o }} }}"
    first = done(text.format(1))
    assert first == {x("t", "val", "1")}
    assert done(text.format(2), first) == {x("t", "val", "2")}


def test_each_operation_sees_what_those_before_it_left():
    text = """INSERT DATA { :a :p '1' . GRAPH <urn:g:1> { :a :p '2' } } ;
      INSERT { ?s :q ?v } WHERE { ?s :p ?v } ; DELETE { ?s :p ?v } WHERE { ?s :q ?v } ;
      INSERT { GRAPH <urn:g:2> { ?s :r ?g } } WHERE { GRAPH ?g { ?s :p '2' } } ;
      DELETE WHERE { GRAPH <urn:g:1> { ?s ?p ?o } }"""
    assert done(text) == {x("a", "q", "1"), in_graph("<urn:g:2>", ("<urn:x:a>", "<urn:x:r>", "<urn:g:1>"))}


def test_blank_nodes_of_templates_are_new_in_each_solution_and_bnode_is_none_of_the_data():
    facts = [x("a", "p", "1"), x("b", "p", "2")]
    after = done("INSERT { ?s :has _:o . _:o :v ?v } WHERE { ?s :p ?v }", facts) - set(facts)
    nodes = {fact[2] for fact in after if fact[1] == "<urn:x:has>"}
    assert len(nodes) == 2
    assert {fact[0] for fact in after if fact[1] == "<urn:x:v>"} == nodes
    message = done("INSERT { ?s :has ?n } WHERE { ?s :p ?v BIND(BNODE() AS ?n) }", facts) - set(facts)
    assert len({fact[2] for fact in message}) == 2
    assert all(fact[2].startswith("_:new") for fact in message)


def test_now_is_the_time_of_the_request_and_what_is_drawn_is_refused():
    facts = [x("a", "p", "1")]
    after = done("INSERT { ?s :at ?t } WHERE { ?s :p ?v BIND(now() AS ?t) }", facts, now='"T"')
    assert ("<urn:x:a>", "<urn:x:at>", '"T"') in after
    for call in ("UUID()", "RAND()", "STRUUID()"):
        with pytest.raises(ValueError, match=f"{call[:-2]} is not supported in an update"):
            done(f"INSERT {{ ?s :at ?t }} WHERE {{ ?s :p ?v FILTER({call} != 1) BIND(1 AS ?t) }}")


@pytest.mark.slow
def test_data_of_many_triples_is_read_and_its_errors_name_the_line():
    lines = "\n".join(f":s{n} :p '{n}' ." for n in range(20_000))
    (operation,) = read_update(f"{PREFIX}\nINSERT DATA {{\n{lines}\n}}", UpdateContext(str))
    assert len(operation.added) == 20_000
    wrong = lines.replace("'15000'", ":: :")
    with pytest.raises(ValueError, match="line 15003"):
        read_update(f"{PREFIX}\nINSERT DATA {{\n{wrong}\n}}", UpdateContext(str))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("INSERT DATA { :a :p ?v }", "line 1, column 39: variables are not allowed in data"),
        (
            "INSERT DATA { @prefix b: <urn:b:> . b:a :p 1 }",
            "a triple, GRAPH name { triples } or } is expected here, not @prefix",
        ),
        ("INSERT DATA { { :a :p 1 } }", "a triple, GRAPH name { triples } or } is expected here"),
        ("INSERT DATA { GRAPH ?g { :a :p 1 } }", "variables are not allowed in data"),
        ("INSERT DATA { GRAPH <urn:g> { GRAPH <urn:h> { :a :p 1 } } }", "a triple or the } of GRAPH is expected here"),
        ("DELETE DATA { _:b :p 1 }", "a blank node cannot identify data to delete"),
        ("DELETE { _:b :p 1 } WHERE { }", "a blank node is not allowed in DELETE"),
        ("INSERT DATA { :a :p '1", "this string is not closed"),
        ("INSERT DATA { :a :p 1 ", "the { at line 1, column 31 is not closed: add }"),
        ("INSERT DATA { nope:a :p 1 }", "line 1"),
        (
            "INSERT DATA { :a :p 1 } DELETE DATA { :a :p 1 }",
            "a semicolon between operations is expected here, not DELETE",
        ),
        ("LOAD <http://e/>", "LOAD is not supported: send the data itself"),
        ("CLEAR", "the update ends here, but one of GRAPH, DEFAULT, NAMED, ALL is expected"),
        ("CLEAR GRAPH", "the update ends here, but an IRI or a prefixed name is expected"),
        ("COPY <urn:a>", "expected"),
        ("MOVE ALL TO DEFAULT", "one of GRAPH, DEFAULT, an IRI is expected here, not ALL"),
        ("WITH <urn:g> INSERT DATA { :a :p 1 }", "{ is expected here, not DATA"),
        ("INSERT { :a :p 1 } { ?s ?p ?o }", "WHERE is expected here"),
        ("SELECT * { ?s ?p ?o }", "unknown operation"),
        (
            "INSERT DATA { _:b :p 1 } ; INSERT DATA { :a :p _:b }",
            "the blank node _:b also occurs in the data of another operation",
        ),
        ("INSERT DATA { 1 :p 1 }", "a triple of the data has the subject"),
        ("INSERT DATA { :a :p/:q 1 }", "is expected here, not /"),
        ("INSERT { ?s :p ?t } WHERE { ?s ?p ?o BIND(timestamp(?s, ?p, ?o) AS ?t) }", "TIMESTAMP is not supported"),
        ("INSERT { ?s :p <<( _:b :q ?o )>> } WHERE { ?s ?p ?o }", "a blank node in a triple term of a template"),
        ("INSERT { ?s :p 1 } WHERE { SERVICE <http://e/> { ?s ?p ?o } }", "SERVICE"),
    ],
)
def test_what_is_no_update_is_refused_by_name(text, why):
    with pytest.raises(ValueError, match=why):
        read_update(PREFIX + text, UpdateContext(str, graphs=True))


@pytest.mark.parametrize("text", ["", "# nothing", "BASE <urn:b:>", "PREFIX : <urn:>\nBASE <urn:b:>\n"])
def test_an_update_may_have_no_operations(text):
    assert read_update(text, UpdateContext(str)) == []


def test_operations_of_data_that_follow_each_other_are_read_together():
    text = "; ".join(f"INSERT DATA {{ :s{n} :p 'x' }}" for n in range(3_000))
    (operation,) = read_update(PREFIX + text, UpdateContext(str))
    assert len(operation.added) == 3_000
    text = f"{PREFIX} INSERT DATA {{ :a :p 1 }}; PREFIX b: <urn:b:> DELETE DATA {{ b:a :p TRUE . }};"
    mixed = read_update(text, UpdateContext(str))
    assert [(len(item.added), len(item.removed)) for item in mixed] == [(1, 0), (0, 1)]


def test_triple_terms_in_data_and_templates():
    said = done("INSERT DATA { :s :says <<( :a :p _:b )>>, << :a :p _:b >> . _:b :q (TRUE) }")
    (node,) = {fact[0] for fact in said if fact[1] == "<urn:x:q>"}
    assert ("<urn:x:s>", "<urn:x:says>", f"<<( <urn:x:a> <urn:x:p> {node} )>>") in said
    assert len([fact for fact in said if fact[2] == f"<<( <urn:x:a> <urn:x:p> {node} )>>"]) == 2
    facts = [x("a", "p", "1")]
    after = done("INSERT { ?s :says <<( ?s :p ?o )>> } WHERE { ?s :p ?o }", facts)
    assert after == {*facts, ("<urn:x:a>", "<urn:x:says>", '<<( <urn:x:a> <urn:x:p> "1" )>>')}
    assert done("DELETE WHERE { ?s :says <<( ?s :p ?o )>> . ?s :p ?o }", after) == set()
    assert done("DELETE { ?s :says <<( ?s :p ?o )>> } WHERE { ?s :p ?o }", after) == set(facts)
    assert done("INSERT { ?t :q ?s } WHERE { ?s :says ?t }", after) == after, "a triple term is no subject"


def test_an_operation_says_that_it_reads_graphs():
    (plain,) = read_update(f"{PREFIX} DELETE WHERE {{ ?s ?p ?o }}", UpdateContext(str))
    assert plain == UpdateOperation(plain.where, plain.delete)
