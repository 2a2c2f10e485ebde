"""Draws: xxHash64 as it is published and as Spark chains it, whatever the kinds and lengths of what is hashed."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.workloads import draws
from streamgauge.workloads.parameters import ParameterError

SEEDS = (0, -1, 7, (1 << 31) - 1, -(1 << 31), 1 << 31, -(1 << 63), (1 << 63) - 1)
PURPOSES = ("", "a", "place", "user latitude", "x" * 31, "x" * 32, "né" * 40)
LONGS = np.array([0, 1, -1, 1 << 40, -(1 << 63), (1 << 63) - 1], np.int64)
INTS = np.array([0, 1, -1, 77, -(1 << 31), (1 << 31) - 1], np.int32)
TEXTS = ["", "<urn:a>", "é", "four", "eight by", "y" * 35, "z" * 64, '"a literal of some length"@en', "a" * 47, "bb"]


def test_the_draws_are_those_of_spark(spark):
    rows = spark.createDataFrame(pa.table({"long": LONGS, "int": INTS}))
    said = spark.createDataFrame(pa.table({"text": TEXTS}))
    keys = [(seed, purpose) for seed in SEEDS for purpose in PURPOSES]
    ours = [draws.bits(seed, purpose, LONGS, INTS, 5, 1 << 33) for seed, purpose in keys]
    theirs = rows.select(
        *(
            F.shiftrightunsigned(F.xxhash64(F.lit(s), F.lit(p), "long", "int", F.lit(5), F.lit(1 << 33)), 11).alias(
                f"c{n}"
            )
            for n, (s, p) in enumerate(keys)
        )
    ).toArrow()
    assert [column.tolist() for column in ours] == [column.to_pylist() for column in theirs.columns]
    texts = said.select(
        F.shiftrightunsigned(F.xxhash64(F.lit(3), F.lit("of text"), "text"), 11).alias("bits")
    ).toArrow()
    assert draws.text_bits(3, "of text", TEXTS).tolist() == texts.column("bits").to_pylist()


def test_a_row_s_draw_does_not_depend_on_the_others():
    alone = [int(draws.bits(9, "one", row[np.newaxis])[0]) for row in LONGS]
    assert alone == draws.bits(9, "one", LONGS).tolist()
    assert [int(draws.text_bits(9, "one", [text])[0]) for text in TEXTS] == draws.text_bits(9, "one", TEXTS).tolist()
    assert draws.text_bits(9, "one", []).tolist() == []


@given(st.integers(-(2**63), 2**63 - 1), st.text(max_size=40), st.integers(1, 1000))
def test_draws_are_within_their_bounds(seed, purpose, bound):
    rows = np.arange(40)
    assert 0 <= draws.below(bound, seed, purpose, rows).min() <= draws.below(bound, seed, purpose, rows).max() < bound
    assert 0.0 <= draws.unit(seed, purpose, rows).min() <= draws.unit(seed, purpose, rows).max() < 1.0
    assert 0 <= draws.poisson(seed, purpose, rows).min() <= draws.poisson(seed, purpose, rows).max() <= 18
    assert np.abs(draws.normal(seed, purpose, rows)).max() < 6.0


def test_draws_have_their_means():
    rows = np.arange(100_000)
    assert draws.unit(1, "mean", rows).mean() == pytest.approx(0.5, abs=0.01)
    assert draws.poisson(1, "mean", rows).mean() == pytest.approx(1.0, abs=0.02)
    assert draws.normal(1, "mean", rows).std() == pytest.approx(1.0, abs=0.02)


def test_a_seed_beyond_64_bits_is_refused():
    with pytest.raises(ParameterError, match=r"the seed is 9223372036854775808: it must be a signed 64-bit integer"):
        draws.bits(1 << 63, "any")
