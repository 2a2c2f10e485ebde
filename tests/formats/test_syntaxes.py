"""The cases of syntaxes.toml, and a suite in the form of the W3C's, by the runner of these suites."""

import tomllib
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.bounded_files import ByteReader
from streamgauge.formats.canonical import to_triple
from streamgauge.formats.documents import FormatError
from streamgauge.formats.instants import InstantError, read_moment
from streamgauge.formats.line_versions import UnversionedFile, without_versions
from streamgauge.formats.ntriples import NTriplesReader
from streamgauge.formats.streams import Reading, parse_file, stream_formats
from streamgauge.formats.streams.quads import graph_name
from streamgauge.formats.syntaxes import parse_open, parse_texts
from streamgauge.servers.broker.limits import Limits, read_graph
from tests import rdf12
from tests.examples import examples
from tests.formats import w3c

CASES = {
    case["name"]: case
    for case in tomllib.loads(Path(__file__).with_name("syntaxes.toml").read_text(encoding="utf-8"))["case"]
}
MANIFEST = """PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX rdft: <http://www.w3.org/ns/rdftest#>
<#manifest> a mf:Manifest ; mf:assumedTestBase <http://base.example/> ; mf:entries ( {names} ) .
{tests}"""


def same(result, text: str) -> bool:
    quads = ox.parse(text, format=ox.RdfFormat.N_QUADS)
    return w3c.canonical(result) == w3c.canonical(quads)


@pytest.mark.parametrize("name", CASES)
def test_a_text_is_read_or_refused(tmp_path, name):
    case = CASES[name]
    file = tmp_path / case["file"]
    file.write_text(case["text"], encoding="utf-8")
    if "quads" not in case:
        with pytest.raises(FormatError, match=file.name):
            list(parse_file(file))
        return
    assert same(parse_file(file), case["quads"])


def test_there_are_texts_that_are_read_and_texts_that_are_refused():
    refused = sum("quads" not in case for case in CASES.values())
    assert refused >= 15
    assert len(CASES) - refused >= 20


VERSIONED = (
    b'VERSION "1.2"\r\n<urn:a> <urn:b> <<( <urn:c> <urn:d> "VERSION" )>> .\n\tVERSION \'1.2\'\n<urn:a> <urn:b> _:c .'
)
WANTED = ("<urn:a>", "<urn:b>", '<<( <urn:c> <urn:d> "VERSION" )>>')


def test_versions_of_lines_are_hints_at_every_door():
    assert read_graph(VERSIONED, "application/n-triples", Limits())[0] == WANTED
    assert read_graph(VERSIONED, "application/n-quads", Limits())[0] == WANTED
    assert NTriplesReader().triples(VERSIONED)[0] == WANTED
    lines = VERSIONED.replace(b" .\n", b" <urn:g:5> .\n") + b"\n"
    (one,) = stream_formats()["nquads"].decoder(Reading())(lines.replace(b"_:c .", b"_:c <urn:g:5> ."), "here", None)
    assert one.added[0] == WANTED


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_file_of_lines_is_the_same_however_it_is_cut(size):
    file = UnversionedFile(ByteReader(BytesIO(VERSIONED).read))
    read = b"".join(iter(lambda: file.read(size), b""))
    assert read == without_versions(VERSIONED, ox.RdfFormat.N_TRIPLES)
    assert (read.count(b"\n"), read.count(b"VERSION")) == (VERSIONED.count(b"\n"), 1)


def suite(folder: Path, *tests: tuple[str, str, str]) -> None:
    """A manifest with a test for each (kind, text, result)."""
    lines = []
    for number, (kind, text, result) in enumerate(tests):
        (folder / f"t{number}.ttl").write_text(text)
        (folder / f"t{number}.nt").write_text(result)
        lines.append(f"<#t{number}> a rdft:{kind} ; mf:action <t{number}.ttl> ; mf:result <t{number}.nt> .")
    names = " ".join(f"<#t{number}>" for number in range(len(tests)))
    (folder / "manifest.ttl").write_text(MANIFEST.format(names=names, tests="\n".join(lines)))


def test_the_runner_tells_right_from_wrong_and_refused(tmp_path, capsys):
    right = ("TestTurtleEval", "<a> <b> 1 .", '<http://base.example/a> <http://base.example/b> "1"^^<{}integer> .\n')
    right = (*right[:2], right[2].format("http://www.w3.org/2001/XMLSchema#"))
    suite(tmp_path, right, ("TestTurtleNegativeSyntax", "<a> <b> .", ""))
    assert w3c.main(["--data", str(tmp_path)]) == 0
    assert "all 2: 2 right, 0 refused, 0 wrong" in capsys.readouterr().out
    suite(
        tmp_path,
        right,
        ("TestTurtleEval", "<a> <b> 1 .", right[2].replace('"1"', '"01"')),
        ("TestTurtlePositiveSyntax", "<a> <b> .", ""),
        ("TestTurtleNegativeSyntax", "<a> <b> <c> .", ""),
    )
    assert w3c.main(["--data", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "all 4: 1 right, 1 refused, 2 wrong" in told
    assert "wrong: TestTurtleEval" in told
    assert "read, although it is not of this syntax" in told


GRAPHS = st.sampled_from(["", "<urn:g>", "_:b", "<http://ex.org/d#é?f=g>"])


@examples(suite=40, prove=20_000)
@given(st.lists(st.tuples(rdf12.TRIPLES, GRAPHS), min_size=1, max_size=3))
def test_texts_of_quads_are_those_of_their_terms(drawn):
    lines = [f"{' '.join(triple)} {graph} .\n" for triples, graph in drawn for triple in triples]
    text, syntax = "".join(lines).encode(), ox.RdfFormat.N_QUADS
    quads = [(to_triple(quad), graph_name(quad)) for quad in parse_open(BytesIO(text), "s.nq", syntax)]
    assert list(parse_texts(BytesIO(text), "s.nq", syntax)) == quads


MOMENTS = st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-3))]))


@examples(suite=40, prove=20_000)
@given(MOMENTS, st.sampled_from(["seconds", "milliseconds", "microseconds"]))
def test_a_moment_in_the_usual_form_is_that_of_any_form(moment, timespec):
    text = moment.isoformat(timespec=timespec).replace("+00:00", "Z")
    assert read_moment(text) == read_moment(text.replace("T", " "))


@pytest.mark.parametrize("text", ["2026-02-30T10:00:00Z", "2026-02-28T25:00:00Z", "0000-01-01T00:00:00"])
def test_a_moment_that_does_not_exist_is_refused(text):
    with pytest.raises(InstantError, match=f"'{text}' is not a time"):
        read_moment(text)
    assert read_moment("2026-02-28T24:00:00Z") == datetime(2026, 3, 1, tzinfo=UTC)
