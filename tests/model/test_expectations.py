"""Problems that pydantic finds, in our words."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from streamgauge.model.phrases import expectation


class Part(BaseModel):
    """A table."""

    name: str


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, "ten", "'ten': expected a whole number"),
        (int, 1.5, "1.5: expected a whole number"),
        (int, [], "[]: expected a whole number"),
        (float, "x", "'x': expected a number"),
        (bool, "maybe", "'maybe': expected true or false"),
        (str, 5, "5: expected text, in quotes"),
        (tuple[int, ...], 1, "1: expected a list, as in [1, 2]"),
        (list[int], "a", "'a': expected a list, as in [1, 2]"),
        (dict[str, int], 1, "1: expected a table of names and values"),
        (Part, 1, "1: expected a table of names and values"),
        (Part, {}, "is missing"),
        (Path, 1, "1: expected the path of a file"),
        (datetime, "soon", "'soon': expected a day or a time, as in 2014-12-06 or 2014-12-06T10:30:00"),
        (Literal["fast", "real time"], "slow", "'slow': expected 'fast' or 'real time'"),
        (Annotated[int, Field(ge=1)], 0, "0: expected at least 1"),
        (Annotated[int, Field(gt=0)], 0, "0: expected more than 0"),
        (Annotated[int, Field(le=5)], 6, "6: expected at most 5"),
        (Annotated[float, Field(lt=5)], 5, "5: expected less than 5"),
        (Annotated[list[int], Field(min_length=1)], [], "[]: expected at least 1 of them"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "[1, 2]: expected at most 1 of them"),
        (Annotated[float, Field(allow_inf_nan=False)], float("nan"), "nan: expected a finite number"),
        (None, 1, "1: expected another value"),
    ],
)
def test_a_problem_is_a_clause_of_ours(kind, value, message):
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(value)
    assert expectation(raised.value.errors()[0]) == message


def test_a_sentence_of_ours_is_kept():
    assert expectation({"type": "value_error", "msg": "Value error, give a name.", "input": 1}) == "give a name"


def test_long_values_are_cut():
    assert len(expectation({"type": "int_type", "input": "x" * 500})) < 100
