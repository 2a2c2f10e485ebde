"""A state as a link, a form and JSON; streams as text and back; mistakes at their place."""

import base64
import json
import zlib
from dataclasses import replace

import pytest

from streamgauge.model.element import StreamElement
from streamgauge.model.semantics import Borders, Report, Tick
from streamgauge.workbench.rooms.playground.examples import FIRST, ExampleError, drawn, example
from streamgauge.workbench.rooms.playground.fields import CONTROLS
from streamgauge.workbench.rooms.playground.recordings import diagnosis
from streamgauge.workbench.rooms.playground.result import result
from streamgauge.workbench.rooms.playground.state import (
    MOST_BYTES,
    PlaygroundState,
    StateError,
    link,
    of_form,
    of_link,
    of_text,
    to_json,
)
from streamgauge.workbench.rooms.playground.stream_text import (
    MOST_ELEMENTS,
    Names,
    StreamTextError,
    read_static,
    read_text,
    write_text,
)

NAMES = Names({"ex": "http://example.org/"}, ("http://ex.org/streams/test", "http://ex.org/streams/other"))


def test_a_state_is_a_link():
    assert to_json(of_link(link(FIRST))) == to_json(FIRST)


def packed(text):
    return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no link at all!", "cut or changed"),
        (link(FIRST)[:-9], "cut"),
        (packed("{" + " " * MOST_BYTES + "}"), "too large"),
        (packed('{"colour": 3}'), "colour is not part"),
        (packed('{"query": 3}'), "query is not text"),
        (packed('{"query": "", "syntax": "morse"}'), "morse"),
        (packed('{"query": "", "advance": "soon"}'), "whole number of ms"),
        (packed("[" * 5000), "not JSON"),
    ],
    ids=range(8),
)
def test_a_link_that_holds_no_state_is_refused_in_a_sentence(value, words):
    with pytest.raises(StateError, match=words):
        of_link(value)


def test_a_form_without_script_is_the_same_state():
    form = {"query": ["q"], "stream": ["0: a p b.\r\n"], "advance": ["5,000"], "a.profile": ["csparql"]}
    form |= {f"a.{entry.name}": [next(iter(entry.values), "")] for entry in CONTROLS}
    form |= {"a.borders": ["(o, c]"], "a.report": ["window close", "non-empty content"], "a.t0": ["7"]}
    form |= {"a.time_unit": ["1"], "a.notify_empty": ["no"], "second": ["yes"], "b.profile": ["rspql"], "b.tick": ["?"]}
    state = of_form({**form, "start": ["b"]})
    assert (state.stream, state.advance) == ("0: a p b.\n", 5000)
    a, b = state.semantics("a"), state.semantics("b")
    assert (a.borders, a.t0, a.notify_empty, a.tick) == (Borders.OPEN_CLOSED, 7, False, Tick.TUPLE)
    assert a.report == {Report.WINDOW_CLOSE, Report.NON_EMPTY}
    assert b.name == "rspql"  # started anew from its profile
    with pytest.raises(StateError, match="tick"):
        of_form(form).semantics("b")


def test_the_simple_notation_says_what_cases_say_and_more():
    text = "0: a p b. ex:s ex:p 5.\n# a comment\n\n [other] 3..9: a p 'x'@en. | 4: <http://e/x> rdf:type ex:Y."
    read = read_text(text, "simple", NAMES)
    assert [(element.time, element.until, element.sequence, len(element.added)) for element in read.elements] == [
        (0, None, 0, 2),
        (3, 9, 1, 1),
        (4, None, 2, 1),
    ]
    assert read.elements[1].stream == "http://ex.org/streams/other"
    assert read.elements[0].added[1][0] == "<http://example.org/s>"
    assert [text[start:end] for start, end in read.places] == ["0", "3", "4"]
    assert read_text(*write_text(read.elements, NAMES), NAMES).elements == read.elements


@pytest.mark.parametrize(
    "terms", ["<urn:a> <urn:p> \"two words\"", '<urn:a b> <urn:p> "x"', '_:b <urn:p> "05"^^<http://e/t>']
)  # fmt: skip
def test_an_element_that_the_simple_notation_cannot_say_is_said_in_another(terms):
    subject, predicate, item = terms.replace("urn:a b", "urn:a").split(" ", 2)
    stream = (StreamElement(NAMES.streams[0], 7, 0, ((subject, predicate, item),)),)
    text, syntax = write_text(stream, NAMES)
    read = read_text(text, syntax, NAMES)
    assert [(element.time, element.added[0][1:]) for element in read.elements] == [(7, (predicate, item))]


@pytest.mark.parametrize(
    ("text", "syntax", "line", "words"),
    [
        ("0: a p b.\n5 a p b.", "simple", 2, "not an element"),
        ("0: a p b.\n\n7: a p.", "simple", 3, "has 2 terms"),
        ("0: a p b. | 7:", "simple", 1, "no triple"),
        ("9..3: a p b.", "simple", 1, "after its time"),
        ("0: 'a' p b.", "simple", 1, "has the subject"),
        ("0: <no iri> p b.", "simple", 1, "terms"),
        ("0: <noiri> p b.", "simple", 1, "line 1"),
        ("<urn:a> <urn:p> .", "nquads", 1, "not N-Quads"),
        ("", "morse", 1, "no notation"),
    ],
)
def test_a_stream_that_is_wrong_names_the_line(text, syntax, line, words):
    with pytest.raises(StreamTextError, match=words) as error:
        read_text(text, syntax, NAMES)
    assert error.value.line == line


def test_a_stream_that_is_too_long_is_refused():
    with pytest.raises(StreamTextError, match="more than 10,000 elements"):
        read_text("0: a p b.\n" * (MOST_ELEMENTS + 1), "simple", NAMES)


def test_static_data_is_simple_or_turtle():
    assert read_static("# two\na p b.\nb p 5.", NAMES) == read_static(
        "<urn:a> <urn:p> <urn:b> . <urn:b> <urn:p> 5 .", NAMES
    )
    assert read_static("ex:a ex:p [ ex:q 5 ] .", NAMES)
    with pytest.raises(StreamTextError, match="neither"):
        read_static("a p", NAMES)


MISTAKES = {
    "rspql": ("SELECT ?s\nFROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT5X]\nWHERE { }", 2, "PT5X]"),
    "csparql": (
        "REGISTER QUERY q AS SELECT ?s\nFROM STREAM <urn:s> [RNAGE 5s STEP 5s]\nWHERE { ?s ?p ?o }",
        2,
        "RNAGE",
    ),
    "cqels": ("SELECT ?s\nWHERE {\n  STREAM <urn:s> [RANGE 5s SLIDE 5s] { ?s ex:p ?o }\n}", 3, "ex:p ?o"),
    "sparqlstream": ("SELECT ?s\nFROM NAMED STREAM <urn:s> [NOW - 5 S SLIDE 5]\nWHERE { ?s ?p ?o }", 2, "5]"),
}


@pytest.mark.parametrize("dialect", MISTAKES)
def test_a_mistake_in_a_query_is_told_at_its_place(dialect):
    text, line, at = MISTAKES[dialect]
    (trouble,) = result(PlaygroundState(text)).troubles
    told = text.splitlines()[trouble.line - 1][trouble.column - 1 :]
    assert (trouble.where, trouble.line, told[: len(at)]) == ("query", line, at), trouble


def test_mistakes_of_every_part_are_told_at_once():
    state = of_text(json.dumps({**to_json(FIRST), "stream": "x", "static": "x", "a": {"tick": "often"}}))
    outcome = result(state)
    assert sorted(trouble.where for trouble in outcome.troubles) == ["a", "static", "stream"]
    assert outcome.a is None


@pytest.mark.slow
def test_a_query_that_would_join_for_hours_is_stopped(monkeypatch):
    monkeypatch.setattr("streamgauge.workbench.rooms.playground.result.SECONDS", 0.2)
    patterns = " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(9))
    text = f"SELECT (COUNT(*) AS ?n) FROM STREAM <urn:s> [RANGE 90ms STEP 90ms] WHERE {{ {patterns} }}"
    stream = "\n".join(f"{n}: s{n} p o{n}." for n in range(60))
    outcome = result(PlaygroundState(f"REGISTER QUERY q AS {text}", stream, advance=90))
    assert "takes longer than it may" in outcome.troubles[0].sentence
    monkeypatch.setattr("streamgauge.workbench.rooms.playground.result.SECONDS", 8.0)
    tried = replace(outcome.state, advance=1, recording='{"vars": ["n"], "add": [], "instant": 90}')
    assert "joins may be too large" in diagnosis(result(tried)).trouble


@pytest.mark.slow
def test_streams_are_drawn_small():
    stream, syntax = drawn({"workload": "weather", "parameters": "stations=1 duration=2s", "query": FIRST.query})
    assert len(read_text(stream, syntax, NAMES).elements) == 2
    for wrong in (
        {"workload": "none"},
        {"workload": "weather", "parameters": "stations=9999 duration=9s"},
        {"workload": "weather", "parameters": "duration=9h"},
        "text",
    ):
        with pytest.raises(ExampleError):
            drawn(wrong)
    with pytest.raises(ExampleError, match="there is no example"):
        example("nothing")
