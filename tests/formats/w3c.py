"""The W3C's test suites of RDF formats, 1.1 and 1.2, by our readers: right, refused or wrong.

`python -m tests.formats.w3c --data FOLDER` runs the suites of a manifest below a folder (github.com/w3c/rdf-tests,
`rdf/rdf12`; its manifests include those of RDF 1.1), prints what is not right, and a row for each kind of test.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urljoin

import pyoxigraph as ox

from streamgauge.formats.canonical import to_triple
from streamgauge.formats.documents import FormatError
from streamgauge.formats.streams import parse_file, rdf_syntax
from streamgauge.formats.streams.quads import graph_name

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFT = "http://www.w3.org/ns/rdftest#"

Outcome = Literal["right", "refused", "wrong"]


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """A test of a manifest: its kind (``TestTurtleEval``), files, and the IRI that its file is read from."""

    name: str
    kind: str
    action: Path
    result: Path | None
    base: str


def suite_tests(manifest: Path) -> Iterator[SuiteTest]:
    """The tests of a manifest, and of those that it includes, in their order."""
    graph = _Graph(manifest)
    for node in graph.subjects(_RDF + "type", _MF + "Manifest"):
        for included in graph.members(node, _MF + "include"):
            yield from suite_tests(graph.path(included))
        base = graph.one(node, _MF + "assumedTestBase") or graph.one(node, _MF + "assumedBase")
        for test in graph.members(node, _MF + "entries"):
            kind = graph.one(test, _RDF + "type")
            action = graph.one(test, _MF + "action")
            if kind is None or not kind.value.startswith(_RDFT) or not isinstance(action, ox.NamedNode):
                continue
            result = graph.one(test, _MF + "result")
            file = graph.path(action)
            relative = file.relative_to(manifest.parent.resolve()).as_posix()
            yield SuiteTest(
                f"{manifest.parent.name}/{getattr(test, 'value', test)}".replace(graph.base, ""),
                kind.value.removeprefix(_RDFT),
                file,
                graph.path(result) if isinstance(result, ox.NamedNode) else None,
                urljoin(base.value, relative) if base is not None else action.value,
            )


class _Graph:
    """The triples of a manifest, and where its relative IRIs lead."""

    def __init__(self, manifest: Path) -> None:
        self.base = manifest.resolve().as_uri()
        self._store = ox.Store()
        self._store.load(manifest.read_bytes(), format=ox.RdfFormat.TURTLE, base_iri=self.base)

    def subjects(self, predicate: str, value: str) -> list[ox.NamedNode]:
        pattern = (None, ox.NamedNode(predicate), ox.NamedNode(value))
        return [quad.subject for quad in self._store.quads_for_pattern(*pattern)]

    def one(self, node: ox.NamedNode, predicate: str) -> ox.NamedNode | None:
        return next((quad.object for quad in self._store.quads_for_pattern(node, ox.NamedNode(predicate), None)), None)

    def members(self, node: ox.NamedNode, predicate: str) -> Iterator[ox.NamedNode]:
        head = self.one(node, predicate)
        while head is not None and head.value != _RDF + "nil":
            member = self.one(head, _RDF + "first")
            assert member is not None
            yield member
            head = self.one(head, _RDF + "rest")

    def path(self, node: ox.NamedNode) -> Path:
        return Path(unquote(node.value.removeprefix("file://"))).resolve()


def outcome(test: SuiteTest) -> tuple[Outcome, str]:
    """How our readers do in a test, and what went wrong."""
    negative = "Negative" in test.kind
    try:
        quads = [(*to_triple(quad), graph_name(quad)) for quad in parse_file(test.action, test.base)]
    except FormatError as error:
        return ("right" if negative else "refused"), str(error)
    if negative:
        return "wrong", "read, although it is not of this syntax"
    if test.result is None:
        return "right", ""
    if "C14N" in test.kind:
        text = "".join([" ".join(filter(None, quad)) + " .\n" for quad in quads])
        wanted = test.result.read_text(encoding="utf-8")
        return ("right", "") if text == wanted else ("wrong", f"{text!r}, not {wanted!r}")
    other = ox.parse(test.result.read_bytes(), format=rdf_syntax(test.result), base_iri=test.base)
    mine, theirs = canonical(parse_file(test.action, test.base)), canonical(other)
    return ("right", "") if mine == theirs else ("wrong", f"only here {mine - theirs}, only there {theirs - mine}")


def canonical(quads: Iterator[ox.Quad]) -> set[str]:
    """Quads as texts that do not depend on the names of blank nodes."""
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


def main(arguments: list[str]) -> int:
    """Run the suites; 1 when a test is wrong, or over 2% are refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with a manifest.ttl")
    manifest = parser.parse_args(arguments).data / "manifest.ttl"
    counts: Counter[tuple[str, Outcome]] = Counter()
    for test in dict.fromkeys(suite_tests(manifest)):
        result, words = outcome(test)
        counts[test.kind, result] += 1
        if result != "right":
            print(f"{result}: {test.kind} {test.name}: {words[:600]}")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind}: " + ", ".join(f"{counts[kind, one]} {one}" for one in ("right", "refused", "wrong")))
    sums = {
        one: sum(counts[kind, result] for kind, result in counts if result == one)
        for one in ("right", "refused", "wrong")
    }
    print(f"all {sum(sums.values())}: {sums['right']} right, {sums['refused']} refused, {sums['wrong']} wrong")
    return int(sums["wrong"] > 0 or sums["refused"] > 0.02 * sum(sums.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
