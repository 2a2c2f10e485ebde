"""Keys with values in memory: a dictionary of bytes that holds the text of a term once."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.servers.fragments.store import NAMED, TEXT
from streamgauge.servers.fragments.store.memory import MemoryKeyValues
from streamgauge.servers.fragments.store.quad_keys import WIDTH, MetHashes

others = st.dictionaries(st.sampled_from([b"n#digest", b"0block", b"m:terms"]), st.none() | st.just(b"x"), max_size=3)
steps = st.tuples(st.sampled_from(["write", "fill", "digests"]), st.integers(0, 4), st.sets(st.integers(0, 9)), others)


@given(st.lists(steps, max_size=8))
def test_records_are_those_of_a_dictionary(
    steps: list[tuple[str, int, set[int], dict[bytes, bytes | None]]],
) -> None:
    """Terms get consecutive numbers, by changes and by runs of a load, and some of them go again."""
    records, plain, last = MemoryKeyValues(), dict[bytes, bytes](), 0
    for how, many, gone, writes in steps:
        terms = [(number.to_bytes(WIDTH), b"<of %d>" % number) for number in range(last, last + many)]
        last += many
        start = b"n#" if how == "digests" else NAMED
        texts, named = {TEXT + n: text for n, text in terms}, {start + text: n for n, text in sorted(terms)}
        dropped = {TEXT + number.to_bytes(WIDTH): None for number in gone if number < last - many}
        dropped |= {NAMED + plain[key]: None for key in dropped if key in plain}
        if how == "write":
            records.commit({**texts, **named, **writes, **dropped})
        else:
            records.fill(*[(list(run), list(run.values())) for run in (named, texts) if run])
            records.commit({**writes, **dropped})
        records.show()
        changed: dict[bytes, bytes | None] = {**texts, **named, **writes, **dropped}
        plain = {key: value for key, value in {**plain, **changed}.items() if value is not None}
        for prefix in (b"0", b"m"):
            assert dict(records.sizes(prefix)) == {k: len(v) for k, v in plain.items() if k.startswith(prefix)}
        assert {key: records.get(key) for key in plain} == plain
        known = {key for n in range(last + 1) for key in (TEXT + n.to_bytes(WIDTH), NAMED + b"<of %d>" % n)}
        assert [key for key in {*known, b"0block"} - plain.keys() if records.get(key) is not None] == []


def test_a_text_is_held_once() -> None:
    """Of terms that are loaded and of those that come later."""
    terms = [(number.to_bytes(WIDTH), b"<%0300d>" % number) for number in range(2_000)]
    records = MemoryKeyValues()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number, _ in terms[1_000:]:
        text = b"<%0300d>" % int.from_bytes(number)
        records.commit({TEXT + number: text, NAMED + text: number})
    loaded = [(number, b"<%0300d>" % int.from_bytes(number)) for number, _ in terms[:1_000]]
    records.fill(
        ([NAMED + text for _, text in loaded], [n for n, _ in loaded]),
        *[([TEXT + n for n, _ in loaded], [text for _, text in loaded])],
    )
    del loaded, text, number
    records.show()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert all(records.get(TEXT + number) == text and records.get(NAMED + text) == number for number, text in terms)
    assert held < 1.7 * sum(len(text) for _, text in terms)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), max_size=5))
def test_no_hash_that_was_met_is_taken_for_a_new_one(parts: list[list[int]]) -> None:
    met, added = MetHashes(), set[int]()
    for part in parts:
        again = met.add(np.array(part, dtype=np.int64)).tolist()
        assert all(result for code, result in zip(part, again, strict=True) if code in added)
        added.update(part)


def test_few_hashes_seem_met_that_were_not() -> None:
    drawn = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 20_000)
    met = MetHashes()
    assert not met.add(drawn[:10_000]).any()
    assert met.add(drawn[10_000:]).sum() < 20
    assert met.add(drawn).all()
