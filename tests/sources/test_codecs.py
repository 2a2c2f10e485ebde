"""Single messages: every form comes back as it was sent; where a graph's time comes from; what is refused."""

import io
from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.lines import Advance, encode_advance, encode_element
from streamgauge.formats.streams import FormatError, Reading, stream_formats
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD
from streamgauge.sources import SourceError, open_source, schemes
from streamgauge.sources.contract import parse_address
from streamgauge.sources.decoders import MessageOptions, Messages

from ..formats.test_formats import TRIPLES

FORMS = sorted(name for name, form in stream_formats().items() if form.decoder and form.encode)
ELEMENTS = st.lists(
    st.builds(
        lambda step, triples: (step, tuple(triples)), st.integers(0, 9999), st.lists(TRIPLES, min_size=1, max_size=4)
    ),
    max_size=4,
)


def unlabelled(element):
    """Blank nodes numbered in order of appearance: they belong to their message."""
    names: dict[str, str] = {}
    rename = lambda term: names.setdefault(term, f"_:{len(names)}") if term.startswith("_:") else term  # noqa: E731
    return replace(element, added=tuple(tuple(map(rename, triple)) for triple in element.added))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@given(ELEMENTS)
def test_messages_come_back(form, steps):
    chosen, time = stream_formats()[form], -7
    elements = []
    for number, (step, triples) in enumerate(steps):
        time += step
        elements.append(StreamElement("http://s", time, number, triples))
    decode = chosen.decoder(Reading(stream="http://s"))
    results = [item for n, one in enumerate(elements) for item in decode(chosen.encode(one), f"message {n}", None)]
    assert list(map(unlabelled, results)) == list(map(unlabelled, elements))


def test_blank_nodes_of_two_messages_differ():
    for form in sorted({*FORMS} - {"jsonl", "jelly"}):
        decode = stream_formats()[form].decoder(Reading())
        element = StreamElement("urn:s", 0, 0, (("_:b", "<urn:p>", "<urn:o>"),))
        (one,), (two,) = (decode(stream_formats()[form].encode(element), "m", None) for _ in range(2))
        assert one.added[0][0] != two.added[0][0], form


TIMES = {
    "stated of a graph": ("nquads", '<urn:g> {stamp} "7" .\n<urn:a> <urn:b> <urn:c> <urn:g> .', {}, [7]),
    "its digits": (
        "nquads",
        "<urn:a> <urn:b> <urn:c> <urn:g:12> .\n<urn:a> <urn:b> <urn:c> <urn:g:13> .",
        {},
        [12, 13],
    ),
    "stated of whatever": ("turtle", '<urn:a> <urn:b> <urn:c> . <> {stamp} "7" .', {}, [7]),
    "a property": ("trig", f'<urn:g> {{{{ <urn:a> <urn:at> "2"^^<{XSD}long> }}}}', {"time_property": "urn:at"}, [2]),
    "a date": (
        "turtle",
        f'<urn:a> <urn:at> "1970-01-01T00:01:00Z"^^<{XSD}dateTime> .',
        {"time_property": "urn:at"},
        [60000],
    ),
    "a property before what is stated": (
        "turtle",
        '<urn:a> <urn:at> 2; {stamp} "7" .',
        {"time_property": "urn:at"},
        [2],
    ),
    "several graphs": (
        "trig",
        '<urn:g1> {{ <urn:a> <urn:b> 1 }} <urn:a> <urn:b> 2 . <urn:x> {stamp} "3" .',
        {},
        [1, 3],
    ),
    "messages by number": ("messages", "<urn:a> <urn:b> 1 .\nMESSAGE\n<urn:a> <urn:b> 2 .", {"interval": 4}, [0, 4]),
    "nothing": ("turtle", "", {}, []),
}
STAMP = "<http://www.streamreasoning.org/schema/benchmark#hasTimestamp>"


@pytest.mark.parametrize("case", TIMES)
def test_the_time_of_a_graph(case):
    form, text, how, expected = TIMES[case]
    text = text.replace("<>", "<urn:x>").format(stamp=STAMP)
    decode = stream_formats()[form].decoder(Reading(**how))
    assert [element.time for element in decode(text.encode(), "m", None)] == expected
    later = stream_formats()[form].decoder(Reading(**how))
    assert [element.time for element in later(text.encode(), "m", 99)] == [99] * len(expected)


REFUSED = {
    "no time": ("turtle", b"<urn:a> <urn:b> <urn:c> .", "m: nothing in it has urn:at"),
    "no time of a graph": ("nquads", b"<urn:a> <urn:b> <urn:c> <urn:g> .", "m: nothing in graph <urn:g> has urn:at"),
    "syntax": ("trig", b"<urn:g1> {\n <urn:a> <urn:b> }", "m, line 2: "),
    "no JSON": ("jsonl", b"{}\n{", "m, line 1: field t is missing"),
    "no Jelly": ("jelly", b"this is not Jelly", "m, frame 0: not a readable Jelly stream"),
    "odd date": ("turtle", f'<urn:a> <urn:at> "noon"^^<{XSD}dateTime> .'.encode(), "m: .*noon.* is not a time"),
    "no number": ("turtle", b'<urn:a> <urn:at> "noon" .', "m: .*noon.* is not a time"),
    "bytes": ("turtle", b"\xff", "m, line 1: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_messages_are_refused_with_their_place(case):
    form, payload, said = REFUSED[case]
    with pytest.raises(FormatError, match=said):
        stream_formats()[form].decoder(Reading(time_property="urn:at"))(payload, "m", None)


@st.composite
def damaged(draw, form):
    """A message of two elements with some bytes cut out, doubled or replaced; or any bytes."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=60))
    triples = (("<urn:a>", "<urn:b>", '"MESSAGE . @message"@en'), ("_:b", "<urn:b>", f'"7"^^<{XSD}integer>'))
    text = b"".join(stream_formats()[form].encode(StreamElement("urn:s", n, n, triples)) for n in range(2))
    start, length = draw(st.integers(0, len(text))), draw(st.integers(0, 20))
    return text[:start] + draw(st.binary(max_size=9)) + text[start + draw(st.sampled_from([0, length])) :]


@pytest.mark.parametrize("form", FORMS)
@given(st.data())
def test_whatever_comes_is_read_or_refused(form, data):
    payload = data.draw(damaged(form))
    chosen, whole = stream_formats()[form], form in ("jelly", "trig")  # what cannot be passed over
    with suppress(FormatError):
        assert all(isinstance(item, StreamElement | Advance) for item in chosen.decoder(Reading())(payload, "m", 5))
    if chosen.follow is not None:
        with suppress(FormatError) if whole else nullcontext():
            list(chosen.follow(io.BufferedReader(io.BytesIO(payload)), "m", Reading(limit=200), lambda error: None))


def test_a_table_of_names_that_is_too_large_is_refused():
    payload = stream_formats()["jelly"].encode(StreamElement("urn:s", 1, 1, (("<urn:a>", "<urn:b>", "<urn:c>"),)))
    damaged = payload.replace(b"H\xa0\x1f", b"H\xa1\x20")  # 4,129 names instead of 4,000
    assert damaged != payload
    with pytest.raises(FormatError, match="m, frame 0: not a readable Jelly stream: lookup size"):
        stream_formats()["jelly"].decoder(Reading())(damaged, "m", 5)


@pytest.mark.parametrize("letter", [b" ", b">", b"\0", b"\n"])
@pytest.mark.parametrize("term", [b"urn:o", b"urn:d", b"blank"])
def test_a_term_that_is_none_is_refused(letter, term):
    triples = (("<urn:a>", "<urn:b>", "<urn:o>"), ("<urn:a>", "<urn:b>", '"1"^^<urn:d>'), ("_:blank", "<urn:b>", '"1"'))
    payload = stream_formats()["jelly"].encode(StreamElement("urn:s", 1, 1, triples))
    damaged = payload.replace(term, term[:-1] + letter)
    assert damaged != payload
    with pytest.raises(FormatError, match="m, frame 0: malformed term"):
        stream_formats()["jelly"].decoder(Reading())(damaged, "m", 5)


def test_a_message_of_lines_holds_elements_and_advances():
    element = StreamElement("urn:s", 3, 9, (("<urn:a>", "<urn:b>", "<urn:c>"),))
    messages = Messages(parse_address("mqtt://h/t"), MessageOptions(time="arrival"), None, None)
    payload = encode_element(element) + b"\r\n" + encode_advance(5)
    assert list(messages.items(payload, "m", 99)) == [element, Advance(5)]


def test_another_package_adds_a_transport(monkeypatch):
    class Point:
        value = "tests.sources.transport"

    schemes.cache_clear()
    monkeypatch.setattr(
        "streamgauge.sources.entry_points", lambda group: [Point] if group == "streamgauge.sources" else []
    )
    try:
        assert list(open_source("tick://clock?count=2").items()) == [Advance(0), Advance(1)]
        with pytest.raises(SourceError, match="unknown option cuont: there are count"):
            open_source("tick://clock?cuont=2")
    finally:
        schemes.cache_clear()


def test_a_message_that_is_nested_too_deep_for_parsers_is_refused():
    messages = Messages(parse_address("mqtt://h/t?form=turtle"), MessageOptions(form="turtle", bad="skip"), None, None)
    assert messages.items(b"<urn:s> <urn:p> " + b"<<( <urn:s> <urn:p> " * 40_000, "message 1", 5) == ()
    assert messages.refusals.count == 1
    assert "nested more than" in messages.refusals.reasons[0]
