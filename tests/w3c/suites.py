"""The tests that the manifests below a folder list, in the W3C's vocabulary of manifests.

    for test in read(Path("rdf-tests/sparql/sparql12")):
        test.name                    # "sparql12/expression/not-not"
        test.kind                    # EVALUATION, ACCEPTED or REFUSED
        test.query, test.base        # the text, the IRI of its file
        test.data, test.graphs       # files of the default graph; of named graphs by their IRI
        test.result                  # the file of the expected answer

Evaluation tests of updates, and those of protocols, entailment regimes and SERVICE, are counted as left out, by the
reason; those of RDF's formats are run by ``tests.formats.w3c``.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import pyoxigraph as ox

_MF: Final = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT: Final = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_SITE: Final = "https://w3c.github.io/rdf-tests/"
"""Where the suites are published: file names in them are relative to that."""


class Kind(StrEnum):
    """What a test asks for."""

    EVALUATION = "evaluation"
    ACCEPTED = "accepted query"
    REFUSED = "refused query"
    ACCEPTED_UPDATE = "accepted update"
    REFUSED_UPDATE = "refused update"


_KINDS: Final = {
    f"{_MF}QueryEvaluationTest": Kind.EVALUATION,
    **dict.fromkeys((f"{_MF}PositiveSyntaxTest", f"{_MF}PositiveSyntaxTest11"), Kind.ACCEPTED),
    **dict.fromkeys((f"{_MF}NegativeSyntaxTest", f"{_MF}NegativeSyntaxTest11"), Kind.REFUSED),
    **dict.fromkeys((f"{_MF}PositiveUpdateSyntaxTest", f"{_MF}PositiveUpdateSyntaxTest11"), Kind.ACCEPTED_UPDATE),
    **dict.fromkeys((f"{_MF}NegativeUpdateSyntaxTest", f"{_MF}NegativeUpdateSyntaxTest11"), Kind.REFUSED_UPDATE),
}
_LEFT_OUT: Final = {
    "entailment": "entailment regimes other than simple entailment",
    "service": "SERVICE, which needs other servers",
}
"""Folders whose evaluation tests are not of simple entailment over one data set."""


@dataclass(frozen=True)
class Test:
    """One test; paths are of files, IRIs are without brackets."""

    __test__ = False
    name: str
    kind: Kind
    action: Path
    base: str
    data: tuple[Path, ...] = ()
    graphs: Mapping[str, Path] = field(default_factory=dict)
    result: Path | None = None
    lax: bool = False
    """Whether rows may come more or less often than in the result (REDUCED)."""

    @property
    def text(self) -> str:
        """The text of the query."""
        return self.action.read_text(encoding="utf-8")

    @property
    def suite(self) -> str:
        """The folder of the suite that has this test, as ``sparql11``."""
        folders = self.name.split("/")
        return next((one for one in folders if re.fullmatch(r"sparql\d+", one)), folders[0])


def read(folder: Path) -> tuple[list[Test], Counter[str]]:
    """The tests below a folder, in the order of their names, and how many are left out by the reason."""
    left: Counter[str] = Counter()
    tests = [test for path in sorted(folder.rglob("manifest*.ttl")) for test in _Manifest(folder, path).tests(left)]
    return sorted({test.name: test for test in tests}.values(), key=lambda test: test.name), left


def iri_of(folder: Path, path: Path) -> str:
    """The IRI at which a file of the suites is published."""
    return _SITE + path.relative_to(folder).as_posix()


class _Manifest:
    """One manifest, its statements in a store."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder, self._path = folder, path
        self._store = ox.Store()
        self._store.extend(ox.parse(path=str(path), base_iri=iri_of(folder, path)))

    def tests(self, left: Counter[str]) -> Iterator[Test]:
        """The tests that the manifest lists as its entries."""
        for entry in self._entries():
            types = [node.value for node in self._all(entry, f"{_RDF}type") if isinstance(node, ox.NamedNode)]
            kind = next((_KINDS[name] for name in types if name in _KINDS), None)
            reason = _LEFT_OUT.get(self._path.parent.name) if kind is Kind.EVALUATION else None
            if kind is None or reason is not None:
                left[reason or ", ".join(name.rpartition("#")[2] for name in types) or "other"] += 1
                continue
            yield self._test(entry, kind)

    def _entries(self) -> Iterator[object]:
        for quad in self._store.quads_for_pattern(None, ox.NamedNode(f"{_MF}entries"), None):
            cell: object = quad.object
            while (items := self._all(cell, f"{_RDF}first")) != []:
                yield from items
                (cell,) = self._all(cell, f"{_RDF}rest")

    def _test(self, entry: object, kind: Kind) -> Test:
        (action,) = self._all(entry, f"{_MF}action")
        query = self._all(action, f"{_QT}query") or [action]
        result = self._all(entry, f"{_MF}result")
        graphs = self._all(action, f"{_QT}graphData")
        path = self._file(query[0])
        local = str(entry).rstrip(">").rpartition("#")[2].rpartition("/")[2]
        return Test(
            f"{self._path.parent.relative_to(self._folder).as_posix()}/{local}",
            kind,
            path,
            iri_of(self._folder, path),
            tuple(self._file(node) for node in self._all(action, f"{_QT}data")),
            {str(node)[1:-1]: self._file(node) for node in graphs},
            self._file(result[0]) if result and kind is Kind.EVALUATION else None,
            bool(self._all(entry, f"{_MF}resultCardinality")),
        )

    def _file(self, node: object) -> Path:
        return self._folder / str(node)[1:-1].removeprefix(_SITE)

    def _all(self, subject: object, predicate: str) -> list[object]:
        quads = self._store.quads_for_pattern(subject, ox.NamedNode(predicate), None)  # type: ignore[arg-type]
        return sorted((quad.object for quad in quads), key=str)
