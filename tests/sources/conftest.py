"""Brokers that the tests start themselves, and take away."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Mosquitto:
    """A broker on a free port that keeps its state on disk at every change."""

    def __init__(self, program: str, folder: Path, settings: str = "allow_anonymous true") -> None:
        self.port = free_port()
        self._command = [program, "-c", str(folder / "mosquitto.conf")]
        (folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nuser root\npersistence true\npersistence_location {folder}/\n"
            f"autosave_interval 1\nautosave_on_changes true\n{settings}\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not answers(self.port):
            assert self._process.poll() is None, "mosquitto ended"
            assert time.monotonic() < until, "mosquitto does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """Ask it to end."""
        self._end("terminate")

    def kill(self) -> None:
        self._end("kill")

    def _end(self, how: str) -> None:
        if self._process is not None:
            getattr(self._process, how)()
            self._process.wait(20)
            self._process = None


@pytest.fixture
def mosquitto_program() -> str:
    found = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin")
    if found is None:
        pytest.skip("mosquitto is not installed: this check runs where it is (Debian package mosquitto)")
    return found


@pytest.fixture
def mosquitto(mosquitto_program: str, tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(mosquitto_program, tmp_path)
    broker.start()
    yield broker
    broker.kill()
