"""Runs of SEP-BM as a page needs them, made up: what the paper claims holds for them."""

from dataclasses import replace

from streamgauge.papers.sepbm import measure as plan
from streamgauge.papers.sepbm.measure import SepbmOutcomes
from streamgauge.suites.sepbm import DueRows, PublicationRecord, ReceivedNotification, SepbmRecording
from streamgauge.suites.sepbm.analysis import analyse
from streamgauge.suites.sepbm.recordings import JudgedRecording

MS = 1_000_000


def ran(strategy, channels, ms, count=4):
    """Publications each of which lets a row of every channel come, told so many ms after its call."""
    period = round(2 * max(ms.values()) + 1)
    published = tuple(
        PublicationRecord(at, at * period * MS, (at * period + round(max(ms.values()))) * MS, at)
        for at in range(1, count + 1)
    )
    heard = tuple(
        ReceivedNotification(
            name,
            (at,),
            ((f"<urn:{at}>",),),
            (),
            round((at * period + ms[name]) * MS) + 9,
            round((at * period + ms[name]) * MS),
        )
        for at in range(1, count + 1)
        for name in channels
    )
    recording = SepbmRecording("broker_inprocess", {"strategy": strategy}, channels, published, heard, (), 0, 1.5)
    due = [DueRows(name, at, ((f"<urn:{at}>",),)) for at in range(1, count + 1) for name in channels]
    return JudgedRecording(recording, analyse(due, recording))


SPEED = {"reevaluate": 100.0, "stringrs": 40.0, "graphss": 20.0, "incremental": 0.05}


def times(strategy):
    """The six channels that the paper names are the slowest, the other slow ones follow."""
    slow = {f"q{n:02d}": 0.5 for n in (2, 6, 9, 18)} | {f"q{n:02d}": 1.0 for n in (14, 15, 16, 17, 19, 20)}
    own = {query: SPEED[strategy] * slow.get(query, 0.01) for query in plan.QUERIES}
    return own | ({"q17": 100.0} if strategy == "graphss" else {})


def measured():
    outcomes = {f"together/{item}": ran(item, plan.QUERIES, times(item)) for item in plan.STRATEGIES}
    for item in plan.STRATEGIES:
        for query in plan.QUERIES:
            outcomes[f"alone/{item}/{query}"] = ran(item, (query,), {query: times(item)[query]})
    for count in plan.PUBLISHERS:
        one = ran("incremental", ("q01",), {"q01": 1.0})
        outcomes[f"publishers/incremental-{count}"] = replace(one, recording=replace(one.recording, publishers=count))
    counts = {"2": 287_421, "10": 1_591_802, "10 closed": 2_407_874}
    return SepbmOutcomes(outcomes, {"systems/an RSP engine": "it is not there"}, counts)
