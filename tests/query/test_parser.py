"""SPARQL text to algebra: what it means, and how it is refused."""

import pickle
from collections.abc import Iterator

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.updates import UpdateContext, read_update
from tests.query.texts import DATA, PREFIXES, QUERIES
from tests.sparql.suite import Case, Result, difference, evaluate, from_turtle

S, P, O, V = (al.Var(name) for name in "spov")  # noqa: E741
ONE = f'"1"^^<{XSD}integer>'
EMPTY = al.BGP(())


def triple(subject: al.Node, predicate: al.Node, item: al.Node) -> al.BGP:
    return al.BGP((al.TriplePattern(subject, predicate, item),))


ANY = triple(S, P, O)


def case_of(text: str) -> Case:
    data = from_turtle(DATA)
    return Case("text", "", PREFIXES + text, data, {"<http://e/g>": data}, Result("boolean", (), ()))


def where(text: str) -> al.Pattern:
    """The pattern of ``SELECT ?s`` over this group."""
    form = parse_sparql(f"{PREFIXES}SELECT ?s {{ {text} }}")
    assert isinstance(form, al.Select)
    assert isinstance(form.pattern, al.Project)
    return form.pattern.pattern


@pytest.mark.parametrize("text", QUERIES)
def test_printed_it_means_the_same(text: str) -> None:
    case = case_of(text)
    original, form = evaluate(case), parse_sparql(case.query)
    assert difference(original, evaluate(case, sparql(form))) == ""
    assert parse_sparql(sparql(form)) == form


def test_most_texts_match_something() -> None:
    assert sum(not evaluate(case_of(text)).rows for text in QUERIES) <= 8


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("?s ?p ?o", ANY),
        ("{ ?s ?p ?o }", ANY),
        ("{ } ?s ?p ?o { }", ANY),
        ("?s ?p ?o FILTER(?v) ?o ?p ?s", al.Filter(V, al.BGP((*ANY.patterns, al.TriplePattern(O, P, S))))),
        ("?s ?p ?o { ?o ?p ?s }", al.Join(ANY, triple(O, P, S))),
        ("FILTER(?v) FILTER(?s)", al.Filter(al.Call("&&", (V, S)), EMPTY)),
        ("FILTER(?s || ?v || ?o)", al.Filter(al.Call("||", (al.Call("||", (S, V)), O)), EMPTY)),
        ("OPTIONAL { ?s ?p ?o FILTER(?v) }", al.LeftJoin(EMPTY, ANY, V)),
        ("OPTIONAL { { ?s ?p ?o FILTER(?v) } }", al.LeftJoin(EMPTY, al.Filter(V, ANY))),
        ("?s ?p ?o BIND(1 AS ?v) ?o ?p ?s", al.Join(al.Extend(ANY, V, ONE), triple(O, P, S))),
        ("?s ?p ?o MINUS { ?s ?p ?o }", al.Minus(ANY, ANY)),
        ("{ ?s ?p ?o } UNION { } UNION { ?o ?p ?s }", al.Union(al.Union(ANY, EMPTY), triple(O, P, S))),
        ("GRAPH ?v { ?s ?p ?o }", al.Graph(V, ANY)),
        ("VALUES (?s ?v) { (1 UNDEF) }", al.Values((S, V), ((ONE, None),))),
        ("VALUES ?s { 1 <http://e/x> }", al.Values((S,), ((ONE,), ("<http://e/x>",)))),
        ("?s :p/:q ?o", al.BGP((
            al.TriplePattern(S, "<http://e/p>", al.Var("_:0")), al.TriplePattern(al.Var("_:0"), "<http://e/q>", O)))),
        ("?s ^:p ?o", triple(O, "<http://e/p>", S)),
        ("_:x ?p _:y . _:y ?p _:x", al.BGP((
            al.TriplePattern(al.Var("_:0"), P, al.Var("_:1")), al.TriplePattern(al.Var("_:1"), P, al.Var("_:0"))))),
        ("{ SELECT ?s { ?s ?p ?o } }", al.Project(ANY, (S,))),
        ("FILTER NOT EXISTS { ?s ?p ?o }", al.Filter(al.Call("!", (al.Exists(ANY),)), EMPTY)),
        ("FILTER(?s NOT IN (1))", al.Filter(al.Call("!", (al.Call("IN", (S, ONE)),)), EMPTY)),
        ("FILTER(URI(?s))", al.Filter(al.Call("IRI", (S,)), EMPTY)),
        ("FILTER(isuri(?s))", al.Filter(al.Call("ISIRI", (S,)), EMPTY)),
        ("FILTER(xsd:integer(?s))", al.Filter(al.Call(f"<{XSD}integer>", (S,)), EMPTY)),
        ("FILTER(-?s)", al.Filter(al.Call("-", (S,)), EMPTY)),
    ],
)  # fmt: skip
def test_pattern(text: str, pattern: al.Pattern) -> None:
    assert where(text) == pattern


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("80", f'"80"^^<{XSD}integer>'),
        ("007", f'"007"^^<{XSD}integer>'),
        ("-5", f'"-5"^^<{XSD}integer>'),
        ("+5", f'"+5"^^<{XSD}integer>'),
        ("50.0", f'"50.0"^^<{XSD}decimal>'),
        ("-.50", f'"-.50"^^<{XSD}decimal>'),
        ("true", f'"true"^^<{XSD}boolean>'),
        ('"76.0"^^xsd:float', f'"76.0"^^<{XSD}float>'),
        ('"01"^^xsd:integer', f'"01"^^<{XSD}integer>'),
        ('"x"^^xsd:integer', f'"x"^^<{XSD}integer>'),
        ("'a\\tb'@en-GB", '"a\\tb"@en-gb'),
        ("<\\u0061:b>", "<a:b>"),
        ("ex:a\\,b%20", "<http://e/a,b%20>"),
        (":", "<http://e/>"),
        ("a:b", None),
    ],
)
def test_constant(text: str, term: str | None) -> None:
    if term is None:
        with pytest.raises(QueryError, match="the prefix a: of a:b is not declared"):
            where(f"?s ?p {text}")
    else:
        assert where(f"?s ?p {text}") == triple(S, P, term)


@pytest.mark.parametrize(
    ("text", "lexical", "kind"),
    [
        ("1e3", "1e3", "double"),
        ("1000.0e0", "1000.0e0", "double"),
        ('"1E3"^^xsd:double', "1E3", "double"),
        ('"001"^^xsd:integer', "001", "integer"),
        ("042", "042", "integer"),
        ("+5", "+5", "integer"),
        ("-05", "-05", "integer"),
        ("1.50", "1.50", "decimal"),
        ("+1.50", "+1.50", "decimal"),
        ('"1"^^xsd:boolean', "1", "boolean"),
        ('"2020-01-01T00:00:00.000Z"^^xsd:dateTime', "2020-01-01T00:00:00.000Z", "dateTime"),
    ],
)
def test_constants_keep_their_lexical_form(text: str, lexical: str, kind: str) -> None:
    term = f'"{lexical}"^^<{XSD}{kind}>'
    assert where(f"?s ?p {text}") == triple(S, P, term)
    form = parse_sparql(f"PREFIX xsd: <{XSD}> SELECT * {{ BIND({text} AS ?x) }} VALUES ?y {{ {text} }}")
    assert al.Values((al.Var("y"),), ((term,),)) in list(_parts(form.pattern))
    assert [part.expression for part in _parts(form.pattern) if isinstance(part, al.Extend)] == [term]


def _parts(pattern: al.Pattern) -> Iterator[al.Pattern]:
    yield pattern
    for name in ("pattern", "left", "right"):
        if hasattr(pattern, name):
            yield from _parts(getattr(pattern, name))


@pytest.mark.parametrize(("text", "predicate"), [("<urn:p> +5", "<urn:p>"), ("<urn:p>+5", "<urn:p>")])
def test_a_sign_before_a_number_is_no_path_modifier(text: str, predicate: str) -> None:
    assert where(f"?s {text}") == triple(S, predicate, f'"+5"^^<{XSD}integer>')


def test_a_path_modifier_before_a_number() -> None:
    assert where("?s <urn:p>+ 5") == triple(S, al.Repeat("<urn:p>", "+"), f'"5"^^<{XSD}integer>')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?x+05", al.Call("+", (al.Var("x"), f'"05"^^<{XSD}integer>'))),
        ("?x -05", al.Call("-", (al.Var("x"), f'"05"^^<{XSD}integer>'))),
        ("?x - -05", al.Call("-", (al.Var("x"), f'"-05"^^<{XSD}integer>'))),
        ("- 05", al.Call("-", (f'"05"^^<{XSD}integer>',))),
        ("+ 05", al.Call("+", (f'"05"^^<{XSD}integer>',))),
        ("+05", f'"+05"^^<{XSD}integer>'),
    ],
)
def test_a_sign_is_a_part_of_a_number_or_an_operator(text: str, expected: al.Expression) -> None:
    form = parse_sparql(f"SELECT ({text} AS ?y) {{}}")
    assert [part.expression for part in _parts(form.pattern) if isinstance(part, al.Extend)] == [expected]


def test_aggregates_are_named_in_order_and_shared() -> None:
    text = "SELECT (SUM(?o) + COUNT(*) AS ?a) (COUNT(*) AS ?b) { ?s ?p ?o } GROUP BY ?s HAVING(SUM(?o) > 1)"
    form = parse_sparql(text)
    total, count = al.Var(".agg0"), al.Var(".agg1")
    group = al.Group(ANY, ((S, S),), ((total, al.Aggregate("SUM", O)), (count, al.Aggregate("COUNT", None))))
    having = al.Filter(al.Call(">", (total, ONE)), group)
    first = al.Extend(having, al.Var("a"), al.Call("+", (total, count)))
    both = al.Project(al.Extend(first, al.Var("b"), count), (al.Var("a"), al.Var("b")))
    assert form == al.Select(both, ("a", "b"))


def test_star_is_every_visible_variable_without_blank_nodes() -> None:
    form = parse_sparql("SELECT * { ?s ?p [] OPTIONAL { ?o ?p ?s } MINUS { ?x ?p ?v } FILTER(?z) }")
    assert isinstance(form, al.Select)
    assert form.variables == ("s", "p", "o")


def test_a_column_named_twice_is_one() -> None:
    """The variables of SELECT are a set (18.2.4.4)."""
    assert parse_sparql("SELECT ?p ?s ?p { ?s ?p ?o }") == parse_sparql("SELECT ?p ?s { ?s ?p ?o }")
    assert parse_sparql("SELECT (1 AS ?x) ?x { ?s ?p ?o }") == parse_sparql("SELECT (1 AS ?x) { ?s ?p ?o }")


def test_modifiers_stand_in_the_order_of_the_specification() -> None:
    form = parse_sparql("SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY DESC(?o) ?s LIMIT 3 OFFSET 2")
    ordered = al.OrderBy(ANY, ((O, True), (S, False)))
    assert form == al.Select(al.Slice(al.Distinct(al.Project(ordered, (S,))), 2, 3), ("s",))


def test_equality_ignores_prefixes_labels_and_spaces() -> None:
    one = parse_sparql("PREFIX a: <http://e/> SELECT ?s { ?s a:p _:x . _:x a:q 'v' }")
    two = parse_sparql('BASE <http://e/>\nselect ?s\nwhere { ?s <p> [ <q> "v" ] . } # the same')
    assert one == two
    assert hash(one) == hash(two)


def test_template_blank_nodes_are_not_those_of_the_pattern() -> None:
    form = parse_sparql("CONSTRUCT { _:x ?p ?o } WHERE { _:x ?p ?o }")
    blanks = al.Var("_:0"), al.Var("_:1")
    assert form == al.Construct((al.TriplePattern(blanks[0], P, O),), triple(blanks[1], P, O))


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("SELECT ?x {\n ?x ex:p 3 }", 2, 5, "the prefix ex: of ex:p is not declared"),
        ("SELECT ?x {\n ?x <p> 3 }", 2, 5, "the IRI <p> is relative and the query has no BASE"),
        ("SELECT ?x {\n SERVICE <a:b> { } }", 2, 2, "SERVICE is not supported"),
        ("SELECT ?x\nFROM <a:b> { }", 2, 1, "FROM is not supported"),
        ("SELECT ?x\nFROM NAMED <a:b> { }", 2, 1, "FROM is not supported"),
        ("DESCRIBE <a:b>", 1, 1, "DESCRIBE has no defined answer"),
        ("PREFIX a: <b:>\nINSERT DATA { a:b a:c 1 }", 2, 1, "INSERT is an update"),
        ("DELETE WHERE { ?s ?p ?o }", 1, 1, "DELETE is an update"),
        ("SELECT ?x { ?x ?p ?o . FILTER(?o > ${LIMIT}) }", 1, 36, "a parameter"),
        ("SELECT ?x { ?x ?p ?o } GROUP BY ?o", 1, 8, "?x in SELECT is unbound"),
        ("SELECT ?y (STR(?x) AS ?y) { ?x ?p ?o }", 1, 11, "SELECT already has ?y: give the expression another name"),
        ("SELECT (<a:f>(?x) AS ?y) { ?x ?p ?o }", 1, 9, "custom function <a:f> is not supported"),
        ("SELECT ?x { ?x ?p ?o . LATERAL { ?o ?p ?x } }", 1, 24, "LATERAL is not SPARQL: write a subquery"),
        ("SELECT ?x { ?x ?p/?q ?o {| ?q ?r |} }", 1, None, ""),
        ("", 1, 1, "the query is empty"),
        ("SELECT ?x { ?x ?p ?o ", 1, 22, "the { at line 1, column 11 is not closed: add }"),
    ],
)  # fmt: skip
def test_refused(text: str, line: int, column: int | None, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_sparql(text)
    error = refused.value
    assert error.line == line
    assert column is None or error.column == column
    assert says in str(error)
    assert str(error).startswith(f"line {line}, column {error.column}: ")
    assert text.splitlines()[line - 1 : line] == [str(error).splitlines()[1][2:]] or not text


def test_an_error_travels_between_processes() -> None:
    with pytest.raises(QueryError) as refused:
        parse_sparql("SELECT ?x {\n ?x ex:p 3 }")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.line, again.column) == (str(refused.value), 2, 5)


@pytest.mark.slow
def test_a_long_condition_is_no_deep_one() -> None:
    for operator in ("&&", "||"):
        condition = f" {operator} ".join(f"?o > {number}" for number in range(200))
        form = parse_sparql(f"SELECT ?s {{ ?s ?p ?o FILTER({condition}) }}")
        assert parse_sparql(sparql(form)) == form


def test_sixty_brackets_are_read() -> None:
    nested = parse_sparql("SELECT ?x { ?x ?p ?o FILTER(" + "(" * 60 + "?o" + ")" * 60 + ") }")
    assert nested == parse_sparql("SELECT ?x { ?x ?p ?o FILTER(?o) }")


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    depth = 3000
    with pytest.raises(QueryError):
        parse_sparql("SELECT ?x { ?x ?p ?o FILTER(" + "(" * depth + "?o" + ")" * depth + ") }")


def test_a_construct_with_an_empty_template_has_none():
    assert parse_sparql("CONSTRUCT {} WHERE { ?s ?p ?o }").template == ()
    assert parse_sparql("CONSTRUCT {} WHERE { GRAPH ?g { ?s ?p ?o } }").template == ()
    assert len(parse_sparql("CONSTRUCT WHERE { ?s ?p ?o }").template) == 1
    assert parse_sparql("CONSTRUCT WHERE {}").template == ()


@pytest.mark.parametrize("keyword", ["INSERT DATA", "DELETE DATA"])
@pytest.mark.parametrize(("opening", "closing"), [("<< ", " >>"), ("<<( ", " )>>")])
def test_triple_terms_too_deep_in_an_update_are_refused(keyword: str, opening: str, closing: str) -> None:
    data = f"<urn:s> <urn:p> {f'{opening}<urn:s> <urn:p> ' * 60}1{closing * 60}"
    with pytest.raises(QueryError, match="are nested more than"):
        read_update(f"{keyword} {{ {data} }}", UpdateContext(str))
