"""Differences are right exactly when some history of legal answers gives them all, by brute force."""

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S
from streamgauge.model.terms import Row, Triple
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import CAME, WENT, difference
from streamgauge.semantics.profiles import RSPQL
from tests.examples import examples
from tests.notation import STREAM
from tests.oracle.worlds.brute_force import TooManyError, Worlds
from tests.oracle.worlds.test_worlds import PREFIX, literal

QUERIES = [
    "SELECT ?s (SAMPLE(?o) AS ?c) { ?s :v ?o } GROUP BY ?s",
    "SELECT ?s (GROUP_CONCAT(?o) AS ?c) { ?s :v ?o } GROUP BY ?s",
    "SELECT (SAMPLE(?o) AS ?c) { ?s :v ?o }",
    "SELECT (GROUP_CONCAT(?o) AS ?c) { ?s :v ?o }",
    "SELECT ?s (MIN(?o) AS ?c) { ?s :v ?o } GROUP BY ?s",
    "SELECT REDUCED ?o { ?s :v ?o }",
    "SELECT ?s { ?s :v ?o } LIMIT 1",
    "SELECT ?o { { SELECT (SAMPLE(?x) AS ?o) { ?s :v ?x } } ?t :v ?o }",
    "SELECT ?s ?c { ?s :v ?o { SELECT ?s (GROUP_CONCAT(?x) AS ?c) { ?s :v ?x } GROUP BY ?s } }",
    "SELECT ?s (GROUP_CONCAT(?o) AS ?c) { ?s :v ?o } GROUP BY ?s HAVING(GROUP_CONCAT(?o) != 'a b')",
]
OBJECTS = ['"a"', '"b"', '"a b"', literal(1, "integer")]
MAX_HISTORIES = 20_000
TRIPLES = [(subject, "<urn:v>", term) for subject in ("<urn:s>", "<urn:t>") for term in OBJECTS]


def contents(random: Random) -> list[tuple[Triple, ...]]:
    """Three contents, each like the one before or a little different."""
    results = [random.sample(TRIPLES, random.randint(1, 4))]
    for _ in range(2):
        after = list(results[-1])
        if random.random() < 0.3:
            after.remove(random.choice(after))
        if not after or random.random() < 0.4:
            after = list(dict.fromkeys([*after, random.choice(TRIPLES)]))
        results.append(after)
    return [tuple(triples) for triples in results]


def sent(r2s: R2S, history: tuple[Counter[Row], ...]) -> list[Counter[Row]]:
    return [Counter(difference(r2s, *pair)) for pair in zip((Counter[Row](), *history[:-1]), history, strict=True)]


def answer(variables: tuple[str, ...], instant: int, rows: Counter[Row], r2s: R2S) -> Answer:
    if r2s is not R2S.CHANGES:
        return Answer(variables, tuple(rows.elements()), instant=instant)
    came, went = (tuple(row[:-1] for row in rows.elements() if row[-1] == sign) for sign in (CAME, WENT))
    return Answer(variables, came, went, instant=instant)


@examples(150, 3000)
@given(st.integers(0, 10**9))
def test_differences_are_right_when_some_history_gives_them(seed: int) -> None:
    random = Random(seed)
    text, windows = random.choice(QUERIES), contents(random)
    r2s = random.choice([R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES])
    form = parse_sparql(PREFIX + text)
    try:
        possible = [Worlds(form, window, []).bags(500) for window in windows]
        worlds = [list(dict.fromkeys(tuple(sorted(bag.items(), key=repr)) for bag in bags)) for bags in possible]
    except TooManyError:
        return
    bags = [[Counter(dict(bag)) for bag in world] for world in worlds]
    if len(bags[0]) * len(bags[1]) * len(bags[2]) > MAX_HISTORIES:
        return
    legal = [sent(r2s, history) for history in product(*bags)]
    received = list(random.choice(legal))
    if random.random() < 0.6:
        at = random.randrange(3)
        received[at] = random.choice([random.choice(legal)[at], Counter(), +(received[at] - random.choice(legal)[at])])
    semantics = replace(RSPQL, r2s=r2s, r2s_able=frozenset(R2S), notify_empty=random.random() < 0.5)
    query = ContinuousQuery(form, (StreamWindow(STREAM, Window(5, 5)),))
    elements = tuple(StreamElement(STREAM, 5 * place, place, window) for place, window in enumerate(windows))
    answers = tuple(
        answer(form.variables, 5 * place + 5, rows, r2s)
        for place, rows in enumerate(received)
        if rows or semantics.notify_empty
    )
    run = Run(RunHeader("e", query, text, "rspql", semantics, advanced_to=15, started=0), answers, ())
    verdict = check(run, definition(elements), 0, JudgingRules())
    wanted = Judgement.RIGHT if received in legal else Judgement.WRONG
    assert verdict.judgement is wanted, (seed, text, windows, r2s, received, verdict.reason)
