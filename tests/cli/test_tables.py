"""Tables fit where they are printed and lose nothing; terms have the query's prefixes, rows an order."""

import io
import random
from dataclasses import replace

import pytest
from rich.console import Console

from streamgauge.cli.answers import Shown, prefixes, row_key, shortened
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.query import parse
from streamgauge.semantics.profiles import RSPQL
from tests.cli.test_bad_input import QUERY

XSD = "http://www.w3.org/2001/XMLSchema#"
LISTS = [("workloads",), ("engines",), ("engines", "--semantics"), ("sepbm", "systems"), ("doctor",)]


@pytest.mark.parametrize("words", LISTS)
@pytest.mark.parametrize("columns", [None, "60"])
def test_a_list_fits_and_is_whole(command, monkeypatch, words, columns):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    out = command(*words).out
    drawn = [line for line in out.splitlines() if line[:1] in "┏┃┡│└├"]
    assert drawn
    assert max(map(len, drawn)) <= int(columns or 80)
    assert "…" not in out


def shown(query, rows):
    console = Console(file=io.StringIO(), width=80)
    columns = query.form.variables
    Shown(console, query, RSPQL, prefixes(QUERY))(Answer(columns, tuple(rows), instant=5000))
    return [line.strip() for line in console.file.getvalue().splitlines()[3:]]


def test_rows_without_an_order_come_in_that_of_their_values():
    query = parse(QUERY)
    terms = ["<urn:a>", "<urn:b>", f'"9"^^<{XSD}integer>', f'"10"^^<{XSD}integer>', f'"9.5"^^<{XSD}decimal>', '"z"']
    rows = [(term,) for term in terms]
    for seed in range(3):
        assert shown(query, random.Random(seed).sample(rows, len(rows))) == ["9", "9.5", "10", "z", "ex:a", "ex:b"]


def test_the_order_of_a_query_is_kept():
    query = parse(QUERY + "ORDER BY DESC(?s)")
    assert shown(query, [("<urn:b>",), ("<urn:c>",), ("<urn:a>",)]) == ["ex:b", "ex:c", "ex:a"]


def test_the_order_of_a_subquery_is_not_that_of_the_answer():
    query = parse(QUERY)
    pattern = al.Project(al.OrderBy(query.form.pattern, ((al.Var("s"), True),)), (al.Var("s"),))
    within = replace(query, form=replace(query.form, pattern=al.Project(pattern, pattern.variables)))
    assert shown(within, [("<urn:b>",), ("<urn:c>",), ("<urn:a>",)]) == ["ex:a", "ex:b", "ex:c"]


def test_unbound_comes_first_and_no_number_is_text():
    rows = [(f'"NaN"^^<{XSD}double>',), ('"b"',), (None,), (f'"x"^^<{XSD}integer>',), (f'"1e3"^^<{XSD}double>',)]
    assert [row[0] for row in sorted(rows, key=row_key)] == [
        None,
        f'"1e3"^^<{XSD}double>',
        f'"NaN"^^<{XSD}double>',
        '"b"',
        f'"x"^^<{XSD}integer>',
    ]


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("<http://example.org/a#b>", "ex:b"),
        ("<http://other.org/a>", "<http://other.org/a>"),
        (f'"2026-01-02"^^<{XSD}date>', '"2026-01-02"^^xsd:date'),
        ('"1"^^<http://example.org/a#kind>', '"1"^^ex:kind'),
        ('"a"@en', '"a"@en'),
        ('"plain"', "plain"),
        ("_:b0", "_:b0"),
        (None, ""),
    ],
)
def test_terms_have_prefixes(term, text):
    assert shortened(term, [("ex", "http://example.org/a#")]) == text
