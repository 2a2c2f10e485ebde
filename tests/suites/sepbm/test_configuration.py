"""A configuration's folder: what is written is read; the same values, the same bytes; errors name file and line."""

import json

import pytest

from streamgauge.formats.streams import read_triples
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE
from streamgauge.reasoning import Rule
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import (
    About,
    Configuration,
    ConfigurationError,
    DueRows,
    SepbmChannel,
    read,
    write,
    write_due,
)

SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
ONTOLOGY = (("<urn:A>", SUB, "<urn:B>"), ("_:x", RDF_TYPE, "<http://www.w3.org/2002/07/owl#Ontology>"))
CHANNELS = (SepbmChannel("named", "SELECT * { ?x <urn:name> ?n }"), SepbmChannel("who", "SELECT ?x { ?x a <urn:B> }\n"))
SEQUENCE = (
    Publication(1, (("<urn:a>", "<urn:name>", '"a \\"quoted\\" näme\\n"'), ("<urn:a>", RDF_TYPE, "<urn:A>"))),
    Publication(2, (), (("<urn:a>", RDF_TYPE, "<urn:A>"),)),
)
DUE = (
    DueRows("named", 1, (("<urn:a>", '"a \\"quoted\\" näme\\n"'), ("<urn:a>", None))),
    DueRows("who", 1, (("<urn:a>",),)),
    DueRows("who", 2, (), (("<urn:a>",),)),
)
BASE = '<urn:c> <urn:name> "blank s" .\n'


def stored(folder) -> Configuration:
    about = About({"seed": 5}, {"who": ("named", "<urn:v>")})
    write(folder, about, ONTOLOGY, CHANNELS, SEQUENCE)
    (folder / "base.nt").write_text(BASE)
    write_due(folder, reversed(DUE))
    return read(folder)


def test_what_is_written_is_read(tmp_path):
    result: Configuration = stored(tmp_path)
    assert result.channels == CHANNELS
    assert tuple(result.sequence()) == SEQUENCE
    assert list(result.base()) == [("<urn:c>", "<urn:name>", '"blank s"')]
    (rule,) = result.rules().rules
    head, body = (TriplePattern(Var("x"), RDF_TYPE, name) for name in ("<urn:B>", "<urn:A>"))
    assert rule == Rule(head, (body,), rule.axiom)
    assert [(report.channel, report.publication) for report in result.due()] == [("named", 1), ("who", 1), ("who", 2)]
    assert {report._replace(added=frozenset(report.added)) for report in result.due()} == {
        report._replace(added=frozenset(report.added)) for report in DUE
    }
    assert read(tmp_path).about == About({"seed": 5}, {"who": ("named", "<urn:v>")})


def test_the_same_values_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        stored(tmp_path / name)
    for file in sorted((tmp_path / "one").rglob("*.*")):
        assert file.read_bytes() == (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes()


def test_no_notification_is_due(tmp_path):
    stored(tmp_path)
    write_due(tmp_path, ())
    assert list(read(tmp_path).due()) == []


def test_the_ontology_is_written_as_any_reader_reads_it(tmp_path):
    stored(tmp_path)
    assert len(list(read_triples(tmp_path / "ontology.nt"))) == len(ONTOLOGY)


def damage(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("configuration.json", "{", "configuration.json: not written by"),
        ("configuration.json", "{}", "configuration.json: not written by"),
        ("configuration.json", json.dumps({"version": 2, "made": {}, "alike": {}}), "version 2"),
        ("base.nt", "<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b>\n", r"base.nt:2: expected"),
        ("ontology.nt", "<urn:a> .\n", r"ontology.nt"),
        ("ontology.nt", f"<urn:p> {RDF_TYPE} <http://www.w3.org/2002/07/owl#ReflexiveProperty> .\n", "Reflexive"),
        ("sequence.jsonl", '{"n": 1, "add": "", "remove": ""}\n{"n": 3, "add": "", "remove": ""}\n', "jsonl:2: .*is 3"),
        ("sequence.jsonl", '{"n": 1, "add": "<urn:a> .", "remove": ""}\n', "jsonl:1"),
        ("sequence.jsonl", '{"n": 1, "add": 7, "remove": ""}\n', "jsonl:1"),
        ("sequence.jsonl", "[]\n", "jsonl:1"),
        ("due.parquet", "PAR1", "due.parquet.*sepbm generate"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, text, message):
    stored(tmp_path)
    damage(tmp_path, name, text)
    with pytest.raises(ConfigurationError, match=message):
        everything(tmp_path)


@pytest.mark.parametrize("name", ["configuration.json", "base.nt", "ontology.nt", "sequence.jsonl", "due.parquet"])
def test_what_is_missing_is_named(tmp_path, name):
    stored(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ConfigurationError, match=name):
        everything(tmp_path)


def everything(folder):
    result = read(folder)
    return result.rules(), list(result.base()), list(result.sequence()), list(result.due())
