"""Fixtures that the whole suite shares: one Spark session, the reference data when it is there."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from httpx._transports import default
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

pytest_plugins = ["tests.selection", "tests.durations"]

# No phase `explain`, which traces: a traced function of CPython 3.11 may never get past a pending signal, and hangs.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink)
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
# The suite draws the same cases in every run, so that a change passes or fails by itself; proofs draw new ones.
settings.register_profile("test", parent=COMMON, max_examples=15, derandomize=True)
settings.register_profile("prove", parent=COMMON, max_examples=2000)
settings.load_profile(PROFILE := os.environ.get("STREAMGAUGE_EXAMPLES", "test"))

if PROFILE == "test":
    providers._get_local_constants = lambda: providers._local_constants
"""Constants of the source are drawn by proofs only: which of them there are depends on the modules that a process has
imported, so a test drew other cases alone than in the suite, and each worker parsed the whole source for them."""

default.create_ssl_context = cache(default.create_ssl_context)  # type: ignore[attr-defined]
"""Clients of httpx share their TLS context: each would read all authorities of the web anew, 40 ms of CPU."""

SHARED = Path(os.environ.get("STREAMGAUGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell has its background jobs ignore Ctrl-C, and the programs that tests start and interrupt would inherit that."""

os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:-UseCodeCacheFlushing"
)
"""Every JVM of the suite lives for minutes: code that its second compiler makes does not pay for the making."""

SMALL_JOBS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.lightweightPlanChangeValidation": "false",  # Spark's check of its own optimizer, after every rule
}
"""Plans of the suite are run once, over few rows: generated code and plans made anew on the way cost more than they
give. Programs that the suite starts have Spark's own settings."""

YOUNG = "-Xms1g -Xmn640m -XX:ParallelGCThreads=1 -XX:MetaspaceSize=256m"
"""Plans are garbage when their test ends: where the heap has room for those of many tests, few of them are copied."""


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    from streamgauge.spark.session import session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", f"{os.environ['SPARK_SUBMIT_OPTS']} {YOUNG}")
        spark = session("local[2]", memory="2g", shuffle=2, app="streamgauge-tests")
    for key, value in SMALL_JOBS.items():
        spark.conf.set(key, value)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The reference data of the papers, which a user does not have."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("the reference data (shared/data) is not here: this check runs where it is")
    return data


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of this process are whole but for what plots show: V8 takes 0.05 s of CPU for each, two dozen a page.

    For tests of commands that write a report on the way; tests/report, tests/browser and a page of docs/ look at plots.
    """
    import vl_convert

    from streamgauge.report import vega

    def empty(chart: object, *, vl_version: str) -> str:
        assert isinstance(chart, dict)
        assert vl_version == vega.VERSION
        return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g></g></svg>'

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", empty)


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


class Command(Protocol):
    """The command line in this process: words, and what it reads from standard input."""

    def __call__(self, *words: object, stdin: str = "") -> Said: ...


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Call `streamgauge` with these words; nobody is ever shown a traceback."""
    from streamgauge.cli.main import main

    def call(*words: object, stdin: str = "") -> Said:
        monkeypatch.setattr(sys, "argv", ["streamgauge", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        output = Said(int(ended.value.code or 0), *capsys.readouterr())
        assert "Traceback" not in output.err
        return output

    return call
