"""Every place where a command reads a file: none there, a folder, bytes that are no text, a path below a file.

Each is refused with exit code 2 and a sentence of ours that names it, whatever library would have read it.
"""

import shlex

import pytest

from tests.cli.test_mistakes import FOREIGN, lay_out

ANSWERS = '[{"timestamp": 5000, "head": {"vars": ["s", "o"]}, "results": {"bindings": []}}]'
IMPORT = "import answers.json --semantics rspql --out new"
READERS = {
    "query {}.rq --stream readings.nq",
    "query query.rq --stream {}.nq",
    "query query.rq --stream {}.trig",
    "query query.rq --stream {}.jsonl",
    "query query.rq --stream {}.csv",
    "query query.rq --stream {}.parquet",
    "query query.rq --stream {}.nq.gz",
    "query query.rq --stream readings.nq --static {}.ttl",
    "query query.rq --stream table.csv --csv-mapping {}.json",
    "expect {}.rq --stream readings.nq --semantics rspql",
    "expect query.rq --stream {}.nq --semantics rspql",
    "expect query.rq --stream readings.nq --semantics rspql --static {}.rdf",
    "check {}",
    "explain {}",
    "report {}",
    "compare {} run",
    "compare {}.json run",
    "import {}.json --query query.rq --stream readings.nq --semantics rspql --out new",
    f"{IMPORT} --query {{}}.rq --stream readings.nq",
    f"{IMPORT} --query query.rq --stream {{}}.nq",
    f"{IMPORT} --query query.rq --stream readings.nq --static {{}}.nt",
    "translate {}.rq --to cqels",
    "run {}.toml",
    "run experiment.toml --set workload.file={}.nq",
    "run experiment.toml --set query.file={}.rq",
    "run experiment.toml --set query.static={}.ttl",
    "capacity {}.toml",
    "generate university --closure rules --format ntriples --out new --ontology {}.owl",
    "engine serve live --token-file {}",
    "engine serve live --static http://example.org/x={}.ttl",
    "fragments serve {}.ttl",
    "fragments serve people.ttl --token-file {}",
    "fragments verify {}",
    "broker serve {}.ttl",
    "broker serve --ontology {}.ttl",
    "broker serve --token-file {}",
    "broker verify {}",
    "subscribe people --query {}.rq --at http://127.0.0.1:1",
    "watch {}.rq http://127.0.0.1:1/",
    "reproduce csrbench --data {}",
    "reproduce yabench --data {}",
    "reproduce yabench --engines live --only Q1 --hurricane {}",
    "reproduce sepbm --ontology {}.ttl",
    "certify live --deviations {}",
    "sepbm run {} --out new",
    "sepbm analyse run --of {}",
    "sepbm generate new --ontology {}.ttl",
    "sepbm generate new --data {}.ttl --queries queries",
}
BYTES = bytes(range(256)) * 3
UNTEXT = {"folder": None, "bytes": BYTES, "utf16": "PREFIX ex: <urn:> é".encode("utf-16")}


@pytest.fixture
def there(tmp_path, monkeypatch):
    lay_out(tmp_path, {})
    (tmp_path / "answers.json").write_text(ANSWERS)
    (tmp_path / "table.csv").write_text("time,a\n1,2\n")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "q.rq").write_text("SELECT ?s { ?s ?p ?o }")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bad(there, kind, reader):
    """The name of a bad file of that kind, without the ending that the command's words add."""
    ending = next(word for word in shlex.split(reader) if "{}" in word).partition("{}")[2]
    if kind == "nowhere":
        return "nowhere"
    if kind == "below":
        return "notes.txt/x"
    file = there / f"{kind}{ending}"
    file.mkdir() if kind == "folder" else file.write_bytes(UNTEXT[kind])
    return kind


@pytest.mark.parametrize("reader", sorted(READERS))
@pytest.mark.parametrize("kind", ["nowhere", "below", *UNTEXT])
def test_it_is_refused_by_its_name(there, command, kind, reader):
    name = bad(there, kind, reader)
    code, out, err = command(*shlex.split(reader.replace("{}", name)))
    said = " ".join(f"{err} {out}".split())
    assert code == (1 if said.startswith(f"{name}: damaged") else 2), said
    assert name in said
    assert not [words for words in (*FOREIGN, "codec", "Expecting", "Arrow", "sqlite") if words in said]
