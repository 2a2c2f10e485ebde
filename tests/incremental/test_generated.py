"""Generated joins: golden texts of a handful of patterns, their lines in tracebacks, and what is too large for them.

A golden text is written by ``python -m streamgauge.incremental [--standing] QUERY``.
"""

import inspect
import re
import subprocess
import sys
import traceback
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamgauge.incremental import ir, window_joins
from streamgauge.incremental.__main__ import generated
from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.ir import Cases, Do, Emit, JoinError, Module, Nested, Probe, Scan, Test, text_of
from streamgauge.model.terms import Triple
from streamgauge.query import parse_sparql
from tests.incremental.evaluation import Evaluator

FOLDER = Path(__file__).with_name("generated")
QUERIES = {
    "chain": "SELECT * { ?s <urn:p> ?o . ?o <urn:q> ?v }",
    "mutual": "SELECT * { ?x <urn:k> ?y . ?y <urn:k> ?x }",
    "conditions": "SELECT ?s { ?s <urn:p> ?a . ?s <urn:p> ?b FILTER(?a > 3) FILTER(?a - ?b > 1) }",
    "any_predicate": "SELECT * { ?s ?p ?o . ?o <urn:q> <urn:c> }",
}


@pytest.mark.parametrize("standing", [False, True], ids=["windows", "facts"])
@pytest.mark.parametrize("name", QUERIES)
def test_the_text_is_the_golden_one(name: str, standing: bool) -> None:
    golden = (FOLDER / f"{name}{'.facts' if standing else ''}.txt").read_text()
    assert "\n".join(generated(parse_sparql(QUERIES[name]), standing)) == golden.rstrip("\n") + "\n"


def test_a_traceback_shows_the_generated_line() -> None:
    evaluator = Evaluator(parse_sparql(QUERIES["chain"]))
    try:
        evaluator.enter([("a", "b")])  # type: ignore[list-item]
    except ValueError:
        shown = traceback.format_exc()
    assert re.search(r'File "<joins [0-9a-f]+>", line \d+, in enter\n    s, p, o = t\n', shown)


def test_the_text_of_a_function_can_be_inspected() -> None:
    enter = Evaluator(parse_sparql(QUERIES["chain"])).enter
    assert inspect.getsource(enter).strip().startswith("def enter(triples):")
    assert text_of(enter).startswith("def build(")


def test_operations_open_blocks_and_branches_end_them() -> None:
    module, result = Module(), {("a", 2): 1}
    index = module.use({"a": (1, 2)})
    bag = module.use(result)
    module.function("run", ["s"])
    with module.branch():
        module.add(Probe(index, "s", "o"), Test("o > 1"), Do("row = (s, o)"), Emit(bag, "+ 1"))
    module.add(Cases([("s == 'a'", [Do("last = 1")]), ("True", [Do("last = 2")])]), Nested([Scan("x", "()"), Do("0")]))
    module.add(Do("return last"))
    (run,) = module.built()
    assert (run("a"), run("b")) == (1, 2)
    assert result == {("a", 2): 2}


def test_too_many_blocks_are_refused() -> None:
    module = Module()
    module.function("run", ["a"])
    module.add(*(Scan(f"x{number}", "a") for number in range(30)), Do("pass"))
    with pytest.raises(JoinError, match="nested"):
        module.built()


def test_conditions_beyond_what_python_nests_are_refused_by_name() -> None:
    conditions = " ".join(f"FILTER(?a - ?b > {number})" for number in range(100))
    with pytest.raises(TooMuchError, match="too many or too deep to be compiled"):
        Evaluator(parse_sparql(f"SELECT * {{ ?s <urn:p> ?a . ?s <urn:q> ?b {conditions} }}"))


LARGE = {
    "a path": "?a " + "/".join(f"<urn:p{n}>" for n in range(180)) + " ?b",
    "a path of one property": "?a " + "/".join(["<urn:p>"] * 180) + " ?b",
    "a star": " ".join(f"?x <urn:p> <urn:o{n}> ; <urn:p{n}> ?y{n} ." for n in range(50)),
    "groups": " ".join(f"OPTIONAL {{ ?x <urn:p{n}> ?y{n} . ?y{n} <urn:q{n}> ?z{n} }}" for n in range(60)),
    "filters": " ".join(f"OPTIONAL {{ ?x <urn:p> ?y{n} FILTER(?y{n} > {n}) }}" for n in range(100)),
}
"""Groups as large as servers take them (``formats.bounds.SERVED``)."""


@pytest.mark.slow
@pytest.mark.parametrize("standing", [False, True], ids=["windows", "facts"])
@pytest.mark.parametrize("group", LARGE)
def test_the_functions_of_a_large_query_are_compiled_in_pieces(
    group: str, standing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other thread runs while CPython compiles: 15 us a line."""
    pieces: list[int] = []

    def compiled(text: str, *others: str) -> Any:
        pieces.append(text.count("\n"))
        return compile(text, *others)

    monkeypatch.setattr(ir, "compile", compiled, raising=False)
    ir._code.cache_clear()
    generated(parse_sparql(f"SELECT * {{ {LARGE[group]} }}"), standing)
    assert 0 < max(pieces) <= ir.PIECE


def test_the_parts_of_a_function_do_what_the_whole_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function in parts gives the same changes, whatever enters and leaves, and its text has all parts."""
    query = parse_sparql("SELECT * { ?x <urn:p> ?y . ?y <urn:p> ?z . ?y <urn:q> <urn:c> . ?x <urn:p> <urn:a> }")
    whole = Evaluator(query)
    monkeypatch.setattr(window_joins, "PIECE", 0)
    monkeypatch.setattr(ir, "PIECE", 0)
    parted = Evaluator(query)
    assert len(text_of(parted.enter).split("def build(")) > len(text_of(whole.enter).split("def build(")) == 2
    drawn, held = Random(7), list[Triple]()
    for _ in range(200):
        if held and drawn.random() < 0.4:
            triple = held.pop(drawn.randrange(len(held)))
            assert whole.change((), (triple,)) == parted.change((), (triple,))
        else:
            predicate, end = drawn.choice([("<urn:p>", drawn.choice("abc")), ("<urn:q>", "c")])
            held.append((f"<urn:{drawn.choice('abc')}>", predicate, f"<urn:{end}>"))
            assert whole.change(held[-1:], ()) == parted.change(held[-1:], ())


@pytest.mark.server
def test_a_program_shows_it() -> None:
    asked = [sys.executable, "-m", "streamgauge.incremental", QUERIES["chain"]]
    shown = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert shown == (FOLDER / "chain.txt").read_text()
