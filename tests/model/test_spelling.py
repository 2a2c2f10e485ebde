"""Names as people write them."""

import pytest

from streamgauge.model.phrases import meant, offered, spelled

KNOWN = ("cqels", "csparql", "csparql-0.9.7", "SENS")


@pytest.mark.parametrize(("name", "result"), [("csparql", "csparql"), ("CSPARQL", "csparql"), ("sens", "SENS")])
def test_a_name_is_found_in_any_case(name, result):
    assert spelled(name, KNOWN) == result


@pytest.mark.parametrize("name", ["", "c-sparql", "csparql "])
def test_another_name_is_none(name):
    assert spelled(name, KNOWN) is None


def test_names_that_differ_in_case_only_are_written_exactly():
    assert spelled("a", ("a", "A")) == "a"
    assert spelled("aB", ("AB", "ab")) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [("csparkle", "; did you mean csparql?"), ("C-SPARQL", "; did you mean csparql?"), ("esper", ""), ("", "")],
)
def test_the_name_most_like_it_is_offered(name, message):
    assert meant(name, KNOWN) == message


def test_the_names_there_are_come_first():
    assert offered("cqel", KNOWN) == "there are cqels, csparql, csparql-0.9.7, SENS; did you mean cqels?"
    assert offered("x", ()) == "there are none"
