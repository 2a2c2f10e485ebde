"""How long an experiment or a search takes is said before it begins."""

from streamgauge.suites.experiments.load_search import SearchRange, search
from streamgauge.suites.experiments.plan import RunEstimate


def test_a_paced_run_takes_as_long_as_its_stream():
    assert RunEstimate(6, 30_000, 60_000, 1.0).seconds == 201
    assert RunEstimate(6, 30_000, 60_000, 10.0).seconds == 39
    assert RunEstimate(6, 30_000, 60_000, None).seconds == 21
    assert RunEstimate(0, 30_000, 60_000, 1.0).seconds == 0


def test_a_search_asks_for_at_least_as_many_values_as_foretold():
    reaches = [
        SearchRange(1.0, 1 / 1024, 1024.0),
        SearchRange(1.0, 1 / 1024, 1024.0, precision=0.3),
        SearchRange(1, 1, 64, whole=True),
        SearchRange(1.0, 1.0, 1.0),
    ]
    for reach in reaches:
        counts = []
        for border in (0.7, 1.3, 1.9, 3.0, 5.5, 40.0):
            requests: list[float] = []

            def passes(value: float, border: float = border, requests: list[float] = requests) -> bool:
                requests.append(value)
                return value <= border

            search_result = search(passes, reach)
            if (search_result.passed is not None and search_result.failed is not None) or reach.least == reach.most:
                counts.append(len(requests))
        assert min(counts) == reach.fewest, reach
