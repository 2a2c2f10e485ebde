"""Every module that reads a file is known, with the reason why damage to it is not taken for an answer."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamgauge

ROOT = Path(streamgauge.__file__).parent
KNOWN = tomllib.loads(Path(__file__).with_name("read_files.toml").read_text("utf-8"))
READS = {"read_text", "read_bytes", "ParquetFile", "read_table", "read_metadata", "read_schema", "open_dataset"}
LOADS = {"json", "tomllib", "pickle", "marshal", "np", "numpy"}
OPENERS = {"os", "gzip", "bz2", "lzma", "io"}
PARQUET = {f"pq.{name}" for name in ("ParquetFile", "ParquetWriter", "read_table", "write_table", "read_metadata")}
NOT_FILES = {"webbrowser", "self", "source", "sink", "self._link", "entry", "trigger", "bridge", "lmdb", "document"}
"""What has a method ``open`` that opens no file, or a store with its own checksums."""


def reads(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that read a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _reads(node):
            yield node


def of_spark(node: ast.AST) -> bool:
    """Whether a node is Spark's reader, of which something is called: ``spark.read.text`` but not ``file.read()``."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="read" | "readStream")):
            return True
    return False


def _reads(call: ast.Call) -> bool:
    if any(map(of_spark, ast.walk(call.func))):
        return True
    match call.func:
        case ast.Attribute(attr=name) if name in READS:
            return True
        case ast.Attribute(value=ast.Name(id=module), attr="load"):
            return module in LOADS
        case ast.Attribute(value=value, attr="open"):
            return ast.unparse(value) not in NOT_FILES and not _writes(call, ast.unparse(value))
        case ast.Name(id="open"):
            return not _writes(call, "open")
    return False


def _writes(call: ast.Call, opener: str) -> bool:
    """Whether a file is opened for writing only."""
    if opener == "os":
        return len(call.args) > 1 and "O_WRONLY" in ast.unparse(call.args[1])
    place = 1 if opener in {"open", *OPENERS} else 0
    modes = [argument.value for argument in call.args[place : place + 1] if isinstance(argument, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) & set("wax") and "+" not in mode for mode in modes)


def readers() -> dict[str, list[int]]:
    """The lines of each module of the package that read a file."""
    results = {}
    for name, text in texts(*READS, "load(", "open(", ".read.", ".readStream."):
        lines = [call.lineno for call in reads(ast.parse(text))]
        if lines:
            results[name] = lines
    return results


def texts(*words: str) -> Iterator[tuple[str, str]]:
    """Each module of the package in which one of the words stands, and its text: to parse all takes seconds."""
    for file in sorted(ROOT.rglob("*.py")):
        text = file.read_text("utf-8")
        if any(word in text for word in words):
            yield file.relative_to(ROOT).as_posix(), text


@pytest.mark.slow
def test_every_module_that_reads_a_file_is_known():
    known = {module for modules in KNOWN.values() for module in modules}
    readers_ = readers().keys()
    assert sorted(readers_ - known) == []
    assert sorted(known - readers_) == []


def test_parquet_and_seals_have_one_home():
    modules = {
        name
        for name, text in texts("pq.")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and node.attr in {"ParquetFile", "ParquetWriter", "write_table", "read_table"}
        if ast.unparse(node).startswith("pq.")
    }
    assert modules == {"formats/manifest.py", "formats/tables.py"}
    assert [name for name, lines in spark_parquet().items() if lines] == ["spark/hadoop_tables.py"]


def spark_parquet() -> dict[str, list[str]]:
    """Where each module has Spark read Parquet, whose checksums Spark passes over unless it is told to check them."""
    return {
        name: [
            ast.unparse(node)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "parquet"
            and ".write" not in ast.unparse(node.func.value)
        ]
        for name, text in texts(".parquet(")
    }


def test_a_new_reader_is_found():
    text = "from pathlib import Path\nimport json\ndef verdict(p): return json.loads(Path(p).read_text()), open(p, 'w')"
    assert [call.lineno for call in reads(ast.parse(text))] == [3]
    text = "rows = spark.read.schema(s).json(p)\nlines = spark.readStream.text(p)\nfile.read()\nself.read(1).text(2)"
    assert sorted({call.lineno for call in reads(ast.parse(text))}) == [1, 2]
