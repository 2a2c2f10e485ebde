"""Timelines: what is drawn of queries, answers and runs; and the pictures and tables that notebooks show."""

import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest

import streamgauge
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.model.mistake import MistakeError
from streamgauge.testing import RecordedSession, StreamBuilder

QUERY = """PREFIX : <urn:> SELECT ?s ?v FROM NAMED WINDOW :w ON :in [RANGE PT5S STEP PT5S]
    WHERE { WINDOW :w { ?s :v ?v } }"""
STREAM = StreamBuilder("urn:in", {"": "urn:"})
for at, name in ((1, "a"), (2, "b"), (5, "e"), (7, "c")):
    STREAM.at(f"{at}s", f":{name} :v {at} .")
OPEN_AT_THE_LEFT = [(5000, [("<urn:a>", 1), ("<urn:b>", 2), ("<urn:e>", 5)]), (10_000, [("<urn:c>", 7)])]
SVG = "{http://www.w3.org/2000/svg}"


def texts(drawn: streamgauge.TimelinePicture, kind: str | None = None) -> list[str]:
    """The texts of a picture, those of a class where one is asked for."""
    result = ElementTree.fromstring(drawn.svg).iter(f"{SVG}text")
    return [item.text or "" for item in result if kind is None or item.get("class") == kind]


def test_what_is_due_is_drawn():
    drawn = streamgauge.timeline(QUERY, STREAM, advance_to="10s")
    said = texts(drawn)
    assert {"What is due under rspql", "{a v 1, b v 2}", "{e v 5, c v 7}", "a 1, b 2", "c 7, e 5"} <= set(said)
    assert "RANGE 5 s, SLIDE 5 s; [o, c); window close; content is a set; Rstream" in said
    assert texts(drawn, "muted middle") == ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]
    assert texts(drawn, "wrong") == []
    root = ElementTree.fromstring(drawn.svg)
    assert len([item for item in root.iter(f"{SVG}circle") if item.get("class") == "element"]) == 4
    assert len([item for item in root.iter(f"{SVG}path") if item.get("class") == "scope"]) == 2


def test_answers_that_differ_are_marked():
    drawn = streamgauge.timeline(QUERY, STREAM, answers=OPEN_AT_THE_LEFT)
    assert texts(drawn, "wrong") == ["surplus: e 5", "missing: e 5"]
    assert texts(drawn, "name") == ["Answers under rspql: wrong"]
    missed = streamgauge.timeline(QUERY, STREAM, answers=OPEN_AT_THE_LEFT[:1], advance_to="10s")
    assert texts(missed, "wrong") == ["surplus: e 5", "missed"]


def test_a_recorded_run_is_drawn(tmp_path):
    with RecordedSession(QUERY) as session:
        run, elements = session.feed(STREAM).advance("10s").recorded()
    with pytest.raises(MistakeError, match="was not read from a folder"):
        streamgauge.timeline(run)
    write(elements, tmp_path / "stream.parquet")
    write_run(tmp_path, run)
    for item in (tmp_path, str(tmp_path), streamgauge.load_run(tmp_path)):
        assert texts(streamgauge.timeline(item), "name") == ["Answers of live under rspql: right"]


def test_times_since_1970_are_times_of_the_day():
    far = StreamBuilder("urn:in", {"": "urn:"})
    begun = 1_763_899_200_000
    far.at(begun + 1000, ":a :v 1 .").at(begun + 7000, ":b :v 2 .")
    said = texts(streamgauge.timeline(QUERY, far, advance_to=begun + 10_000))
    assert {"12:00:05", "12:00:10"} <= set(said)


def test_many_elements_are_counted_and_the_first_reports_drawn():
    many = StreamBuilder("urn:in", {"": "urn:"}).every("1s", 100, lambda number: f":s{number} :v {number} .")
    drawn = streamgauge.timeline(QUERY, many, reports=6)
    assert drawn.title == "what is due under rspql, the first 6 reports"
    assert texts(drawn).count("5 triples") == 6
    assert len(re.findall('class="element"', drawn.svg)) == 31


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda: streamgauge.timeline(QUERY + " "), "a query is drawn on its stream"),
        (lambda: streamgauge.timeline(streamgauge.parse_query(QUERY)), "a query is drawn on its stream"),
        (lambda: streamgauge.timeline(QUERY, STREAM, advance_to=10), "no report may be due up to 10 ms"),
        (lambda: streamgauge.timeline(QUERY, []), "there is no element of urn:in to draw"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, sentence):
    with pytest.raises(MistakeError, match=sentence):
        draw()


def test_a_notebook_shows_the_picture_and_a_file_keeps_it(tmp_path):
    drawn = streamgauge.timeline(QUERY, STREAM, answers=OPEN_AT_THE_LEFT)
    drawn.save(tmp_path / "a.svg")
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', drawn._repr_html_())
    assert b64decode(data).decode() == drawn.svg == (tmp_path / "a.svg").read_text()
    assert 'alt="answers under rspql: wrong"' in drawn._repr_html_()


def test_a_picture_has_a_paper_of_its_own_that_its_texts_stand_out_from_in_both_themes():
    """A notebook is white on a dark system too: the picture may not rely on what lies below it."""
    drawn = streamgauge.timeline(QUERY, STREAM, answers=OPEN_AT_THE_LEFT).svg
    head, *_ = drawn.partition("</style>")[2].split("\n")[1:]
    assert head == '<rect class="paper" x="-12" width="100%" height="100%"/>'
    for root in re.findall(r":root\{([^}]*)\}", drawn):
        shades = dict(re.findall(r"--(\w+):(#\w+);", root))
        light = {name: luminance(shade) for name, shade in shades.items()}
        for name in ("ink", "muted", "wrong"):
            low, high = sorted((light[name], light["paper"]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (name, root)
    assert len(re.findall(r":root\{", drawn)) == 2


def luminance(shade):
    """The relative luminance of a colour ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(shade[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_notebook_shows_windows_and_why_they_are_wrong():
    verdict = streamgauge.verify(QUERY, STREAM, answers=OPEN_AT_THE_LEFT)
    assert "<td>diagnosis</td><td>The borders of a window are (o, c].</td>" in verdict._repr_html_()
    first = verdict.windows[0]._repr_html_()
    assert "<td>0 - 5,000 ms</td>" in first
    assert "<td>surplus</td><td>urn:e</td><td>5</td>" in first
    (seen,) = streamgauge.parse_query(QUERY).windows
    assert "<td>size</td><td>5,000 ms</td>" in seen._repr_html_()
