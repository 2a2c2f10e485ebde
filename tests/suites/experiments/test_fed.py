"""A long run says how far it is while its stream is fed."""

import time

import pytest

from streamgauge.formats.stream import Written
from streamgauge.suites.experiments import read
from streamgauge.suites.experiments.runner import (
    FEEDING,
    ExperimentContext,
    FeedProgress,
    progress_reported,
    run_experiment,
)

TIMES = (500, 12_400, 29_000, 61_000)


def stream():
    return (Written(number, at, 1, b"") for number, at in enumerate(TIMES))


def test_a_stream_says_how_far_it_is():
    so_far = FeedProgress(stream(), 0, 60_000)
    assert so_far.place() == ("starting the engine", 0.0)
    taken = iter(so_far)
    places = [so_far.place() for _ in taken]
    assert places == [
        ("fed to 0.5 s of 60 s, element 1", FEEDING * 500 / 60_000),
        ("fed to 12 s of 60 s, element 2", FEEDING * 12_400 / 60_000),
        ("fed to 29 s of 60 s, element 3", FEEDING * 29_000 / 60_000),
        ("fed to 60 s of 60 s, element 4", FEEDING),
    ]
    assert so_far.place() == ("all elements are fed, waiting for the last answers", FEEDING)


def test_times_count_from_where_the_stream_begins():
    so_far = FeedProgress(stream(), 400, 1400)
    next(iter(so_far))
    assert so_far.place() == ("fed to 0.1 s of 1 s, element 1", FEEDING * 100 / 1000)


def test_a_stream_without_a_length_is_told_by_its_elements():
    so_far = FeedProgress(stream(), 500, 500)
    next(iter(so_far))
    assert so_far.place() == ("fed to element 1", 0.0)


def test_another_thread_tells_and_ends_with_the_run():
    heard = []
    with progress_reported(
        FeedProgress(stream(), 0, 60_000), lambda what, share: heard.append((what, share)), 0.001
    ) as fed:
        assert [element.time for element in fed] == list(TIMES)
        while not heard or heard[-1][1] < FEEDING:
            time.sleep(0.001)
    count = len(heard)
    assert heard[-1] == ("all elements are fed, waiting for the last answers", FEEDING)
    time.sleep(0.01)
    assert len(heard) == count


EXPERIMENT = """
name = "long"
seeds = [1, 2]
[workload]
name = "weather"
stations = 2
interval = "100ms"
duration = "2500ms"
[query]
name = "select"
parameters = { WSIZE = "1s", WSLIDE = "1s", TEMP = 50.0 }
[[engine]]
name = "live"
semantics = ["csparql"]
[feed]
pace = "real time"
"""


@pytest.mark.server
def test_a_paced_run_tells_of_itself_while_it_runs(tmp_path):
    (tmp_path / "long.toml").write_text(EXPERIMENT)
    heard = []
    context = ExperimentContext(tmp_path / "runs", lambda: None, lambda what, share: heard.append((what, share)))
    assert len(list(run_experiment(read(tmp_path / "long.toml"), context))) == 2
    places = [(what, share) for what, share in heard if ": fed to " in what]
    first = [share for what, share in places if what.startswith("live-csparql-seed1-1: fed to ")]
    second = [share for what, share in places if what.startswith("live-csparql-seed2-1: fed to ")]
    assert first
    assert second
    assert all(0 < share < 0.5 for share in first)
    assert all(0.5 < share < 1 for share in second)
