"""How resources are dealt to queries, and in which order they are published, deleted and published again."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.suites.sepbm.selection import arranged, dealt, deletions, distinct_resources, publications

OFFERS = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), unique=True), min_size=1)


@pytest.mark.parametrize(
    ("offered", "most", "result"),
    [
        ({"a": "xyz", "b": "uvw"}, 4, {"a": "xy", "b": "uv"}),
        ({"a": "xyz", "b": "uvw"}, 3, {"a": "xy", "b": "u"}),
        ({"a": "xyzt", "b": "u"}, 4, {"a": "xyz", "b": "u"}),
        ({"a": "xy", "b": "xyz"}, 9, {"a": "x", "b": "yz"}),
        ({"a": "", "b": "x"}, 9, {"a": "", "b": "x"}),
    ],
)
def test_all_get_as_many_unless_some_have_too_few(offered, most, result):
    assert dealt(offered, most) == {name: list(items) for name, items in result.items()}


@given(OFFERS, st.integers(0, 30))
def test_nothing_is_dealt_twice_and_nobody_waits_for_more(offered, most):
    result = dealt(offered, most)
    taken = [item for items in result.values() for item in items]
    every = {item for items in offered.values() for item in items}
    assert len(taken) == len(set(taken)) == min(most, len(every))
    for name, items in result.items():
        if any(len(other) > len(items) + 1 for other in result.values()):
            assert set(offered[name]) <= set(taken)


@example(34, 40, 0)
@given(st.integers(1, 60), st.integers(0, 40), st.integers())
def test_a_share_is_deleted_after_it_was_published_and_half_of_it_published_again(count, percent, seed):
    share = percent / 100
    resources = [f"<urn:{n}>" for n in range(distinct_resources(count, share))]
    turns = list(arranged(reversed(resources), count, share, seed))
    assert turns == list(arranged(resources, count, share, seed))
    assert len(turns) == count
    signs = {name: [sign for term, sign in turns if term == name] for name in resources}
    kinds = Counter(map(tuple, signs.values()))
    assert set(kinds) <= {(1,), (1, -1), (1, -1, 1)}
    deleted = deletions(count, share)
    assert round(count * share) - 1 <= deleted <= round(count * share)
    assert (kinds[1, -1], kinds[1, -1, 1]) == (deleted - deleted // 2, deleted // 2)


def test_the_order_is_drawn():
    resources = [f"<urn:{n}>" for n in range(50)]
    orders = {tuple(term for term, _ in arranged(resources, 50, 0, seed)) for seed in range(3)}
    assert len(orders) == 3
    assert tuple(sorted(resources)) not in orders


def test_descriptions_come_and_go():
    said = {"<urn:a>": (("<urn:a>", "<urn:p>", '"1"'),)}
    one, two = publications([("<urn:a>", 1), ("<urn:a>", -1)], said)
    assert (one.number, one.added, one.removed) == (1, said["<urn:a>"], ())
    assert (two.number, two.added, two.removed) == (2, (), said["<urn:a>"])
