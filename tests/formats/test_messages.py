"""RDF Message Logs: the specification's cases, delimiters that are none, both drafts, bad messages."""

import io

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.streams import FormatError, Reading, read_stream, refused, stream_formats

V = 'VERSION "1.2-messages"\n'
EX = "<http://example.org/{}>"
ONE = "<urn:s1> <urn:p> <urn:o1> .\n"
TWO = "<urn:s2> <urn:p> <urn:o2> .\n"

CASES = {
    "one": (V + ONE, {0: 1}),
    "two": (V + ONE + "MESSAGE\n" + TWO, {0: 1, 1: 1}),
    "at": ('@version "1.2-messages" .\n@prefix e: <urn:> .\ne:s e:p e:o .\n@message .\ne:s e:p e:o2 .', {0: 1, 1: 1}),
    "empty first": (V + "MESSAGE\n" + ONE, {1: 1}),
    "empty between": (V + ONE + "MESSAGE\nMESSAGE\n" + TWO, {0: 1, 2: 1}),
    "delimiter last": (V + ONE + "MESSAGE\n", {0: 1}),
    "N-Quads": (V + "<urn:s> <urn:p> <urn:o> <urn:g1> .\nMESSAGE\n<urn:s> <urn:p> <urn:o> <urn:g2> .\n", {0: 1, 1: 1}),
    "N-Quads later": (V + ONE + "MESSAGE\n<urn:s> <urn:p> <urn:o> <urn:g2> .\nMESSAGE\n" + TWO, {0: 1, 1: 1, 2: 1}),
    "graphs": (
        V + "PREFIX e: <urn:>\ne:s e:p e:o .\ne:g { e:s2 e:p e:o . e:s3 e:p e:o . }\nMESSAGE\ne:s e:p e:o .",
        {0: 3, 1: 1},
    ),
    "after a graph": (V + "<urn:g> { <urn:a> <urn:b> <urn:c> .\n} MESSAGE " + TWO, {0: 1, 1: 1}),
    "in literals": (
        V + '<urn:a> <urn:b> "MESSAGE", "x"@message . \n<urn:a> <urn:c> """one\nMESSAGE\n@message .\n""" .\n',
        {0: 3},
    ),
    "single quotes": (V + "<urn:a> <urn:b> 'a\"MESSAGE', '''\nMESSAGE\\'''' . <urn:a> <urn:c> 1 .\nMESSAGE\n", {0: 3}),
    "in names": (V + "PREFIX e: <urn:> PREFIX MESSAGE: <urn:> <urn:a#MESSAGE> MESSAGE:MESSAGE e:x.MESSAGE .\n", {0: 1}),
    "in comments": (V + ONE + "# MESSAGE\n# @message no delimiter where a version is announced\n" + TWO, {0: 2}),
    "without announcement": (ONE + "@message .\n" + TWO, {0: 1, 1: 1}),
    "December 2025": ("# @message first\n" + ONE + "  #@message\n# @message empty\n# @message\n" + TWO, {0: 1, 3: 1}),
    "nothing": (V, {}),
    "on one line": (V + ONE.strip() + " MESSAGE " + TWO.strip() + " @message . MESSAGE\n" + ONE, {0: 1, 1: 1, 3: 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_logs(tmp_path, case):
    text, expected = CASES[case]
    (tmp_path / "x.messages").write_text(text)
    elements = list(read_stream(tmp_path / "x.messages", interval=10))
    assert {element.time: len(element.added) for element in elements} == {10 * n: size for n, size in expected.items()}
    assert [element.sequence for element in elements] == list(range(len(expected)))


def read(text, refuse=refused, **how):
    follow = stream_formats()["messages"].follow
    return list(follow(io.BufferedReader(io.BytesIO(text.encode())), "log", Reading(**how), refuse))


def test_blank_nodes_belong_to_their_message_and_prefixes_last():
    text = (
        V + "PREFIX e: <urn:one:>\n_:b e:p e:o .\nMESSAGE\n_:b e:p e:o .\nMESSAGE\nPREFIX e: <urn:two:>\ne:s e:p [] ."
    )
    (first,), (second,), (third,) = (element.added for element in read(text))
    assert first[0].startswith("_:")
    assert first[0] != second[0]
    assert first[1:] == second[1:] == ("<urn:one:p>", "<urn:one:o>")
    assert third[:2] == ("<urn:two:s>", "<urn:two:p>")


STAMP = "<http://www.streamreasoning.org/schema/benchmark#hasTimestamp>"


def test_times_are_stated_or_a_propertys_value_or_counted():
    xsd = "http://www.w3.org/2001/XMLSchema#"
    text = (
        f'<urn:x> {STAMP} "7" .\n' + ONE + "MESSAGE\n" + f'<urn:m> <urn:at> "1970-01-01T00:00:01.5Z"^^<{xsd}dateTime> .'
    )
    text += f'MESSAGE <urn:m> <urn:at> "1970-01-01T01:00:02+01:00"^^<{xsd}dateTime>, "2000"^^<{xsd}long> .'
    text += f'MESSAGE <urn:m> <urn:at> "1970-01-01T00:00:02.5"^^<{xsd}dateTime> . MESSAGE ' + TWO
    assert [element.time for element in read(text, time_property="urn:at", interval=1000)] == [
        7,
        1500,
        2000,
        2500,
        4000,
    ]


BAD = {
    "delimiter in a graph": (V + "<urn:g> {\n" + ONE + "MESSAGE\n" + TWO + "}\n", "log, line [34]: "),
    "no dot": (V + ONE + "@message <urn:x>\n", "log, line 3: @message must end with a dot"),
    "syntax": (V + "PREFIX e: <urn:>\n" + ONE + "MESSAGE\n" + TWO + "e:a e:b .\n", "log, line 6: "),
    "prefix": (V + ONE + "MESSAGE\n\n e:a e:b e:c .\n", "log, line 5: The prefix e: has not been declared"),
    "two times": (f'<urn:a> {STAMP} "7" . <urn:b> {STAMP} "8" . {ONE}', "log, message 0: the message states several"),
    "no time": (f'<urn:a> {STAMP} "noon" . {ONE}', 'log, message 0: "noon" is not a time'),
    "back": (ONE + f'MESSAGE <urn:a> {STAMP} "-5" . {ONE}', "log, message 1: time goes back from 0 to -5 ms"),
    "too long": (V + ONE * 9 + "MESSAGE\n" + TWO, "log, line 11: a message longer than 200 bytes ends here"),
    "long line": (V + f'<urn:a> <urn:b> "{"x" * 300}" .\n', "log, line 2: longer than 200 bytes"),
    "long last": (V + ONE * 9, "log: a message longer than 200 bytes ends here"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_logs_are_refused_with_their_line(case):
    text, said = BAD[case]
    with pytest.raises(FormatError, match=said):
        read(text, limit=200)


def test_bad_messages_can_be_passed_over():
    seen = []
    result = read(
        V + ONE + "MESSAGE\na b .\nMESSAGE\n" + TWO + "MESSAGE\n" + ONE * 9 + "MESSAGE\n" + TWO, seen.append, limit=200
    )
    assert [element.time for element in result] == [0, 2000, 3000]
    assert len(seen) == 2


def test_what_is_written_is_all_four_syntaxes(tmp_path):
    form = stream_formats()["messages"]
    (element,) = read(ONE)
    text = form.encode(element).decode()
    body = text.removeprefix(V).removesuffix("MESSAGE\n")
    for syntax in (ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG, ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS):
        assert len(list(ox.parse(body, format=syntax))) == 2
    assert read(text + text, lateness=0)[1].added == element.added


WORDS = st.lists(
    st.sampled_from(["MESSAGE", "@message .", "\n", " ", '"', "'", "\\", "<", ">", "#", "# @message", "é"])
)
QUOTES = st.sampled_from(['"', "'", '"""', "'''"])


def quoted(text: str, quote: str) -> str:
    """The literal in Turtle, line ends as they are where the quotes allow it."""
    text = text.replace("\\", "\\\\").replace(quote[0], "\\" + quote[0])
    return quote + (text if len(quote) == 3 else text.replace("\n", "\\n")) + quote


@given(st.lists(st.lists(st.tuples(WORDS.map("".join), QUOTES), max_size=3), max_size=4), st.booleans())
def test_delimiters_in_literals_are_none(messages, announced):
    logs = [
        "".join(f"<urn:a> <urn:p{n}> {quoted(text, quote)} .\n" for n, (text, quote) in enumerate(one))
        for one in messages
    ]
    results = {element.time: element.added for element in read(V * announced + "MESSAGE\n".join(logs))}
    expected = {}
    for number, one in enumerate(messages):
        if one:
            literals = [str(ox.Literal(text)) for text, _ in one]
            expected[1000 * number] = tuple(("<urn:a>", f"<urn:p{n}>", term) for n, term in enumerate(literals))
    assert results == expected
