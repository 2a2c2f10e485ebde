"""Whatever passes the bounds, no parser behind them overflows a stack, one that is a quarter of ours included."""

import subprocess
import sys

import pytest

from streamgauge.query import QueryError, parse, parse_sparql
from tests.formats.test_bounds import CHAINS, NESTED, accepted

pytestmark = pytest.mark.server

STACK_KIB = 2048
"""What threads have at least: 8 MiB by default on Linux, 2 MiB where no limit is set."""

PROGRAM = """
import sys, threading
import pyoxigraph as ox
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.printer import sparql

def work(text, plan):
    try:
        form = parse_sparql(text, "http://e/")
    except QueryError:
        return
    printed = sparql(form)
    if plan:
        ox.Store().query(printed)

def all_of_them():
    for text in sys.stdin.read().split("\\0"):
        work(text, sys.argv[2] == "plan")
    print("done")

threading.stack_size(int(sys.argv[1]) * 1024)
thread = threading.Thread(target=all_of_them)
thread.start()
thread.join()
"""
BUILDS = CHAINS | NESTED
HUNGRY = (
    "functions",
    "EXISTS",
    "lists",
    "a list",
    "groups",
    "brackets",
    "path /",
    "not",
    "and, in what looks like an IRI",
)
"""Those that take most of a stack, and one that is hidden."""


def deepest(names: list[str], plan: str) -> None:
    texts = [BUILDS[name](accepted(BUILDS[name])) for name in names]
    command = [sys.executable, "-c", PROGRAM, str(STACK_KIB), plan]
    done = subprocess.run(command, input="\0".join(texts), capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2_000:]


def test_the_deepest_texts_that_are_accepted_are_parsed() -> None:
    deepest(list(HUNGRY), "no plan")


@pytest.mark.prove
@pytest.mark.parametrize("name", BUILDS)
def test_the_deepest_texts_that_are_accepted_are_planned(name: str) -> None:
    deepest([name], "plan")


@pytest.mark.parametrize("name", ["not", "plus", "or", "brackets", "functions", "UNION", "path /"])
def test_what_killed_the_process_is_refused_with_its_place(name: str) -> None:
    text = BUILDS[name](1_500 if name == "UNION" else 20_000 // len(BUILDS[name](2)) * 2)
    for read in (parse_sparql, parse, lambda text: parse(text, "rspql")):
        with pytest.raises(QueryError, match=r"line \d+, column \d+: more than \d+ brackets") as refused:
            read(text)
        assert len(str(refused.value)) < 1_000


def test_an_unknown_function_is_still_refused_where_it_stands() -> None:
    with pytest.raises(QueryError, match=r"line 1, column 30: the custom function <urn:f>.*is not supported"):
        parse_sparql("SELECT * { ?s ?p ?o FILTER( !<urn:f>(?o, 1)) }")
    parse_sparql("SELECT * { ?s <urn:f> (1 2) FILTER(<http://www.w3.org/2001/XMLSchema#integer>(?s) > 1) }")
