"""Numbers that an engine rounds are named, however large the numbers beside them are."""

from tests.oracle.diagnosis.faults.recordings import best, diagnosed, recording

QUERY = "SELECT ?s (?v / 3.0 AS ?w) { ?s <urn:p> ?v }"


def test_a_number_of_more_digits_than_decimals_keep_does_not_end_the_diagnosis():
    text = f"1: s p 1. | 2: s p {10**40}. | 3: s p 2."
    run = recording(text, QUERY, "SELECT ?s (ROUND(?v / 3.0 * 100.0) / 100.0 AS ?w) { ?s <urn:p> ?v }")
    assert "numbers rounded to 2 digits" in best(diagnosed(run, text))
