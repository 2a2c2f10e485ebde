"""`stream` until Ctrl-C: the job ends with what was answered, and nothing but that is said."""

import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from streamgauge.formats.lines import encode_element
from tests.cli.test_stream_latency import TEXT
from tests.notation import stream

ELEMENTS = stream(" | ".join(f"{t * 100}: a v {t}." for t in range(30)))


@pytest.mark.spark
@pytest.mark.slow
def test_control_c_ends_a_job_without_a_trace(tmp_path):
    (tmp_path / "q.rq").write_text(TEXT.replace("urn:v", "urn:x:v"))
    (tmp_path / "in.jsonl").write_bytes(b"".join(map(encode_element, ELEMENTS)))
    words = ("stream", "q.rq", "--from", "in.jsonl", "--to", "-", "--checkpoint", "state", "--master", "local[1]")
    running = subprocess.Popen(
        [sys.executable, "-m", "streamgauge", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdout is not None
    assert running.stdout.readline().startswith("{")
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=300)
    assert "Traceback" not in err, err
    assert "Py4J" not in err, err
    assert running.returncode in (0, 130), err
