"""Streams that `check` would refuse are refused at import, with file and line, and nothing is left behind."""

import json

import pytest

from tests.cli.test_bad_input import QUERY

GOOD = {"stream": "http://ex.org/streams/test", "t": 0, "n": 0, "add": "<urn:a> <urn:p> <urn:b> .\n"}
LINES = {
    "two triples on a line": {"add": "<urn:a> <urn:p> <urn:b> . <urn:c> <urn:p> <urn:d> .\n"},
    "two triples without a line's end": {"add": "<urn:a> <urn:p> <urn:b> . <urn:c> <urn:p> <urn:d> ."},
    "two triples with strings": {"add": '<urn:a> <urn:p> "x y" . <urn:c> <urn:p> "d" .\n'},
    "a dot and no blank": {"add": "<urn:a> <urn:p> <urn:b>.<urn:c> .\n"},
    "a blank in an IRI": {"add": "<urn:a> <urn:p> <urn:b c> .\n"},
    "an IRI that is not closed": {"add": "<urn:a <urn:p> <urn:b> .\n"},
    "a string that is not closed": {"add": '<urn:a> <urn:p> "b .\n'},
    "a relative IRI": {"add": "<a> <urn:p> <urn:b> .\n"},
    "a literal as subject": {"add": '"a" <urn:p> <urn:b> .\n'},
    "a relative datatype": {"add": '<urn:a> <urn:p> "1"^^<int> .\n'},
}


def refused(tmp_path, command, *lines):
    (tmp_path / "query.rq").write_text(QUERY)
    answers = [{"timestamp": 5000, "head": {"vars": ["s"]}, "results": {"bindings": []}}]
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    (tmp_path / "stream.jsonl").write_text("".join(f"{json.dumps({**GOOD, **line})}\n" for line in lines))
    output = command("import", tmp_path / "answers.json", "--query", tmp_path / "query.rq", "--semantics", "rspql",
                   "--stream", tmp_path / "stream.jsonl", "--out", tmp_path / "out")  # fmt: skip
    return output, (tmp_path / "out").exists()


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_that_is_no_triple(tmp_path, command, line):
    (code, _, err), made = refused(tmp_path, command, {}, {**line, "n": 1})
    assert code == 2
    assert "stream.jsonl, line 2" in err
    assert not made


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"t": 2**63, "n": 1}, "line 2: field t is 9223372036854775808: expected a number within 64 bits"),
        ({"n": 0}, "sequence 0 comes after 0"),
        ({"n": 1, "add": ""}, "has no triple"),
        ({"n": 1, "remove": "<urn:a> <urn:p> <urn:b> .\n"}, "has removed triples"),
        ({"n": 1, "until": 0}, "an element ends after its time"),
    ],
)
def test_an_element_that_no_stream_table_holds(tmp_path, command, line, sentence):
    (code, _, err), made = refused(tmp_path, command, {}, line)
    assert code == 2
    assert "stream.jsonl" in err
    assert sentence in err
    assert not made


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"timestamp": 5000, "timestamp": 9000, "head": {"vars": ["s"]}, "results": {"bindings": []}}', ""),
        ('{"timestamp": 5000, "head": {"vars": ["s"]}, "results": {"bindings": [], "bindings": []}}', ""),
        ('{"timestamp": 1, "head": {"vars": []}, "results": {"bindings": []}}\n{"head": {"vars": [], "vars": []}}',
         ", line 2"),
    ],
)  # fmt: skip
def test_a_member_that_occurs_twice(tmp_path, command, text, place):
    (tmp_path / "query.rq").write_text(QUERY)
    (tmp_path / "stream.jsonl").write_text(f"{json.dumps(GOOD)}\n")
    (tmp_path / "answers.json").write_text(text)
    code, _, err = command("import", tmp_path / "answers.json", "--query", tmp_path / "query.rq", "--semantics",
                           "rspql", "--format", "sparql-json", "--stream", tmp_path / "stream.jsonl",
                           "--out", tmp_path / "out")  # fmt: skip
    assert code == 2
    assert f"answers.json{place}: the member '" in " ".join(err.split())
    assert "occurs twice in one object" in " ".join(err.split())


def test_a_separator_of_lines_in_a_text_does_not_cut_a_recording(tmp_path, command):
    (tmp_path / "query.rq").write_text(QUERY)
    (tmp_path / "stream.jsonl").write_text(f"{json.dumps(GOOD)}\n")
    binding = {"s": {"type": "literal", "value": "a\u2028b\x85"}, "o": {"type": "literal", "value": "\x0c"}}
    lines = [
        {"timestamp": time, "head": {"vars": ["s", "o"]}, "results": {"bindings": [binding]}} for time in (5000, 10000)
    ]
    text = "\r\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (tmp_path / "answers.json").write_text(text, encoding="utf-8", newline="")
    code, _, err = command("import", tmp_path / "answers.json", "--query", tmp_path / "query.rq", "--semantics",
                           "rspql", "--stream", tmp_path / "stream.jsonl", "--out", tmp_path / "out")  # fmt: skip
    assert code == 0, err


def test_several_triples_on_lines_of_their_own_are_taken(tmp_path, command):
    add = '<urn:a> <urn:p> "x y" .\n<urn:c> <urn:p> <urn:d> .\n<urn:c> <urn:p> "a . b"@en .\n'
    (code, _, _), made = refused(tmp_path, command, {"add": add})
    assert (code, made) == (0, True)
    assert command("check", tmp_path / "out").code in (0, 1)
