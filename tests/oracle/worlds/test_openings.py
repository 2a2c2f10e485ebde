"""Open terms: which received texts they may be."""

import pytest

from streamgauge.oracle.worlds.openings import sent_texts

MALFORMED = ['"', '"a"b"', '"a\\"', '"a\nb"', '"\\q"', '"\\u12"']


@pytest.mark.parametrize("malformed", MALFORMED)
def test_received_strings_are_known_by_their_length_and_what_is_no_term_is_left_out(malformed: str) -> None:
    rows = [('"b"', '"a"', None), ("<urn:x>", '"ab"@en', '"x y"'), (malformed,), ('"a"', '"\\n"', '""')]
    assert sent_texts(rows) == {0: ['""'], 1: ['"\\n"', '"a"', '"b"'], 3: ['"x y"']}
