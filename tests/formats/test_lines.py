"""The JSON lines of an engine on a pipe: round trips, foreign layouts, and errors that name the field."""

import io
import json
from dataclasses import replace

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import to_triples
from streamgauge.formats.line_columns import LineColumns
from streamgauge.formats.lines import (
    Advance,
    LineError,
    decode_answer,
    decode_input,
    encode_advance,
    encode_answer,
    encode_answers,
    encode_element,
)
from streamgauge.formats.streams import one_by_one
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement

XSD = "http://www.w3.org/2001/XMLSchema#"
LITERALS = st.text(st.characters(codec="utf-8", min_codepoint=32, exclude_characters='"\\\x7f'), max_size=5).map(
    lambda t: f'"{t}"'
)
IRIS = st.sampled_from(["<http://a>", "<http://b#é>", "<urn:x>"])
TERMS = st.one_of(
    IRIS, LITERALS, st.sampled_from(["_:b0", f'"1"^^<{XSD}integer>', '"\\n . \\"x\\\\ "@en', '"76.5"^^<http://odd>'])
)
TRIPLES = st.tuples(st.one_of(IRIS, st.just("_:b0")), IRIS, TERMS)
INTS = st.integers(-(2**63), 2**63 - 1)
BAGS = st.lists(TRIPLES, max_size=4).map(tuple)


@given(st.builds(StreamElement, st.text(), INTS, INTS, BAGS, BAGS), st.none() | st.integers(1, 9))
def test_elements_come_back(element, lasts):
    # An end has 64 bits as well.
    element = replace(element, time=min(element.time, 2**63 - 10))
    element = replace(element, until=None if lasts is None else element.time + lasts)
    line = encode_element(element)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert decode_input(line) == element


@given(INTS)
def test_advances_come_back(time):
    assert encode_advance(time).endswith(b"}\n")
    assert decode_input(encode_advance(time)) == Advance(time)


ODD = [b"\n", b"{\n", b'{"t":1}\n', b'{"advance":5,"add":"<a> <b> <c> .\\n"}\n']
ODD += [
    b'{"t":1,"n":2,"stream":"s","add":"%b"}\n' % text for text in (b"<a> <b> ", b"<c> .\\n", b"<a>  <b> <c>.\\n", b"x")
]
SIMPLE = st.builds(StreamElement, st.just("s"), INTS, INTS, BAGS)
INPUTS = st.one_of(
    SIMPLE.map(encode_element),
    SIMPLE.map(encode_element),
    st.builds(StreamElement, st.text(), INTS, INTS, BAGS, BAGS).map(encode_element),
    INTS.map(encode_advance),
    st.sampled_from(ODD),
)


def until_error(items) -> list[object]:
    """What comes, and the sentence at which it ends."""
    results: list[object] = []
    try:
        results.extend(items)
    except LineError as error:
        results.append(str(error))
    return results


def together(lines: bytes):
    """Lines in columns, or one by one if one is unusual."""
    taken = LineColumns().read(lines)
    return map(decode_input, io.BytesIO(lines)) if taken is None else one_by_one(taken)


@given(st.lists(st.one_of(SIMPLE.map(encode_element), INPUTS), max_size=8))
def test_lines_together_are_what_each_is(lines):
    assert until_error(together(b"".join(lines))) == until_error(map(decode_input, lines))


@st.composite
def answers(draw):
    kind = draw(st.sampled_from(["solutions", "triples", "boolean"]))
    names = draw(st.lists(st.sampled_from("abc"), max_size=3)) if kind == "solutions" else []
    width = {"solutions": len(names), "triples": 3, "boolean": 1}[kind]
    rows = st.lists(st.tuples(*[st.one_of(st.none(), TERMS)] * width), max_size=4).map(tuple)
    scope = draw(st.one_of(st.none(), st.tuples(INTS, INTS)))
    return Answer(tuple(names), draw(rows), draw(rows), kind, draw(st.one_of(st.none(), INTS)), scope)


@given(answers())
def test_answers_come_back(answer):
    assert encode_answer(answer).count(b"\n") == 1
    assert decode_answer(encode_answer(answer)) == answer


@given(st.lists(answers(), max_size=3))
def test_answers_together_are_a_line_each(several):
    assert encode_answers(several) == b"".join(map(encode_answer, several))


def test_half_a_surrogate_pair_is_written_as_it_was_read():
    answer = Answer(("a",), (('"\ud800"',),), instant=3)
    assert json.loads(encode_answer(answer)) == {"vars": ["a"], "add": [['"\ud800"']], "instant": 3}


def test_the_layout_is_the_documented_one():
    element = StreamElement("http://s", 5, 2, (("<a>", "<b>", '"c"'),), (("<a>", "<b>", "_:d"),), 9)
    assert json.loads(encode_element(element)) == {
        "t": 5,
        "n": 2,
        "stream": "http://s",
        "add": '<a> <b> "c" .\n',
        "remove": "<a> <b> _:d .\n",
        "until": 9,
    }
    answer = Answer(("x",), (("<a>",), (None,)), kind="solutions", instant=4, scope=(0, 5), received=77)
    assert json.loads(encode_answer(answer)) == {
        "vars": ["x"],
        "add": [["<a>"], [None]],
        "instant": 4,
        "scope": [0, 5],
    }


@pytest.mark.parametrize(
    "text",
    [
        '<http://a>  <http://b>   "076"^^<http://www.w3.org/2001/XMLSchema#integer>.\n',
        '<http://a> <http://b> "076"^^<http://www.w3.org/2001/XMLSchema#integer> . # a comment\n',
        '# first\n<http://a> <http://b> "\\u0030\\u0037\\u0036"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        '<http://\\u0061> <http://b> "076"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    ],
)
def test_n_triples_of_any_layout_are_taken_and_their_syntax_made_canonical(text):
    line = json.dumps({"t": 0, "n": 0, "stream": "s", "add": text})
    wanted = (("<http://a>", "<http://b>", f'"076"^^<{XSD}integer>'),)
    assert decode_input(line).added == wanted
    (element,) = together(f"{line}\n".encode())
    assert element.added == wanted


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        (f'"x"^^<{XSD}string>', '"x"'),
        ('"x"@EN-us', '"x"@en-us'),
        ('"x y"@EN', '"x y"@en'),
        ('"\\u0078"', '"x"'),
        ('"a\\nb"', '"a\\nb"'),
        ('"EN@EN"', '"EN@EN"'),
    ],
)
def test_the_syntax_of_elements_and_answers_is_canonical(term, wanted):
    line = json.dumps({"t": 0, "n": 0, "stream": "s", "add": f"<urn:a> <urn:b> {term} .\n"})
    assert decode_input(line).added == (("<urn:a>", "<urn:b>", wanted),)
    (element,) = together(f"{line}\n".encode())
    assert element.added == (("<urn:a>", "<urn:b>", wanted),)
    assert decode_answer(json.dumps({"vars": ["x"], "add": [[term]]})).added == ((wanted,),)


@pytest.mark.parametrize("end", ["  .\n", " . # a comment .\n", ' . # a "comment" .\n'])
def test_what_stands_around_a_term_is_no_part_of_it(end):
    line = json.dumps({"t": 0, "n": 0, "stream": "s", "add": f'<urn:a> <urn:b> "c d"{end}<urn:a> <urn:b> <urn:c>{end}'})
    assert decode_input(line).added == (("<urn:a>", "<urn:b>", '"c d"'), ("<urn:a>", "<urn:b>", "<urn:c>"))


PARTS = ["<urn:a>", "_:b", '"a b"', '"1"^^<urn:t>', '"x"@EN', "<urn: c>", '"', "<urn:a>\n", ".", ""]


@given(st.lists(st.tuples(*[st.sampled_from(PARTS)] * 3), max_size=12))
def test_terms_that_were_read_before_are_checked_at_their_place(triples):
    # All these terms are known after the first line, but a literal only as an object.
    decode_input(encode_element(StreamElement("s", 1, 1, (("<urn:a>", "<urn:a>", '"a b"'), ("_:b", "<urn:a>", "_:b")))))
    for number, triple in enumerate(triples):
        text = f"{' '.join(triple)} .\n"
        line = json.dumps({"t": 1, "n": number, "stream": "s", "add": text})
        try:
            expected = to_triples(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
        except SyntaxError:
            with pytest.raises(LineError):
                decode_input(line)
        else:
            assert decode_input(line) == StreamElement("s", 1, number, expected)


def test_two_triples_in_another_layout_are_not_taken_for_one():
    line = json.dumps({"t": 0, "n": 0, "stream": "s", "add": "<urn:a> <urn:b> <urn:c>.\n<urn:d> <urn:e> <urn:f> .\n"})
    assert decode_input(line).added == (("<urn:a>", "<urn:b>", "<urn:c>"), ("<urn:d>", "<urn:e>", "<urn:f>"))


def test_terms_of_answers_keep_their_lexical_form_in_canonical_syntax():
    line = json.dumps({"vars": ["x", "y"], "add": [[f'"076.0"^^<{XSD}float>', "<http://\\u0061>"]]})
    assert decode_answer(line).added == ((f'"076.0"^^<{XSD}float>', "<http://a>"),)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a line of JSON"),
        (b"\xff\xfe{}", "not a line of JSON"),
        ("[1]", r"the line is \[1\]: expected a JSON object"),
        ("{}", "field stream is missing"),
        ('{"stream":"s","n":1}', "field t is missing: expected a whole number"),
        ('{"stream":"s","t":1.5,"n":1}', r"field t is 1\.5"),
        ('{"stream":"s","t":1,"n":true}', "field n is True"),
        (
            '{"stream":"s","t":99999999999999999999,"n":1}',
            "field t is 99999999999999999999: expected a number within 64",
        ),
        (
            '{"stream":"s","t":-9223372036854775809,"n":1}',
            "field t is -9223372036854775809: expected a number within 64 bits",
        ),
        (
            '{"stream":"s","t":1,"n":9223372036854775808}',
            "field n is 9223372036854775808: expected a number within 64 bits",
        ),
        (
            '{"stream":"s","t":1,"n":1,"until":9223372036854775808}',
            "field until is .*: expected a number within 64 bits",
        ),
        ('{"advance":9223372036854775808}', "field advance is .*: expected a number within 64 bits"),
        ('{"stream":"s","t":1,"n":1,"add":7}', "field add is 7: expected N-Triples text"),
        ('{"stream":"s","t":1,"n":1,"add":"nonsense"}', "field add is not N-Triples: .*line 1"),
        ('{"stream":"s","t":1,"n":1,"add":"a  b .\\n"}', "field add is not N-Triples"),
        ('{"stream":"s","t":1,"n":1,"add":"<urn:a> <urn:b> c .\\n"}', "field add is not N-Triples"),
        ('{"stream":"s","t":1,"n":1,"add":"<urn:a> _:b <urn:c> .\\n"}', "field add is not N-Triples"),
        ('{"stream":"s","t":1,"n":1,"add":"a <urn:b> <urn:c> .\\n"}', "field add is not N-Triples"),
        ('{"stream":"s","t":1,"n":1,"remove":"<http://a> .\\n"}', "field remove is not N-Triples"),
        ('{"stream":"s","t":1,"n":1,"until":"x"}', "field until is 'x'"),
        ('{"stream":"s","t":1,"n":1,"until":1}', "field until is 1: an element ends after its time, 1 ms"),
        ('{"advance":5,"t":5,"n":1,"stream":"s","add":""}', "field t beside advance: an element and an advance"),
        ('{"advance":5,"add":"<urn:a> <urn:b> <urn:c> ."}', "field add beside advance: an element and an advance"),
        ('{"advance":"soon"}', "field advance is 'soon': expected a whole number"),
        ('{"stream":"s","t":1,"n":1,"add":"<urn:\\ud834> <urn:b> 1 ."}', "half of a surrogate pair"),
        (b'{"stream":"\\udd1e","t":1,"n":1}', "half of a surrogate pair"),
        ('{"stream":"s","t":1,"n":1,"remove":"\ud834"}', "half of a surrogate pair"),
        (f'{{"add":[{"[],[{}],{}," * 500}1]}}', "an element has more than 1000 values: its triples are one text"),
    ],
)
def test_wrong_input_lines_name_the_field(line, message):
    with pytest.raises(LineError, match=message):
        decode_input(line)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "not a line of JSON"),
        ('{"add":[]}', "field vars is missing: expected a list of variable names"),
        ('{"vars":["x"],"kind":"graph"}', "field kind is 'graph': expected one of solutions, triples, boolean"),
        ('{"vars":["x"],"add":{}}', r"field add is \{\}: expected a list of rows"),
        (
            '{"vars":["x"],"add":[["<urn:a>"],["<urn:a>","<urn:b>"]]}',
            r"field add\[1\] is .*: expected a list of 1 terms",
        ),
        ('{"vars":["x"],"remove":[["a"]]}', r"field remove\[0\] holds 'a': expected an N-Triples term"),
        ('{"vars":["x"],"add":[["<a b>"]]}', r"field add\[0\] holds '<a b>': expected an N-Triples term"),
        ('{"vars":["x"],"add":[[7]]}', r"field add\[0\] holds 7: expected an N-Triples term or null"),
        ('{"vars":["x"],"instant":"now"}', "field instant is 'now'"),
        ('{"vars":["x"],"scope":[1]}', r"field scope is \[1\]: expected \[start, end\] in ms"),
        ('{"kind":"triples","add":[["<a>"]]}', r"field add\[0\] is .*: expected a list of 3 terms"),
    ],
)
def test_wrong_answer_lines_name_the_field(line, message):
    with pytest.raises(LineError, match=message):
        decode_answer(line)
