"""What survives a batch: written whole, read back equal, begun again from the batch before."""

import pytest

from streamgauge.engines.spark.state import Pane, State, StateLog, forget
from streamgauge.model.report import DueReport, View

KNOWN = State(
    batch=4,
    t0=0,
    greatest=9000,
    passed=8000,
    last=DueReport(8000, (View(3000, 8000, 3000, 7999, 1 << 62),)),
    sent=3,
    rows=70,
    late=1,
    next=12,
    panes=(Pane(3, 2000, 6000, ("a.parquet",), (3, 4)), Pane(4, 6000, 9000, ("b.parquet", "c.parquet"))),
)


def test_what_is_kept_is_read_back(tmp_path):
    log = StateLog(tmp_path)
    log.commit(KNOWN)
    assert log.before(5) == log.latest() == KNOWN


def test_a_batch_that_is_done_again_begins_from_the_one_before(tmp_path):
    log = StateLog(tmp_path)
    log.commit(State(batch=3, sent=2))
    log.commit(KNOWN)
    assert log.before(4).sent == 2


def test_after_a_drain_the_next_batch_begins_from_it(tmp_path):
    log = StateLog(tmp_path)
    log.commit(KNOWN)
    log.commit(State(batch=4, sent=5), "-drained")
    assert log.before(5).sent == log.latest().sent == 5


def test_a_record_that_was_cut_off_is_not_looked_at(tmp_path):
    log = StateLog(tmp_path)
    log.commit(KNOWN)
    (tmp_path / ".000005.json").write_text('{"batch": 5, "t')
    assert log.latest() == KNOWN


def test_a_damaged_checkpoint_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="the checkpoint is damaged"):
        StateLog(tmp_path).before(3)


def test_panes_that_are_over_are_forgotten():
    assert [pane.batch for pane in forget(KNOWN, 6001).panes] == [4]


def test_numbers_of_batches_may_outgrow_their_places(tmp_path):
    log = StateLog(tmp_path)
    for batch in (999_999, 1_000_000):
        log.commit(State(batch=batch))
    assert log.latest().batch == 1_000_000
    log.commit(State(batch=1_000_000, sent=5), "-drained")
    assert log.latest().sent == 5


def test_a_drain_before_any_batch_is_known(tmp_path):
    log = StateLog(tmp_path)
    log.commit(State(batch=-1, sent=5), "-drained")
    assert log.latest().sent == 5
