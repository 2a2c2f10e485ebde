"""Files that are read in columns give the answers of their elements one by one, wherever chunks end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import watch
from streamgauge.formats import documents
from streamgauge.formats.lines import Advance, encode_advance, encode_element
from streamgauge.formats.streams import jsonl
from streamgauge.model.element import StreamElement
from streamgauge.watching import watches
from tests.examples import examples

STREAM = "urn:s"
QUERY = (
    "REGISTER {r2s} <urn:out> AS SELECT ?o ?v FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT5S] "
    "WHERE {{ WINDOW <urn:w> {{ ?o <urn:sensor> ?s ; <urn:value> ?v }} }}"
)
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


@st.composite
def streams(draw):
    """Elements of readings and advances; time goes back in some."""
    time, items = 0, []
    for number in range(draw(st.integers(1, 40))):
        time = max(0, time + draw(st.sampled_from([0, 100, 700, 4_000, 20_000, -300, -3_000])))
        if draw(st.integers(0, 9)) == 0:
            items.append(Advance(time))
            continue
        sensor, value = (draw(st.integers(0, 3)) for _ in "sv")
        subject = f"<urn:o:{draw(st.sampled_from([number, 0]))}>"
        added = ((subject, "<urn:sensor>", f'"room {sensor}"'), (subject, "<urn:value>", f'"{value}"^^{INTEGER}'))
        stream = draw(st.sampled_from([STREAM] * 9 + ["urn:other"]))
        items.append(StreamElement(stream, time, number, added[draw(st.sampled_from([0, 0, 0, 1])) :]))
    return items


def outcome(source, **options):
    """All that a watch gives, and the sentence with which it ends."""
    answers, why = [], ""
    watched = watch(QUERY.format(r2s=options.pop("r2s")), source, **options)
    try:
        answers.extend((a.instant, a.scope, sorted(a.added), sorted(a.removed)) for a in watched)
    except ValueError as error:
        why = str(error).partition(": ")[2]
    counts = (watched.elements, watched.late, watched.uncounted, watched.horizon, watched.predicates)
    return answers, why, counts if not why else ()


@given(
    streams(),
    st.sampled_from(
        [("rspql", "Rstream"), ("rspql", "Istream"), ("rspql", "Dstream"), ("cqels", "Istream"), ("csparql", "Rstream")]
    ),
    st.sampled_from([None, "2s", "1h"]),
    st.integers(2, 4_000),
    st.sampled_from([0, 5]),
    st.sampled_from([0, 10]),
)
@examples(suite=40, prove=2_000)
def test_lines_in_columns_are_elements_one_by_one(tmp_path_factory, items, asked, lateness, buffered, first, looked):
    path = tmp_path_factory.mktemp("columns") / "s.jsonl"
    path.write_bytes(
        b"".join([encode_advance(item.time) if isinstance(item, Advance) else encode_element(item) for item in items])
    )
    options = {"semantics": asked[0], "r2s": asked[1], "lateness": lateness}
    expected = outcome(f"{path}?form=jsonl", **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "BUFFER", buffered)
        patch.setattr(watches, "LOOKED_AT", looked)
        for name, value in (("ROWS_FIRST", first), ("FEW_LINES", 1), ("ONE_BY_ONE", 1)):
            patch.setattr(jsonl, name, value)
        assert outcome(f"{path}?form=jsonl", **options)[:2] == expected[:2]
        patch.setattr(watches, "LOOKED_AT", 1000)
        assert outcome(f"{path}?form=jsonl", **options) == expected
