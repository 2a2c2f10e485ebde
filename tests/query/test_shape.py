"""Queries of one structure share a tree, and each has its own terms."""

from streamgauge.query import shape
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql

TEXT = 'SELECT (COUNT(DISTINCT ?o) AS ?n) {{ ?s <urn:{0}>/^<urn:q> ?o FILTER(?o > {1} && ?o != "{2}"@en) }} LIMIT 3'


def test_constants_are_no_part_of_the_tree() -> None:
    shape._kept_tree.cache_clear()
    texts = [TEXT.format(f"p{n}", f"-{n}.5", f'a{n}\\"') for n in range(1, 20)]
    printed = [sparql(parse_sparql(text)) for text in texts]
    assert shape._kept_tree.cache_info().currsize == 1
    assert len(set(printed)) == len(texts)
    assert all(f"<urn:p{n}>" in text and f"{n}.5" in text for n, text in enumerate(printed, 1))


def test_a_kept_tree_reads_as_a_new_one() -> None:
    text = TEXT.format("p", "5", "b")
    first = parse_sparql(text)
    assert [parse_sparql(text) for _ in range(3)] == [first] * 3
    shape._kept_tree.cache_clear()
    assert parse_sparql(text) == first


def test_long_texts_are_not_kept() -> None:
    shape._kept_tree.cache_clear()
    parse_sparql("SELECT * { " + " . ".join(f"?s{n} <urn:p> ?o{n}" for n in range(60)) + " }")
    assert shape._kept_tree.cache_info().currsize == 0
