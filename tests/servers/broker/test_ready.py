"""A broker is soon ready: what it needs later is imported later."""

import subprocess
import sys

import psutil
import pytest

from tests.contention import CONTENDED

pytestmark = pytest.mark.server

LATER = (
    *("numpy", "pyarrow", "rdflib", "pyparsing", "httpx", "elementpath", "pyspark", "rich.live"),
    *("streamgauge.suites", "streamgauge.harness", "streamgauge.oracle"),
)


def test_what_serving_does_not_need_is_not_imported():
    program = "import sys, streamgauge.cli.main, streamgauge.cli.broker; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert "streamgauge.servers.broker.http" in loaded
    assert not set(LATER).intersection(loaded)


def test_a_broker_with_an_empty_journal_is_ready_within_a_second_of_cpu(tmp_path):
    words = [sys.executable, "-m", "streamgauge", "broker", "serve", "--port", "0", "--journal", str(tmp_path / "j.db")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert any("http://" in line for line in running.stderr)
            spent = sum(psutil.Process(running.pid).cpu_times()[:2])
        finally:
            running.terminate()
    assert spent < CONTENDED * 1.0, f"{spent:.2f} s"
