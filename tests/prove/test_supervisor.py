"""The files of examples/operations under a real supervisor: an alert, a kill, a reload and a stop.

It needs ``supervisord`` (``pip install supervisor``, which may be in an environment of its own on the ``PATH``) and
mosquitto. Marked ``prove``: a minute, most of it starts of programs.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "operations"
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
AT = "http://127.0.0.1:8765"

pytestmark = [
    pytest.mark.prove,
    pytest.mark.xdist_group("ports"),
    pytest.mark.skipif(shutil.which("supervisord") is None or MOSQUITTO is None, reason="supervisord is not here"),
]


def until(probe, seconds=60.0):
    """What a probe gives as soon as it gives something; errors of connections are waited out."""
    end = time.monotonic() + seconds
    while True:
        try:
            if result := probe():
                return result
        except (OSError, httpx.HTTPError):
            pass
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def supervised(tmp_path):
    """The folder of the example with its programs running, and a function for words of ``supervisorctl``."""
    folder = tmp_path / "operations"
    shutil.copytree(EXAMPLE, folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "streamgauge").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m streamgauge "$@"\n')
    (programs / "mosquitto").write_text(f'#!/bin/sh\nexec "{MOSQUITTO}" "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    daemon = subprocess.Popen(["supervisord", "-c", folder / "supervisord.conf"], env=environment)

    def control(*words):
        command = ["supervisorctl", "-c", folder / "supervisord.conf", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    yield folder, control
    daemon.terminate()
    assert daemon.wait(60) == 0


def reading(at, celsius):
    local = at.astimezone(ZoneInfo("Europe/Vienna")).strftime("%Y-%m-%dT%H:%M:%S")
    return json.dumps({"room": "kitchen", "celsius": celsius, "at": local})


def test_an_alert_a_kill_a_reload_and_a_stop(supervised):
    import paho.mqtt.client as mqtt

    folder, control = supervised
    until(lambda: httpx.get(f"{AT}/ready").is_success)
    alerts = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_message = lambda _client, _data, message: alerts.append(json.loads(message.payload))
    client.connect("localhost")
    client.subscribe("alerts", qos=1)
    client.loop_start()
    begin = datetime(2026, 3, 1, 8, tzinfo=ZoneInfo("UTC"))

    def publish(minutes, celsius):
        for minute in minutes:
            client.publish(
                "readings", reading(begin + timedelta(minutes=minute, seconds=5), celsius), qos=1
            ).wait_for_publish(30)

    publish(range(4), 33)
    until(lambda: 'elements_total{query="warm"} 4' in httpx.get(f"{AT}/metrics").text)
    pid = int(control("pid", "streamgauge"))
    os.kill(pid, 9)
    publish(range(4, 6), 33)  # while it is down: the broker keeps them
    assert until(lambda: int(control("pid", "streamgauge")) not in (0, pid)), "it is started again"
    until(lambda: httpx.get(f"{AT}/ready").is_success)
    publish(range(6, 9), 33)
    until(lambda: alerts)
    assert alerts[0]["add"] == [['"kitchen"', '"33"^^<http://www.w3.org/2001/XMLSchema#decimal>']]
    until(lambda: httpx.get(f"{AT}/streams").json()["streams"][0]["elements"] == 9)
    assert httpx.get(f"{AT}/queries/warm").json()["late"] == 0, "each reading once and in order, over the kill"

    (folder / "alerts" / "cold.rq").write_text((folder / "alerts" / "warm.rq").read_text().replace("warm", "cold"))
    control("signal", "HUP", "streamgauge")
    until(lambda: httpx.get(f"{AT}/queries/cold").is_success)
    metrics = httpx.get(f"{AT}/metrics").text
    assert 'streamgauge_sink_behind{query="warm",sink="mqtt://localhost/alerts"} 0' in metrics
    begin_stop = time.monotonic()
    assert "stopped" in control("stop", "streamgauge")
    assert time.monotonic() - begin_stop < 9, "5 s, and what other work on the machine takes"
    lines = [json.loads(line) for line in (folder / "streamgauge.log").read_text().splitlines()]
    assert any(line.get("query") == "warm" for line in lines)
    client.loop_stop()
