"""ORDER BY with LIMIT and OFFSET under changes: after each step what evaluating again gives."""

import cProfile
from collections import Counter
from dataclasses import dataclass
from functools import cmp_to_key
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.incremental.query_forms import Ranking, apart, wanted
from streamgauge.incremental.slices import PartedRanking
from streamgauge.query import parse_sparql
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.comparison import ordered
from tests.examples import examples, proving
from tests.incremental.evaluation import Evaluator

STEPS = 220 if proving() else 80
XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = [f'"{text}"^^<{XSD}{kind}>' for text, kind in [
    ("1", "integer"), ("01", "integer"), ("2", "integer"), ("-3", "integer"), ("1.5", "decimal"), ("1e0", "double"),
    ("12", "integer"), ("2.50", "decimal"), ("INF", "double"),
]]  # fmt: skip
TEXTS = ['"a"', '"b"', '"B"', '"10"', '"ä"', '""', "<urn:x>", "<urn:y>"]
SUBJECTS = [f"<urn:s{number}>" for number in range(6)]


@dataclass(frozen=True)
class Ranked:
    """A query in parts: what is kept, with all columns, of which ``width`` are shown; keys by column."""

    columns: tuple[str, ...]
    width: int
    body: str
    order: str
    keys: tuple[tuple[int, bool], ...]
    distinct: bool = False

    def text(self, offset, limit):
        shown = " ".join(self.columns[: self.width])
        cut = "" if limit is None else f" LIMIT {limit}"
        return f"SELECT {'DISTINCT ' * self.distinct}{shown} {self.body} {self.order}{cut} OFFSET {offset}"

    def defined(self, triples):
        """All solutions again, sorted by 15.1, ties by the terms' texts."""
        form = parse_sparql(f"SELECT {' '.join(self.columns)} {self.body}")
        rows = sorted(answer(form, Dataset(IndexedGraph(triples))), key=lambda row: tuple(cell or "" for cell in row))
        rows.sort(key=cmp_to_key(self._compared))
        shown = [row[: self.width] for row in rows]
        if self.distinct:
            shown = list(dict.fromkeys(shown))
        return shown

    def _compared(self, left, right):
        for at, down in self.keys:
            step = ordered(left[at], right[at])
            assert step is not None, (left[at], right[at])
            if step:
                return -step if down else step
        return 0


PAIR = "{ ?s <urn:p> ?v }"
QUERIES = [
    Ranked(("?s", "?v"), 2, PAIR, "ORDER BY ?v", ((1, False),)),
    Ranked(("?s", "?v"), 2, PAIR, "ORDER BY DESC(?v) ?s", ((1, True), (0, False))),
    Ranked(("?s", "?v"), 1, PAIR, "ORDER BY ?v", ((1, False),)),
    Ranked(("?s", "?v"), 1, PAIR, "ORDER BY DESC(?v)", ((1, True),), True),
    Ranked(("?s",), 1, PAIR, "", ()),
    Ranked(("?s",), 1, PAIR, "", (), True),
    Ranked(("?s", "?v", "?w"), 3, "{ ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w } }", "ORDER BY DESC(?w) ?v",
           ((2, True), (1, False))),
    Ranked(("?s", "(COUNT(*) AS ?n)"), 2, f"{PAIR} GROUP BY ?s", "ORDER BY DESC(?n)", ((1, True),)),
    Ranked(("?s", "(SUM(?v) AS ?n)"), 2, f"{PAIR} GROUP BY ?s HAVING (COUNT(*) > 1)", "ORDER BY ?n", ((1, False),)),
    Ranked(("?s", "?t"), 2, "{ ?s <urn:p> ?v . ?t <urn:q> ?v }", "ORDER BY ?t DESC(?s)", ((1, False), (0, True))),
    Ranked(("?s", "(-?v AS ?m)"), 2, PAIR, "ORDER BY ?m", ((1, False),)),
]  # fmt: skip


def steps(random, terms, count):
    """Publications, each of a few triples, half of them deletions once there is something."""
    contents = set()
    for _ in range(count):
        drawn = {
            (random.choice(SUBJECTS), random.choice(("<urn:p>", "<urn:q>")), random.choice(terms))
            for _ in range(random.randint(1, 3))
        }
        gone = set(random.sample(sorted(contents), min(len(contents), random.choice((0, 1, 1, 2, 4)))))
        contents = contents - gone | drawn
        yield drawn, gone, contents


@pytest.mark.parametrize("number", range(len(QUERIES)))
@pytest.mark.parametrize("terms", [NUMBERS, TEXTS], ids=["numbers", "texts"])
def test_the_window_is_what_evaluating_again_gives(number, terms):
    random, query = Random(number), QUERIES[number]
    if terms is TEXTS and ("SUM" in query.columns[-1] or "-?v" in query.columns[-1]):
        terms = NUMBERS[:4]
    asked = [(0, 3), (1, 2), (3, None), *([(0, 1), (0, 0), (2, 4), (40, 5)] if number < 3 else [])]
    landmark = Landmark()
    standing = {cut: landmark.ask(parse_sparql(query.text(*cut))) for cut in asked}
    shown = {cut: set() for cut in asked}
    for came, gone, held in steps(random, terms, STEPS):
        for changed, (added, removed) in landmark.change(came, gone):
            cut = next(cut for cut, item in standing.items() if item is changed)
            assert not shown[cut].intersection(added)
            assert shown[cut].issuperset(removed)
            shown[cut] = (shown[cut] | set(added)) - set(removed)
        defined = query.defined(held)
        for cut, rows in shown.items():
            assert rows == set(defined[cut[0] :][: cut[1]]), (query.text(*cut), held)
            assert rows == {row for row, count in standing[cut].kept.solutions().items() if count}


@pytest.mark.parametrize("text", [QUERIES[at].text(1, 3) for at in range(4)])
def test_terms_that_sparql_does_not_order_stand_the_same_in_any_order_of_coming(text):
    typed = [("NaN", "double"), ("2020-01-01T00:00:00", "dateTime"), ("2020-01-01T05:00:00Z", "dateTime"),
             ("true", "boolean"), ("P1M", "duration"), ("P30D", "duration"), ("300", "byte")]  # fmt: skip
    other = ['"a"@en', "_:b1", "_:b2", '"x"^^<urn:own>', *(f'"{text}"^^<{XSD}{kind}>' for text, kind in typed)]
    mixed = [*NUMBERS, *TEXTS, *other]
    triples = [(subject, "<urn:p>", term) for subject in SUBJECTS[:2] for term in mixed]
    results = set()
    for seed in range(12):
        landmark, random = Landmark(), Random(seed)
        standing = landmark.ask(parse_sparql(text))
        random.shuffle(triples)
        spare = [(f"<urn:spare{at}>", "<urn:p>", random.choice(mixed)) for at in range(20)]
        for triple in [*triples, *spare]:
            list(landmark.change([triple], ()))
        for triple in spare:
            list(landmark.change((), [triple]))
        results.add(frozenset(standing.kept.solutions()))
    assert len(results) == 1


def test_one_row_moves_one_row_over_each_end():
    text = "SELECT ?o { ?s <urn:p> ?o } ORDER BY ?o LIMIT 2 OFFSET 1"
    landmark = Landmark()
    landmark.load([("<urn:s>", "<urn:p>", f'"{name}"') for name in "acde"])
    standing = landmark.ask(parse_sparql(text))
    b, a = ("<urn:s>", "<urn:p>", '"b"'), ("<urn:s>", "<urn:p>", '"a"')
    assert set(standing.kept.solutions()) == {('"c"',), ('"d"',)}
    assert [item for _, item in landmark.change([b], ())] == [((('"b"',),), (('"d"',),))]
    assert [item for _, item in landmark.change((), [a])] == [((('"d"',),), (('"b"',),))]


def test_nothing_is_held_when_everything_has_gone():
    kept, cut = apart(parse_sparql(QUERIES[3].text(0, 2)))
    ranking = Ranking(cut, wanted(kept), 1, EvaluationBudget())
    ranking.change({("<urn:a>", '"1"'): 2, ("<urn:a>", '"2"'): 1})
    assert ranking.held == 4
    assert ranking.change({("<urn:a>", '"1"'): -2, ("<urn:a>", '"2"'): -1}) == {("<urn:a>",): -1}
    assert ranking.held == 0


FAR_BEHIND = {
    "?v": lambda row: (row[1], row),
    "DESC(?v)": lambda row: (-int(row[1][1]), row),
    "?v DESC(?s)": lambda row: (row[1], -int(row[0][5:8])),
    "DESC(?s) ?v": lambda row: -int(row[0][5:8]),
}


@pytest.mark.parametrize("order", FAR_BEHIND)
def test_rows_far_behind_the_range_move_into_it_in_order(order):
    """Hundreds of rows of few and of many first keys, several times each, go and come back in a drawn order."""
    kept, cut = apart(parse_sparql(f"SELECT ?s ?v {{ ?s <urn:p> ?v }} ORDER BY {order} OFFSET 2 LIMIT 5"))
    random, ranking, shown = Random(order), Ranking(cut, wanted(kept), 2, EvaluationBudget()), Counter()
    rows = {(f"<urn:{at:03}>", f'"{at % 7}"'): 1 + at % 3 for at in range(300)}
    delta = dict(rows)
    for _ in range(30):
        shown.update(ranking.change(delta))
        there = sorted(rows, key=FAR_BEHIND[order])
        assert +shown == Counter([row for row in there for _ in range(rows[row])][2:7])
        assert min(shown.values()) >= 0
        gone = random.sample(there, 30) if random.random() < 0.5 else there[:30]
        back = random.sample([f"{at:03}" for at in range(300)], 30)
        after = {row: count for row, count in rows.items() if row not in gone}
        for row in ((f"<urn:{text}>", f'"{int(text) % 7}"') for text in back):
            after[row] = after.get(row, 0) + 1
        delta = {row: after.get(row, 0) - rows.get(row, 0) for row in {**rows, **after}}
        delta, rows = {row: count for row, count in delta.items() if count}, after
    shown.update(ranking.change(delta))
    shown.update(ranking.change({row: -count for row, count in rows.items()}))
    assert (+shown, ranking.held) == (Counter(), 0)


def test_the_cost_of_a_change_is_not_that_of_the_window():
    kept, cut = apart(parse_sparql("SELECT ?v { ?s <urn:p> ?v } ORDER BY ?v LIMIT 20000 OFFSET 20000"))
    effort = EvaluationBudget(50_000)
    ranking = Ranking(cut, wanted(kept), 1, effort)
    rows = {(f'"{at:05}"',): 1 for at in range(50_000)}
    assert len(ranking.change(rows)) == 20_000
    effort.renew()
    assert ranking.change({('"00000a"',): 1}) == {('"19999"',): 1, ('"39999"',): -1}
    assert effort.left == 49_999


SUBQUERIES = [
    "SELECT * { { SELECT ?s ?v { ?s <urn:v> ?v } ORDER BY DESC(?v) ?s LIMIT 2 } ?s <urn:w> ?w }",
    "SELECT ?n { { SELECT ?s (COUNT(?w) AS ?n) { ?s <urn:w> ?w } GROUP BY ?s ORDER BY DESC(?n) ?s OFFSET 1 LIMIT 1 } }",
    "SELECT ?s { ?s <urn:v> ?v MINUS { SELECT DISTINCT ?s { ?s <urn:w> ?w } ORDER BY ?s LIMIT 1 } }",
    "SELECT ?s ?t { ?s <urn:v> ?v OPTIONAL { SELECT ?s ?t { ?s <urn:w> ?t } ORDER BY ?s ?t LIMIT 3 } }",
]
_NODES = [f"<urn:{name}>" for name in "abc"]
_FACT = st.tuples(st.sampled_from(_NODES), st.sampled_from(["<urn:v>", "<urn:w>"]), st.sampled_from(_NODES))


@pytest.mark.slow
@pytest.mark.parametrize("text", SUBQUERIES)
def test_a_cut_subquery_joined_with_more(text):
    """After each step the rows are those of the definition over what is there."""

    @examples(25, prove=1000)
    @given(st.lists(st.lists(_FACT, max_size=4), min_size=1, max_size=6))
    def check(steps):
        form = parse_sparql(text)
        evaluator, held = Evaluator(form, ranked=True), set()
        for step in steps:
            come, go = set(step) - held, set(step) & held
            evaluator.enter(tuple(come))
            evaluator.leave(tuple(go))
            evaluator.settle()
            held = (held | come) - go
            expected = answer(form, Dataset(IndexedGraph(tuple(held)), {}))
            assert Counter(evaluator.solutions()) == Counter(expected)

    check()


PASSED_VALUES = [
    ("EXISTS", "SELECT ?s ?x { ?s ?q ?x } ORDER BY ?x OFFSET 1 LIMIT 1", ""),
    ("NOT EXISTS", "SELECT ?o ?x { ?x ?q ?o } ORDER BY DESC(?x) LIMIT 1", "FILTER(?x = ?s)"),
    ("EXISTS", "SELECT ?x { ?x ?q ?s } ORDER BY ?s ?x LIMIT 2", "FILTER(?x = ?o)"),
    ("EXISTS", "SELECT DISTINCT ?s ?q { ?s ?q ?x } ORDER BY ?x ?q LIMIT 1", "FILTER(?q != ?p)"),
    ("EXISTS", "SELECT ?y ?x { ?y ?q ?x } ORDER BY ?x ?y LIMIT 1", "FILTER(?x != ?o)"),
    ("EXISTS", "SELECT ?s (COUNT(*) AS ?n) { ?s ?q ?x } GROUP BY ?s LIMIT 1", "FILTER(?n > 1)"),
]


@examples(6, prove=300)
@given(st.lists(st.tuples(*[st.sampled_from("abcd")] * 3), max_size=9, unique=True), st.data())
@pytest.mark.parametrize(("exists", "subquery", "test"), PASSED_VALUES)
def test_a_limit_in_exists_is_that_of_each_outer_solution(exists, subquery, test, given_, data):
    """While triples come and go, the rows are those of the definition: the outer values are put in before the cut."""
    form = parse_sparql(
        f"SELECT * {{ ?s ?p ?o OPTIONAL {{ ?o ?r ?y }} FILTER {exists} {{ {{ {subquery} }} {test} }} }}"
    )
    evaluator, held = Evaluator(form, ranked=True), []
    for triple in (tuple(f"<urn:{name}>" for name in names) for names in given_):
        evaluator.enter((triple,))
        held.append(triple)
        if data.draw(st.booleans()):
            evaluator.leave((held.pop(0),))
        evaluator.settle()
        rows = Counter(evaluator.solutions())
        assert rows == Counter(answer(form, Dataset(IndexedGraph(held)))), held


@pytest.mark.parametrize("distinct", ["", "DISTINCT"])
def test_a_change_costs_the_same_however_many_rows_one_outer_value_has(distinct):
    """Calls of functions are counted, not seconds: 100 rows behind the range, and a hundred times as many."""
    _, cut = apart(parse_sparql(f"SELECT {distinct} ?s ?x {{ ?s ?q ?x }} ORDER BY ?x LIMIT 1"))

    def calls(rows):
        ranking = PartedRanking(cut, ("s", "x"), 2, EvaluationBudget())
        ranking.change({("<urn:a>", f'"{number:05}"'): 1 for number in range(rows)})
        with cProfile.Profile() as profile:
            ranking.change({("<urn:a>", '"x"'): 1})
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(10_000) < 2 * calls(100)
