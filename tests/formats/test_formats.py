"""Stream formats: round trips, CSRBench's stream in its three formats, and bad lines named with file and line."""

import gzip
import io
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyjelly.integrations.generic import generic_sink as sink
from pyjelly.integrations.generic.serialize import grouped_stream_to_file

import streamgauge.workloads.weather as weather
from streamgauge.formats.canonical import parse_term
from streamgauge.formats.streams import FormatError, read_stream, read_triples, stream_formats, write_stream
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD

VALLEY = Path(weather.__file__).parent / "recorded" / "valley.trig"
OM_OWL = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WRITABLE = sorted(name for name, form in stream_formats().items() if form.write)
TEXT = st.text(st.characters(codec="utf-8", min_codepoint=32), max_size=6)
IRIS = st.sampled_from(["<http://a>", "<http://b#é>", "<urn:x:1>"])
LITERALS = st.builds(
    lambda text, kind: str(ox.Literal(text, **kind)),
    st.one_of(
        TEXT,
        st.sampled_from(["1", "01", "+1", "-7", "76", "76.0", "1e0", "2.5", "x^^y", '"', "<", "_", " a", "a^^<b>"]),
    ),
    st.sampled_from(
        [{}, {"language": "en"}, *({"datatype": ox.NamedNode(XSD + t)} for t in ("float", "integer", "date"))]
    ),
)
TRIPLES = st.tuples(st.one_of(IRIS, st.just("_:b1")), IRIS, st.one_of(IRIS, LITERALS, st.just("_:b2")))


@st.composite
def streams(draw):
    steps = draw(st.lists(st.tuples(st.integers(1, 5000), st.lists(TRIPLES, min_size=1, max_size=4)), max_size=4))
    time, elements = -1, []
    for sequence, (step, triples) in enumerate(steps):
        time += step
        elements.append(StreamElement("http://s", time, sequence, tuple(triples)))
    return elements


@given(streams(), st.sampled_from(WRITABLE))
def test_what_is_written_is_read_back(tmp_path_factory, elements, form):
    path = tmp_path_factory.mktemp("streams") / "stream"
    if form == "jelly" and not elements:
        return
    write_stream(elements, path, form)
    result = list(read_stream(path, form, stream="http://s"))
    assert [comparable(element, form) for element in result] == [comparable(element, form) for element in elements]


SPACES = [
    *map(chr, (0x85, 0xA0, 0x1680, 0x2000, 0x2028, 0x2029, 0x202F, 0x3000, 0xFEFF)),
    "\\u001C",
    "\\u001F",
    "\\t",
    "\\r",
    " ",
]


@pytest.mark.parametrize("form", WRITABLE)
def test_spaces_of_all_kinds_in_literals_are_kept(tmp_path, form):
    """At the beginning, in the middle and at the end, also of literals that a format writes without quotes."""
    texts = [f"{space}{text}" for space in SPACES for text in ("", "a", f"a{space}b", f"a{space}")]
    typed = [f'"{text}"^^<http://a>' for text in texts] + [f'"{text}"' for text in texts]
    elements = [
        StreamElement("http://s", at, at, (("<http://a>", "<http://b>", term),)) for at, term in enumerate(typed)
    ]
    write_stream(elements, tmp_path / "stream", form)
    assert list(read_stream(tmp_path / "stream", form, stream="http://s")) == elements


def comparable(element, form):
    """The element with its blank nodes numbered in order of appearance where the format renames them."""
    if form not in ("trig", "messages", "turtle"):
        return element
    names = {}
    rename = lambda term: names.setdefault(term, f"_:{len(names)}") if term.startswith("_:") else term  # noqa: E731
    return replace(element, added=tuple(tuple(map(rename, triple)) for triple in element.added))


def test_the_writable_formats():
    assert WRITABLE == ["jelly", "jsonl", "messages", "nquads", "parquet", "trig", "yabench"]
    assert sorted(stream_formats()) == sorted([*WRITABLE, "csv", "gtfsrt", "json", "jsonld", "rdf", "turtle"])
    assert all(form.about for form in stream_formats().values())


def test_the_valley_stream():
    elements = list(read_stream(VALLEY))
    assert [element.time for element in elements] == [0, 1000, 2000, 4000, 5000, 7000]
    assert sum(len(element.added) for element in elements) == 63
    value = ("<http://example.org/valley/seen/Mill_AirTemperature_2000_value>", f"<{OM_OWL}floatValue>")
    assert (*value, f'"83.5"^^<{XSD}double>') in elements[2].added


@pytest.mark.parametrize("form", WRITABLE)
def test_the_valley_stream_is_the_same_in_every_format_and_packed(tmp_path, form):
    elements = list(read_stream(VALLEY))
    ending = stream_formats()[form].endings[0]
    write_stream(elements, tmp_path / f"valley{ending}")
    assert list(read_stream(tmp_path / f"valley{ending}")) == elements
    if form != "parquet":
        packed = tmp_path / f"packed{ending}.gz"
        packed.write_bytes(gzip.compress((tmp_path / f"valley{ending}").read_bytes()))
        assert list(read_stream(packed)) == elements


def test_csrbench_is_the_same_stream_in_its_three_formats(shared_data):
    folder = shared_data / "csrbench"
    turtle = list(read_stream(folder / "stream"))
    trig = list(read_stream(folder / "stream-yabench" / "csrbench-dataset.trig.gz"))
    lines = list(read_stream(folder / "stream-yabench" / "csrbench-inputstream.n3t.gz"))
    counts = [226, 130, 530, 210, 50, 690, 242, 162, 466, 242, 66, 730, 386, 178, 850, 450, 98, 1098, 338, 178, 850]
    counts += [466, 82, 1186, 386, 242, 962, 418, 66, 1282, 338, 258, 1010, 322]
    for elements in (turtle, trig, lines):
        assert [element.time for element in elements] == list(range(0, 34_000, 1000))
        assert [len(element.added) for element in elements] == counts
    assert [set(element.added) for element in turtle] == [set(element.added) for element in trig]
    assert [set(map(as_converted, element.added)) for element in turtle] == [set(element.added) for element in lines]


def as_converted(triple):
    """What CSRBench's converter to lines makes of a triple: every literal becomes an xsd:float."""
    s, p, o = triple
    return s, p, f'"{parse_term(o).value}"^^<{XSD}float>' if o.startswith('"') else o


def test_weather_in_yabenchs_lines_is_what_its_generator_writes_in_the_streams_lexical_forms(tmp_path):
    elements = generated(stations=1, duration="20s")
    write_stream(elements, tmp_path / "SG_test1", "yabench")
    lines = (tmp_path / "SG_test1").read_text().splitlines()
    ssw, rdf = "http://knoesis.wright.edu/ssw/", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    assert len(lines) == 140
    assert lines[0] == (
        f'<{ssw}Observation_AirTemperature_A0_0> <{rdf}type> <{ssw}ont/weather.owl#TemperatureObservation> "0" .'
    )
    assert lines[12] == f'<{ssw}MeasureData_AirTemperature_A0_1031> <{OM_OWL}floatValue> 77.0^^<{XSD}float> "1031" .'
    assert list(read_stream(tmp_path / "SG_test1")) == elements


def generated(**parameters):
    from streamgauge.formats.stream import elements

    return list(elements(weather.plan(1430236808, **parameters).table()))


def test_yabench_lines_of_all_kinds(tmp_path):
    path = tmp_path / "odd.n3t"
    path.write_text(
        f'<urn:s> <urn:p> 92^^{XSD}float "0"\n'
        f'<urn:s> <urn:p> 92.0^^<{XSD}float> "0" .\n'
        '<urn:s> <urn:p> warm and dry "0" .\n'
        "\n"
        f'_:b <urn:p> "quoted"@en "5" .\n'
        f'<urn:s> <urn:p> 2004-08-08T06:05:00^^{XSD}float "5"\r\n'
        '<urn:s>\t<urn:p>\t<urn:o>\t"-5" .\n'
    )
    assert list(read_stream(path, lateness=10)) == [
        StreamElement(
            "http://ex.org/streams/test",
            0,
            0,
            tuple(
                ("<urn:s>", "<urn:p>", o) for o in (f'"92"^^<{XSD}float>', f'"92.0"^^<{XSD}float>', '"warm and dry"')
            ),
        ),
        StreamElement(
            "http://ex.org/streams/test",
            5,
            1,
            (("_:b", "<urn:p>", '"quoted"@en'), ("<urn:s>", "<urn:p>", f'"2004-08-08T06:05:00"^^<{XSD}float>')),
        ),
        StreamElement("http://ex.org/streams/test", -5, 2, (("<urn:s>", "<urn:p>", "<urn:o>"),)),
    ]


def test_numbered_turtle_goes_by_number_and_interval(tmp_path):
    (tmp_path / "x_10.ttl").write_text("@prefix : <urn:> . :a :b [ :c 1 ] .")
    (tmp_path / "x_9.nt").write_text("_:x <urn:b> _:y .")
    (tmp_path / "x_11.ttl").write_text("# nothing now")
    (tmp_path / "readme.md").write_text("not part of the stream")
    elements = list(read_stream(tmp_path, interval=250, stream="urn:s"))
    assert [(element.time, element.sequence, element.stream) for element in elements] == [
        (2250, 0, "urn:s"),
        (2500, 1, "urn:s"),
    ]
    assert elements[0].added == (("_:f9b0", "<urn:b>", "_:f9b1"),)
    assert {triple[1] for triple in elements[1].added} == {"<urn:b>", "<urn:c>"}
    assert elements == list(read_stream(tmp_path, interval=250, stream="urn:s"))


def test_quads_take_their_time_from_the_graphs_name_when_it_is_not_stated(tmp_path):
    path = tmp_path / "s.nq"
    path.write_text(f'<urn:a> <urn:b> <urn:c> <urn:g:7> .\n# note\n\n<urn:a> <urn:b> "01"^^<{XSD}integer> <urn:g9> .\n')
    assert [(e.time, e.added[0][2]) for e in read_stream(path)] == [(7, "<urn:c>"), (9, f'"01"^^<{XSD}integer>')]


def test_jelly_frames_of_triples_are_elements(tmp_path):
    frames = []
    for n in range(3):
        frame = sink.GenericStatementSink()
        frame.add(sink.Triple(sink.IRI("urn:a"), sink.IRI("urn:b"), sink.Literal(f"0{n}", None, XSD + "integer")))
        frames.append(frame)
    written = io.BytesIO()
    grouped_stream_to_file((frame for frame in frames), written)
    (tmp_path / "s.jelly").write_bytes(written.getvalue())
    elements = list(read_stream(tmp_path / "s.jelly", interval=50))
    assert {triple for element in elements for triple in element.added} == {
        ("<urn:a>", "<urn:b>", f'"0{n}"^^<{XSD}integer>') for n in range(3)
    }
    assert [element.time for element in elements] == [50 * n for n in range(len(elements))]


GOOD = '<urn:a> <urn:b> <urn:c> "5" .\n'
BAD_FILES = {
    "no time": ("x.n3t", GOOD + "<urn:a> <urn:b> <urn:c> .\n", r"x\.n3t, line 2: expected <s> <p> <o>"),
    "no IRI": ("x.n3t", GOOD + 'urn:a <urn:b> <urn:c> "6" .\n', r"x\.n3t, line 2: not an N-Triples term: urn:a"),
    "bad datatype": ("x.n3t", '<urn:a> <urn:b> 5^^float "6" .\n', r"x\.n3t, line 1: not an N-Triples term"),
    "back": (
        "x.n3t",
        GOOD + GOOD.replace("5", "4"),
        r"x\.n3t, line 2: time goes back from 5 to 4 ms: declare a lateness",
    ),
    "bytes": ("x.n3t", GOOD.encode() + b"\xff\n", r"x\.n3t, line 2: not UTF-8 text"),
    "not gzip": ("x.n3t.gz", GOOD, r"x\.n3t\.gz, line 1: cannot be unpacked"),
    "cut gzip": ("x.n3t.gz", gzip.compress(GOOD.encode() * 99)[:-9], r"x\.n3t\.gz, line \d+: cannot be unpacked"),
    "prefix": (
        "x_1.ttl",
        "@prefix a: <urn:> .\na:x a:y b:z .",
        r"x_1\.ttl, line 2: The prefix b: has not been declared",
    ),
    "turtle": ("x_1.ttl", "<urn:a> <urn:b> .", r"x_1\.ttl, line 1: "),
    "no number": ("x.ttl", "<urn:a> <urn:b> <urn:c> .", r"x\.ttl: its name has no number"),
    "trig prefix": ("x.trig", "<urn:g1> {\n\n a:x a:y b:z }", r"x\.trig, line 3: The prefix a: has not been declared"),
    "no graph": ("x.trig", "<urn:a> <urn:b> <urn:c> .", r"x\.trig, graph none: a triple outside any named graph"),
    "no N-Quads": ("x.nq", "\n<urn:a> <urn:b> c <urn:g1> .\n", r"x\.nq, line 2: not N-Quads: "),
    "graph": ("x.nq", "\n<urn:a> <urn:b> <urn:c> <urn:g> .\n", r"x\.nq, line 2: graph <urn:g> has no time"),
    "no graph nq": ("x.nq", "<urn:a> <urn:b> <urn:c> .\n", r"x\.nq, line 1: a triple outside any named graph"),
    "quads back": (
        "x.nq",
        "<urn:a> <urn:b> <urn:c> <urn:g5> .\n<urn:a> <urn:b> <urn:c> <urn:g4> .\n",
        r"x\.nq, line 2: time goes back from 5 to 4 ms",
    ),
    "odd time": (
        "x.nq",
        '<urn:a> <http://www.streamreasoning.org/schema/benchmark#hasTimestamp> "noon" <urn:g> .\n',
        r'x\.nq, line 1: "noon" is not a time',
    ),
    "jelly": ("x.jelly", "this is not Jelly", r"x\.jelly, frame 0: not a readable Jelly stream"),
    "ending": ("x.xlsx", "a,b", r"x\.xlsx: no stream format has the ending \.xlsx: name the format, one of"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_with_file_and_line(tmp_path, case):
    name, content, said = BAD_FILES[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError, match=said):
        list(read_stream(tmp_path / name))


def test_a_cut_jelly_file_is_refused(tmp_path):
    write_stream(read_stream(VALLEY), tmp_path / "valley.jelly")
    whole = (tmp_path / "valley.jelly").read_bytes()
    (tmp_path / "valley.jelly").write_bytes(whole[:-5])
    with pytest.raises(FormatError, match=r"valley\.jelly, frame \d+: not a readable Jelly stream"):
        list(read_stream(tmp_path / "valley.jelly"))


@pytest.mark.parametrize(("ending", "form"), [("n3t", "yabench"), ("nq", "nquads"), ("parquet", "parquet")])
def test_a_declared_lateness_lets_time_go_back(tmp_path, ending, form):
    late = [StreamElement("urn:s", time, n, (("<urn:a>", "<urn:b>", "<urn:c>"),)) for n, time in enumerate([5, 9, 7])]
    write_stream(late, tmp_path / f"late.{ending}")
    assert list(read_stream(tmp_path / f"late.{ending}", stream="urn:s", lateness=2)) == late
    with pytest.raises(FormatError, match="time goes back from 9 to 7 ms: declare a lateness bound"):
        list(read_stream(tmp_path / f"late.{ending}"))


def test_other_mistakes_are_named(tmp_path):
    (tmp_path / "a_1.ttl").write_text("")
    (tmp_path / "b_01.ttl").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match=r"b_01\.ttl: a_1\.ttl has the number 1 too"):
        list(read_stream(tmp_path))
    with pytest.raises(FormatError, match="empty: no stream format has the ending none"):
        read_stream(tmp_path / "empty")
    with pytest.raises(FormatError, match="nowhere: there is no such file or folder"):
        read_stream(tmp_path / "nowhere")
    with pytest.raises(
        FormatError, match=r"unknown stream format 'xml': there are csv, gtfsrt, jelly, json, jsonl, jsonld"
    ):
        read_stream(tmp_path, "xml")
    with pytest.raises(
        FormatError, match=r"turtle can only be read: write one of jelly, jsonl, messages, nquads, .*, yabench"
    ):
        write_stream([], tmp_path / "x.ttl")
    with pytest.raises(FormatError, match="could not be written"):
        write_stream([], tmp_path / "no" / "x.nq")


@pytest.mark.parametrize("form", sorted({*WRITABLE} - {"jsonl"}))
def test_formats_that_hold_additions_only_say_so(tmp_path, form):
    gone = StreamElement("urn:s", 0, 3, (("<urn:a>",) * 3,), (("<urn:b>",) * 3,))
    with pytest.raises(ValueError, match=r"sequence 3.*(?:cannot express|added triples only)"):
        write_stream([gone], tmp_path / "x", form)


def test_background_triples(tmp_path):
    (tmp_path / "s.ttl").write_text("@prefix : <urn:> .\n:a :b 01, [ :c 2.50 ] .")
    triples = list(read_triples(tmp_path / "s.ttl"))
    assert ("<urn:a>", "<urn:b>", f'"01"^^<{XSD}integer>') in triples
    assert ("_:sb0", "<urn:c>", f'"2.50"^^<{XSD}decimal>') in triples
    (tmp_path / "bad.nt").write_text("<urn:a> <urn:b> <urn:c> .\n<urn:a> b .\n")
    with pytest.raises(FormatError, match=r"bad\.nt, line 2: "):
        list(read_triples(tmp_path / "bad.nt"))
    with pytest.raises(FormatError, match=r"s\.doc: no RDF format has the ending '\.doc'"):
        read_triples(tmp_path / "s.doc")


def test_the_documentation_names_every_format_and_ending():
    text = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
    names = [*stream_formats()]
    names += [ending for form in stream_formats().values() for ending in form.endings if ending]
    assert [name for name in names if f"`{name}`" not in text] == []
