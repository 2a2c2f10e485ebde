"""Elements that come late: an engine that takes them in all the same, and one that takes nothing out of order."""

from dataclasses import replace

import pytest

from streamgauge.formats.notation import stream
from streamgauge.oracle.diagnosis.diagnose import diagnose
from tests.oracle.diagnosis.faults.recordings import CLOSE, best, elements, recording

QUERY = "SELECT ?s ?v { ?s <urn:p> ?v }"
TIMES = (3, 9, 7, 14, 6, 18, 22, 21, 16, 31, 28, 36, 12, 41, 44, 43, 52, 55)
DISORDERED = " | ".join(f"{t}: s{t % 4} p {t}." for t in TIMES)
"""6, 16 and 12 come more than 3 ms late; 7, 21, 28 and 43 are out of order within that bound."""

RISING = [time for at, time in enumerate(TIMES) if time >= max(TIMES[: at + 1])]
BOUNDED = replace(CLOSE, name="bounded", lateness=3)


def text_of(times):
    return " | ".join(f"{t}: s{t % 4} p {t}." for t in times)


@pytest.mark.parametrize(
    ("taken", "name"), [(sorted(TIMES), "late elements processed"), (RISING, "out of order dropped")]
)
def test_an_engine_that_minds_another_bound_is_named(taken, name):
    assert len(stream(text_of(taken))) == len(taken)
    right = recording(DISORDERED, QUERY, semantics=BOUNDED, advance=60)
    wrong = recording(text_of(taken), QUERY, semantics=BOUNDED, advance=60)
    result = diagnose(replace(right, answers=wrong.answers), elements(DISORDERED))
    assert result.exact
    assert name in best(result)
    assert diagnose(right, elements(DISORDERED)).models == ()
