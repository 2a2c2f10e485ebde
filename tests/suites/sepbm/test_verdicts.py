"""A recording analysed and judged: heard exactly, wrongly attributed, in another order, and by another way."""

from dataclasses import replace

import pytest

from streamgauge.formats.run import read_run
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.query import parse
from streamgauge.semantics.refusal import RefusedError
from streamgauge.suites.sepbm import PublicationRecord, recordings
from streamgauge.suites.sepbm.analysis import score
from streamgauge.suites.sepbm.recordings import JudgingMeans, another_order, judge, outcome
from streamgauge.suites.sepbm.runner import RunPlan, run
from tests.suites.sepbm.small import NAMES, Small
from tests.suites.sepbm.test_recordings import facts

SMALL = Small()
JUDGING = JudgingMeans(lambda: pytest.fail("nothing here is as large as to need Spark"))


def kept(folder, strategy="incremental"):
    """A run of the small configuration in a folder, with the facts that stood."""
    heard = run(SMALL, "broker_inprocess", {"strategy": strategy}, RunPlan())
    recordings.write(folder, heard, SMALL)
    recordings.write_facts(folder, facts())
    return heard


@pytest.mark.slow
def test_the_exact_strategy_is_right_by_both_judges(tmp_path):
    kept(tmp_path)
    verdicts = judge(tmp_path, SMALL, JUDGING)
    result = outcome(tmp_path, SMALL, JUDGING)
    assert result.right
    assert dict(result.verdicts) == verdicts
    assert {verdict.evaluator for verdict in verdicts.values()} == {"definition"}
    assert {verdict.judgement for verdict in verdicts.values()} == {Judgement.RIGHT}
    total = score(result.analysis)
    assert (total.missed, total.surplus, total.deferred, total.miscaused) == (0, 0, 0, 0)
    assert total.due == sum(len(report.added) + len(report.removed) for report in SMALL.due())
    assert total.throughput.complete == len(SMALL.publications)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["reevaluate", "stringrs", "graphss"])
def test_other_strategies_miss_nothing_in_the_end(tmp_path, strategy):
    kept(tmp_path, strategy)
    total = score(outcome(tmp_path, SMALL, JUDGING).analysis)
    assert (total.missed, total.surplus) == (0, 0)


@pytest.mark.slow
def test_what_is_not_told_is_missed_by_both(tmp_path):
    heard = kept(tmp_path)
    lost = max(range(len(heard.heard)), key=lambda at: len(heard.heard[at].added))
    part = replace(heard, heard=heard.heard[:lost] + heard.heard[lost + 1 :])
    recordings.write(tmp_path, part, SMALL)
    recordings.write_facts(tmp_path, facts())
    verdicts = judge(tmp_path, SMALL, JUDGING)
    result = outcome(tmp_path, SMALL, JUDGING)
    assert not result.right
    one = heard.heard[lost]
    assert score(result.analysis).missed == len(one.added) + len(one.removed)
    assert [name for name in NAMES if verdicts[name].judgement is not Judgement.RIGHT] == [one.channel]
    assert verdicts[one.channel].precision == 1.0


def test_publications_that_took_effect_otherwise_are_known_by_number():
    heard = run(SMALL, "broker_inprocess", {}, RunPlan())
    assert another_order(SMALL, heard) == ()
    first, second, *others = heard.published
    turned = (PublicationRecord(*first[:3], known_as=2), PublicationRecord(*second[:3], known_as=1), *others)
    order = another_order(SMALL, replace(heard, published=turned))
    assert order == (2, 1, *range(3, len(SMALL.publications) + 1))
    some = another_order(SMALL, replace(heard, published=turned[:2]))
    assert some == order


def test_a_diagnosis_is_refused_by_name(tmp_path):
    kept(tmp_path)
    parsed = read_run(tmp_path / recordings.CHANNELS / NAMES[0], parse)
    with pytest.raises(RefusedError, match="rows come and go in one answer"):
        diagnose(parsed, facts())
