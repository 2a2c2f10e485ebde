"""A tenth of the W3C's suites, in their shape and of our own making, drawn from a seed.

The simple evaluator of ``tests/sparql/simple`` gives the results, by another reading of the specification than the
evaluators under test; the queries of ``tests/sparql/test_rdf12`` have theirs by hand.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Final

from streamgauge.formats.results import results
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.text import tokens
from tests.sparql import test_rdf12
from tests.sparql.simple.agreement import legal_answers
from tests.sparql.simple.choices import OpenError
from tests.sparql.simple.drawn import Case, drawn
from tests.sparql.simple.patterns import Dataset
from tests.sparql.simple.written import rows

EVALUATIONS: Final = 58
SYNTAX: Final = 25
"""Drawn evaluation tests, and drawn texts that are accepted, and as many that are refused: a tenth of the W3C's."""
_HEAD: Final = """\
@prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
@prefix qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#> .
@prefix : <manifest#> .
<> a mf:Manifest ; mf:entries ({entries}) .
"""


def write_suite(folder: Path, seed: int) -> None:
    """Write the suites ``sparql11`` and ``sparql12`` into a folder."""
    _write_evaluation(folder / "sparql11" / "drawn", list(islice(_drawn_cases(seed), EVALUATIONS)))
    by_hand = [
        (Case(parse_sparql(test_rdf12.PREFIXES + text), Dataset(test_rdf12.DATA, {})), rows(expected))
        for text, expected in test_rdf12.CASES
    ]
    _write_evaluation(folder / "sparql12" / "triple-terms", by_hand)
    texts = list(islice((sparql(case.form) for case, _ in _drawn_cases(seed + 10_000)), SYNTAX))
    _write_syntax(folder / "sparql11" / "accepted", "PositiveSyntaxTest11", texts)
    broken = [_broken(Random(f"{seed} {number}"), text) for number, text in enumerate(texts)]
    _write_syntax(folder / "sparql11" / "refused", "NegativeSyntaxTest11", broken)


def _drawn_cases(seed: int) -> Iterator[tuple[Case, tuple[Row, ...]]]:
    """Drawn cases with one legal answer, and that answer."""
    for number in count(seed):
        case = drawn(Random(number), tame=True)
        try:
            legal = legal_answers(case)
        except OpenError:
            continue
        if len(legal) == 1 and not isinstance(case.form, al.Construct):
            yield case, tuple(legal[0].rows)


def _broken(random: Random, text: str) -> str:
    """A text that is not a query any more: without one of its brackets, or with one too many."""
    brackets = [token for token in tokens(text) if token.text in ("{", "}", "(", ")")]
    token = random.choice(brackets)
    instead = "" if random.random() < 0.5 else token.text * 2
    return text[: token.start] + instead + text[token.end :]


def _write_syntax(folder: Path, kind: str, texts: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / f"{number}.rq").write_text(text, encoding="utf-8")
    entries = [f":t{number} a mf:{kind} ; mf:action <{number}.rq> ." for number in range(len(texts))]
    _write_manifest(folder, entries)


def _write_evaluation(folder: Path, cases: Sequence[tuple[Case, tuple[Row, ...]]]) -> None:
    folder.mkdir(parents=True)
    entries = []
    for number, (case, expected) in enumerate(cases):
        (folder / f"{number}.rq").write_text(sparql(case.form), encoding="utf-8")
        (folder / f"{number}.nq").write_text("".join(lines(case.dataset)), encoding="utf-8")
        (folder / f"{number}.srj").write_text(json.dumps(_results(case.form, expected)), encoding="utf-8")
        action = f"[ qt:query <{number}.rq> ; qt:data <{number}.nq> ]"
        entries.append(f":t{number} a mf:QueryEvaluationTest ; mf:action {action} ; mf:result <{number}.srj> .")
    _write_manifest(folder, entries)


def _write_manifest(folder: Path, entries: Sequence[str]) -> None:
    head = _HEAD.format(entries=" ".join(entry.split()[0] for entry in entries))
    (folder / "manifest.ttl").write_text(head + "\n".join(entries), encoding="utf-8")


def lines(dataset: Dataset) -> Iterator[str]:
    """The graphs as lines of N-Quads."""
    for name, triples in (("", dataset.default), *dataset.named.items()):
        yield from (f"{' '.join(triple)} {name} .\n" for triple in triples)


def _results(form: al.QueryForm, expected: Sequence[Row]) -> object:
    if isinstance(form, al.Ask):
        return {"head": {}, "boolean": str(expected[0][0]).startswith('"true"')}
    assert isinstance(form, al.Select)
    return results(form.variables, expected)
