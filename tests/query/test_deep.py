"""Bounds of SPARQL text: nesting and chains are counted; brackets in strings and comments are not.

Whatever passes them is read, printed, hashed and walked in a thread with a quarter of our usual stack.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable

import pytest

from streamgauge.formats.bounds import LOCAL, SERVED
from streamgauge.query import QueryError, parse, parse_sparql
from streamgauge.query.cursor import MAX_WEIGHT
from streamgauge.query.text import DEPTH, check_bounds
from streamgauge.query.updates import UpdateContext, read_update

STACK_KIB = 2048
"""What threads have at least: 8 MiB by default on Linux, 2 MiB where no limit is set."""

PROGRAM = """
import sys, threading
from streamgauge.incremental import UnsupportedError
from tests.incremental.evaluation import Evaluator
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import with_parts
from streamgauge.sparql.algebra import UndefinedError, answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph

def work(text):
    form = parse_sparql(text, "http://e/")
    assert with_parts(form, lambda part: part) and form == parse_sparql(text, "http://e/") and sparql(form)
    triple = "<urn:a>", "<urn:a>", "<urn:a>"
    for run in (lambda: answer(form, Dataset(IndexedGraph([triple]))), lambda: Evaluator(form).enter([triple])):
        try:
            run()
        except (UndefinedError, UnsupportedError):
            pass

def all_of_them():
    for text in sys.stdin.read().split("\\0"):
        work(text)
    print("done")

threading.stack_size(int(sys.argv[1]) * 1024)
thread = threading.Thread(target=all_of_them)
thread.start()
thread.join()
"""

Build = Callable[[int], str]


def filtered(expression: str) -> str:
    return f"SELECT * {{ ?s ?p ?b FILTER({expression}) }}"


CHAINS: dict[str, Build] = {
    "not": lambda n: filtered("!" * n + "?b"),
    "not, spaced": lambda n: filtered("! " * n + "?b"),
    "plus": lambda n: filtered("?b" + "+?b" * n),
    "minus, numbers": lambda n: filtered("?b" + " -1" * n),
    "minus, words": lambda n: filtered("true" + "-1" * n),
    "times": lambda n: filtered("?b" + "*?b" * n),
    "divided": lambda n: filtered("?b" + "/?b" * n),
    "or": lambda n: filtered("?b" + "||?b" * n),
    "and": lambda n: filtered("?b" + "&&?b" * n),
    "code points": lambda n: (
        f'VERSION "1.1" {filtered("?b" + (chr(92) + "u007C") * 2 + ("?b||?b||" * (n // 2)) + "?b")}'
    ),
    "UNION": lambda n: "SELECT * { {?s ?p ?o}" + " UNION {?s ?p ?o}" * n + "}",
    "OPTIONAL": lambda n: "SELECT * { ?s ?p ?o" + " OPTIONAL {?s ?p ?o}" * n + "}",
    "MINUS": lambda n: "SELECT * { ?s ?p ?o" + " MINUS {?s ?p ?o}" * n + "}",
    "FILTER": lambda n: "SELECT * { ?s ?p ?b " + "FILTER(?b)" * n + "}",
    "BIND": lambda n: "SELECT * {" + "".join(f"BIND(1 AS ?x{i})" for i in range(n)) + "}",
    "VALUES": lambda n: "SELECT * {" + "VALUES ?z {1}" * n + "}",
    "triples": lambda n: "SELECT * {" + "?s ?p ?o." * n + "}",
    "semicolons": lambda n: "SELECT * {?s ?p ?o" + ";?p ?o" * n + "}",
    "commas": lambda n: "SELECT * {?s ?p ?o" + ",?o" * n + "}",
    "a list": lambda n: "SELECT * {?s ?p (" + "1 " * n + ")}",
    "path /": lambda n: "SELECT * {?s <p:p>" + "/<p:p>" * n + " ?o}",
    "path |": lambda n: "SELECT * {?s <p:p>" + "|<p:p>" * n + " ?o}",
    "projection": lambda n: "SELECT ?s " + "".join(f"(1 AS ?x{i})" for i in range(n)) + " {?s ?p ?o}",
    "HAVING": lambda n: "SELECT ?s {?s ?p ?o} GROUP BY ?s HAVING " + "(?s) " * n,
    "GRAPH": lambda n: "SELECT * {" + "GRAPH ?g {?s ?p ?o}" * n + "}",
}
NESTED: dict[str, Build] = {
    "groups": lambda n: "SELECT * {" + "{" * n + "?s ?p ?o" + "}" * n + "}",
    "brackets": lambda n: filtered("(" * n + "?b" + ")" * n),
    "functions": lambda n: filtered("ABS(" * n + "?b" + ")" * n),
    "EXISTS": lambda n: "SELECT * {" + "FILTER EXISTS { ?s ?p ?o " * n + "}" * n + "}",
    "OPTIONAL": lambda n: "SELECT * {" + "OPTIONAL { ?s ?p ?o " * n + "}" * n + "}",
    "subqueries": lambda n: "SELECT * " + "{ SELECT * " * n + "{ ?s ?p ?o }" + "}" * n,
    "blank nodes": lambda n: "SELECT * {?s ?p " + "[?p " * n + "1" + "]" * n + "}",
    "lists": lambda n: "SELECT * {?s ?p " + "(" * n + "1" + ")" * n + "}",
    "paths": lambda n: "SELECT * {?s " + "(" * n + "<p:p>" + ")*" * n + " ?o}",
    "quoted triples": lambda n: "SELECT * {?s ?p " + "<< ?a ?b " * n + "1" + " >>" * n + "}",
    "triple terms": lambda n: "SELECT * {?s ?p " + "<<( <a:a> <a:b> " * n + "1" + " )>>" * n + "}",
    "a template": lambda n: "CONSTRUCT { <a:a> <a:b> " + "[ <a:b> " * n + "1" + "]" * n + "} WHERE {}",
    "of both kinds": lambda n: "SELECT * {" + "FILTER(EXISTS {" * n + "?s ?p ?o" + "})" * n + "}",
}


def bound(text: str) -> str:
    """The sentence about a text that is refused; empty for one within the bounds."""
    try:
        parse_sparql(text, "http://e/")
    except QueryError as error:
        return error.what
    return ""


def accepted(build: Build) -> int:
    """The largest size that is accepted, and all below it."""
    low, high = 0, 600
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if bound(build(middle)) else (middle, high)
    assert "more than" in bound(build(low + 1))
    return low


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_bounded(name: str) -> None:
    assert 2 <= accepted(CHAINS[name]) <= MAX_WEIGHT
    assert f"more than {MAX_WEIGHT} nested or chained brackets, operators and patterns" in bound(CHAINS[name](2_000))


@pytest.mark.parametrize("name", NESTED)
def test_brackets_lie_at_most_so_deep_in_each_other(name: str) -> None:
    assert DEPTH // 4 <= accepted(NESTED[name]) <= DEPTH
    assert "are nested more than" in bound(NESTED[name](5_000))


def evaluate_deepest(builds: Iterable[Build]) -> None:
    texts = "\0".join(build(accepted(build)) for build in builds)
    command = [sys.executable, "-c", PROGRAM, str(STACK_KIB)]
    done = subprocess.run(command, input=texts, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2_000:]


@pytest.mark.server
def test_the_deepest_texts_that_are_accepted_are_evaluated() -> None:
    evaluate_deepest([CHAINS["or"], NESTED["functions"]])


@pytest.mark.prove
def test_all_of_the_deepest_texts_are_evaluated() -> None:
    evaluate_deepest((CHAINS | NESTED).values())


@pytest.mark.parametrize("name", ["not", "plus", "or", "brackets", "functions", "UNION", "path /"])
def test_what_is_too_deep_is_refused_with_its_place(name: str) -> None:
    text = (CHAINS | NESTED)[name](1_500)
    continuous = text.replace("{", "FROM STREAM <urn:s> [RANGE 1s STEP 1s] {", 1)
    for read in (lambda: parse_sparql(text), lambda: parse(f"REGISTER QUERY q AS {continuous}")):
        with pytest.raises(QueryError, match=r"line \d+, column \d+: .*more than \d+ (?:nested|deep)") as refused:
            read()
        assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p " + "'(((!!!{{{'" + " }",
        "SELECT * { ?s ?p '''" + "(" * 500 + "''' }",
        "SELECT * { ?s ?p 1 } # it's " + "{" * 500,
        "SELECT * { ?s <http://example.org/o'neil/(a)/b#c> '" + "(" * 500 + "' }",
        'SELECT * { ?s ?p "\\"' + "(" * 500 + '" }',
        "SELECT * { ?s <ex:a> ?o } # " + "(" * 500,
        "CONSTRUCT { " + "?s ?p ?o . " * 500 + "} WHERE { ?s ?p ?o }",
        "SELECT * { VALUES (?x ?y) { " + "(1 -2) " * 500 + "} }",
        "SELECT * { VALUES ?x { " + "-1 1e-3 <a:b-c/d> " * 300 + "} }",
        filtered("?b IN (" + "-1, " * 500 + "1)"),
        "PREFIX a-b: <urn:a> " * 100 + "SELECT * { ?s a-b:c-d ?o }",
        filtered(" || ".join(f"?b = {n}" for n in range(180))),
        "SELECT * { " + " UNION ".join("{ ?s <http://example.org/a-b/c> ?o }" for _ in range(90)) + "}",
        "SELECT * { " + "?s <http://example.org/a-b/c> ?o . " * 90 + "}",
    ],
)
def test_large_texts_that_are_not_deep_are_accepted(text: str) -> None:
    assert parse_sparql(text, bounds=SERVED).pattern != parse_sparql("SELECT * {}").pattern


def test_data_of_an_update_may_be_long_but_not_deep() -> None:
    read_update("INSERT DATA { " + "<a:a> <a:b> 1, 2 ; <a:c> 3 . " * 200 + "}", UpdateContext(str))
    with pytest.raises(QueryError, match="brackets are nested more than 64 deep"):
        read_update("INSERT DATA { <a:a> <a:b> " + "[ <a:b> " * 99 + "1" + "]" * 99 + "}", UpdateContext(str))


def test_length_and_tokens_are_bounded() -> None:
    check_bounds(" " * SERVED.characters, SERVED)
    with pytest.raises(QueryError, match="65537 characters, more than 65536"):
        check_bounds(" " * (SERVED.characters + 1), SERVED)
    values = "SELECT * { VALUES ?x { %s } }"
    check_bounds(values % ("1 " * (SERVED.tokens - 8)), SERVED)
    with pytest.raises(QueryError, match="more than 4000 terms, words and signs"):
        check_bounds(values % ("1 " * SERVED.tokens), SERVED)
    check_bounds(values % ("1 " * SERVED.tokens), LOCAL)


@pytest.mark.parametrize("text", ['"', "'", '"a\n"', '"""a', "'''a''", '"\\"', '"""\\"""', "'\\\\\\'", '""""'])
def test_a_string_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="this string is not closed"):
        parse_sparql(f"SELECT * {{ ?s ?p {text}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        '"\\"',
        '"""\\"',
        "a.",
        "a-",
        "_:a.",
        "a:b.",
        "1",
        "1.",
        "<",
        "<a",
        '"""',
        "#",
        "@a-",
        "'",
        "\\",
        "{",
        "\\u0021",
        "$a",
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(part: str) -> None:
    begun = time.process_time()
    with pytest.raises(QueryError):
        parse_sparql(part * (SERVED.characters // len(part)), bounds=SERVED)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    "text",
    [
        "ASK { <urn:\\ud834> ?p ?o }",
        'ASK { ?s ?p "\\\\\\U0000DD1E" }',
        "ASK { ?s ?p '\ud834' }",
        "PREFIX a: <urn:\\UFFFFFFFF> ASK { a:b ?p ?o }",
    ],
)
def test_half_a_surrogate_pair_in_sparql_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="UTF-8 cannot encode it"):
        parse_sparql(text)
    parse_sparql('ASK { ?s ?p "\\\\ud834", "\\U0001d11e", "\U0001d11e" }')


def test_an_unknown_function_is_still_refused_where_it_stands() -> None:
    with pytest.raises(QueryError, match=r"line 1, column 30: the custom function <urn:f>.*is not supported"):
        parse_sparql("SELECT * { ?s ?p ?o FILTER( !<urn:f>(?o, 1)) }")
    parse_sparql("SELECT * { ?s <urn:f> (1 2) FILTER(<http://www.w3.org/2001/XMLSchema#integer>(?s) > 1) }")
