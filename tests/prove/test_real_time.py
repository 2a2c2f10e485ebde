"""YABench's experiments 1 to 4 in real time: `live` as C-SPARQL and as CQELS is right in every window."""

from pathlib import Path

import pytest

from streamgauge.model.verdict import Judgement
from streamgauge.oracle.judging.metrics import feeder_lateness
from streamgauge.suites.experiments import Experiment
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment

pytestmark = pytest.mark.prove

EXPERIMENTS = {
    "E1 select": ("select", {"TEMP": 50.0}, 1430236906, {"small": 50, "medium": 1000, "big": 10_000}, "30s"),
    "E2 average": ("average", {"TEMP": 50.0}, 1430237208, {"small": 1, "medium": 1000, "big": 10_000}, "30s"),
    "E3 variation": (
        "variation",
        {"VARIATION_THRESHOLD": 0.0},
        1430236808,
        {"small": 50, "medium": 200, "big": 500},
        "30s",
    ),
    "E4 variation": ("variation", {"VARIATION_THRESHOLD": 0.0}, 1430236808, {"one station": 1}, "20s"),
}
CASES = [(name, load) for name, (_, _, _, loads, _) in EXPERIMENTS.items() for load in loads]


def experiment(name: str, load: str) -> Experiment:
    query, values, seed, loads, duration = EXPERIMENTS[name]
    return Experiment.model_validate(
        {
            "name": f"{name} {load}",
            "seeds": [seed],
            "workload": {"name": "weather", "stations": loads[load], "interval": "1s", "duration": duration},
            "query": {"name": query, "parameters": {"WSIZE": "5s", "WSLIDE": "5s", **values}},
            "engine": [{"name": "live", "semantics": ["csparql", "cqels"]}],
            "feed": {"pace": "real time"},
        }
    )


@pytest.mark.parametrize(("name", "load"), CASES, ids=[f"{name}, {load}" for name, load in CASES])
def test_every_window_is_right(name, load, spark, tmp_path: Path, capsys):
    for _, run, verdict in run_experiment(experiment(name, load), ExperimentContext(tmp_path, lambda: spark)):
        delays = sorted(window.delay for window in verdict.windows if window.delay is not None)
        late = feeder_lateness(run)
        with capsys.disabled():
            rss = max(sample.rss for sample in run.samples) / 2**20
            middle = delays[len(delays) // 2]
            print(
                f"\n| {name} | {load} | {run.header.semantics.name} | {verdict.judgement} | {verdict.precision:.4f} | "
                f"{verdict.recall:.4f} | {len(verdict.windows):,} | {middle:,.1f} | {delays[-1]:,.1f} | "
                f"{rss:,.0f} | {late[1]:,.1f} | {(verdict.last_answer or 0) / 1000:.2f} | "
                f"{verdict.evaluator} |"
            )
        assert verdict.judgement is Judgement.RIGHT, verdict.reason
