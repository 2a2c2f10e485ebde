"""The command line says in a sentence that a query or a file is too deep, where the process ended before."""

import pytest

from tests.cli.test_bad_input import QUERY, here  # noqa: F401 - a fixture
from tests.formats.test_bounds import deep

SIGNS = "!" * 20_000
UNIONS = "{ ?s ?p ?o } UNION " * 1_500


def filtered(query: str, expression: str) -> str:
    return query.replace("?s ex:p ?o }", f"?s ex:p ?o {expression} }}")


@pytest.mark.parametrize(
    "part",
    [f"FILTER({SIGNS}?o)", "FILTER(?o" + "+?o" * 7_000 + ")", UNIONS + "{ ?s ?p ?o }"],
    ids=["signs", "sum", "unions"],
)
@pytest.mark.parametrize(
    "words",
    [
        ("expect", "QUERY", "--stream", "TABLE", "--semantics", "rspql"),
        ("translate", "QUERY", "--to", "csparql"),
        ("watch", "QUERY", "http://127.0.0.1:9/"),
        ("query", "QUERY", "--stream", "TABLE"),
    ],
    ids=lambda words: words[0],
)
def test_a_query_that_is_too_deep(here, command, words, part):  # noqa: F811
    text = filtered(QUERY, part)
    if words[0] == "watch":
        text = f"SELECT ?s {{ ?s ?p ?o . {part} }}"
    (here / "query.rq").write_text(text)
    files = {"QUERY": here / "query.rq", "TABLE": here / "table"}
    code, _, err = command(*(files.get(word, word) for word in words))
    assert code == 2
    assert "more than 216 nested or chained brackets, operators and patterns" in err
    assert len(err) < 1_000


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.ttl", deep(20_000), "triple terms are nested more than 32 deep"),
        ("a.nt", deep(20_000), "triple terms are nested more than 32 deep"),
        ("a.owl", '<!DOCTYPE r [<!ENTITY a "a">]><r/>', "a DTD"),
    ],
)
def test_static_data_that_are_too_deep(here, command, name, text, says):  # noqa: F811
    (here / name).write_text(text)
    code, _, err = command(
        "expect", here / "query.rq", "--stream", here / "table", "--semantics", "rspql", "--static", here / name
    )
    assert code == 2
    assert says in err
    assert name in err
