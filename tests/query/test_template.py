"""Query templates."""

import pytest

from streamgauge.query import QueryError, fill, parameters

TEMPLATE = "SELECT ?s {\n ?s ?p ?v FILTER(?v > ${TEMP} && ?v < ${MAX} + ${TEMP}) }"


def test_every_parameter_is_filled() -> None:
    assert parameters(TEMPLATE) == ("TEMP", "MAX")
    filled = fill(TEMPLATE, {"TEMP": 50.5, "MAX": "80"})
    assert filled == "SELECT ?s {\n ?s ?p ?v FILTER(?v > 50.5 && ?v < 80 + 50.5) }"


def test_a_missing_value_is_named_with_its_place() -> None:
    with pytest.raises(QueryError, match=r"line 2, column 39: the parameter MAX has no value: give MAX="):
        fill(TEMPLATE, {"TEMP": 1})


def test_an_unused_value_is_named() -> None:
    with pytest.raises(ValueError, match="the query has no parameter SIZE; its parameters: TEMP, MAX"):
        fill(TEMPLATE, {"TEMP": 1, "MAX": 2, "SIZE": 3})


def test_a_value_is_not_filled_again() -> None:
    assert fill("${A} ${B}", {"A": "${B}", "B": r"\1"}) == r"${B} \1"
