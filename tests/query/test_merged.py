"""Windows whose merge is the default graph give the same answers with names: drawn queries over drawn contents."""

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query import parse, parse_sparql
from streamgauge.query.dialects import rspql
from streamgauge.query.merged import with_named_windows
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from tests.examples import examples
from tests.sparql.draw import OPERATORS, queries, triples

SIZE = Window(1000, 1000)


def answers(form, contents):
    """The rows over the merge of static data and windows, and those of the form with named windows, in both forms."""
    query = ContinuousQuery(form, tuple(StreamWindow(f"urn:s:{n}", SIZE) for n in range(len(contents) - 1)))
    named = with_named_windows(query)
    graphs = {
        f"<{item.name}>": IndexedGraph(content) for item, content in zip(named.windows, contents[1:], strict=True)
    }
    merge = Dataset(IndexedGraph(triple for content in contents for triple in content))
    apart = Dataset(IndexedGraph(contents[0]), graphs)
    assert parse(rspql.print_query(query)) == named
    return sorted(answer(form, merge), key=repr), sorted(answer(named.form, apart), key=repr)


@examples(25, 10_000)
@given(queries(OPERATORS), st.lists(triples(8), min_size=3, max_size=4))
def test_named_windows_give_the_answer_of_their_merge(query, contents):
    merged, apart = answers(query, contents)
    assert merged == apart


TEXTS = (
    "SELECT * { ?s :knows/:near ?o }", "SELECT ?o { ?s :knows|^:near ?o }", "SELECT * { ?s :value [] . [] :knows ?s }",
    "SELECT ?s { ?s :value ?w1 . :a :knows :b }", "SELECT (COUNT(*) AS ?n) { ?s :knows ?o }", "ASK { :a :knows :b }",
    "CONSTRUCT { ?s :p _:b } WHERE { ?s :knows [ :value ?v ] }", "SELECT * { ?s :knows ?o MINUS { ?o :near [] } }",
    "SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }",
)  # fmt: skip


@examples(20, 2_000)
@given(st.sampled_from(TEXTS), st.lists(triples(8), min_size=3, max_size=3))
def test_texts_over_several_windows(text, contents):
    merged, apart = answers(parse_sparql(f"PREFIX : <urn:x:> {text}"), contents)
    assert len(merged) == len(apart)
    if not text.startswith("CONSTRUCT"):
        assert merged == apart
