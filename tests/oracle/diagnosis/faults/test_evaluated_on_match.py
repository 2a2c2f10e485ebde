"""An engine that evaluates at new matches: which matches are new, by hand."""

import pytest

from streamgauge.oracle.diagnosis.faults.evaluated_on_match import _new
from tests.notation import rows


@pytest.mark.parametrize(
    ("matches", "new"),
    [
        (["a"], True),
        ([""], False),
        (["a", "a"], False),
        (["a", "a ; b"], True),
        (["a ; b", "a"], False),
        (["a", "a ; a"], True),
        (["a", "b"], True),
        (["b", "a", "b"], True),  # compared with the instant before only
        (["", "a", "a"], False),
    ],
)
def test_a_match_is_new_that_the_instant_before_did_not_have(matches, new):
    assert _new([rows(text) for text in matches]) is new
