"""Keys with values in memory: a dictionary of bytes that holds the text of a term once."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.servers.fragments.store import NAMED, TEXT
from streamgauge.servers.fragments.store.memory import MemoryKeyValues
from streamgauge.servers.fragments.store.quad_keys import WIDTH, MetHashes

numbers = st.integers(0, 6).map(lambda number: number.to_bytes(WIDTH))
texts = st.sampled_from([b"<a>", b"<b>", b'"c"'])
keys = numbers.map(TEXT.__add__) | texts.map(NAMED.__add__) | st.sampled_from([b"n#digest", b"0block", b"m:terms"])
writes = st.dictionaries(keys, st.none() | numbers | texts, max_size=6)


@given(st.lists(st.one_of(writes, st.tuples(st.integers(0, 7), st.integers(1, 4), st.booleans())), max_size=8))
def test_records_are_those_of_a_dictionary(steps: list[dict[bytes, bytes | None] | tuple[int, int, bool]]) -> None:
    """Whatever is written, also what no dictionary of terms would write; runs of terms are filled in between."""
    records, plain = MemoryKeyValues(), dict[bytes, bytes]()
    for step in steps:
        if isinstance(step, dict):
            records.commit(step)
            records.show()
            plain |= {key: value for key, value in step.items() if value is not None}
            for key in [key for key, value in step.items() if value is None]:
                plain.pop(key, None)
        else:
            first, many, digested = step
            terms = [(number.to_bytes(WIDTH), b"<of %d>" % number) for number in range(first, first + many)]
            named = sorted((b"n#" + text if digested else NAMED + text, number) for number, text in terms)
            runs = list(zip(*named, strict=True)), list(zip(*[(TEXT + n, text) for n, text in terms], strict=True))
            if all(key not in plain for key, _ in named) and all(TEXT + n not in plain for n, _ in terms):
                records.fill(*[(list(run), list(values)) for run, values in runs])
                plain |= {**dict(named), **{TEXT + number: text for number, text in terms}}
        for prefix in (b"t", b"n", b"n=", b"0", b"m"):
            assert dict(records.sizes(prefix)) == {k: len(v) for k, v in plain.items() if k.startswith(prefix)}
        assert {key: records.get(key) for key in plain} == plain
    absent = {TEXT + bytes(WIDTH), NAMED + b"<a>", NAMED + b"<of 0>", b"0block"} - plain.keys()
    assert [records.get(key) for key in absent] == [None] * len(absent)


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
        assert all(found for code, found in zip(part, again, strict=True) if code in added)
        added.update(part)


def test_few_hashes_seem_met_that_were_not() -> None:
    drawn = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 20_000)
    met = MetHashes()
    assert not met.add(drawn[:10_000]).any()
    assert met.add(drawn[10_000:]).sum() < 20
    assert met.add(drawn).all()
