"""A standalone Spark cluster of real processes on this machine, one of its workers in a network of its own if asked."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.prove.streamed import kill

HOME = Path(pyspark.__file__).parent
SPACE, NEAR, FAR = "sgcut", "10.231.7.1", "10.231.7.2"


@dataclass
class Cluster:
    """One master and its workers, each a process group; ``url`` is what ``--master`` takes."""

    root: Path
    host: str = "127.0.0.1"
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self) -> None:
        """The master, on a free port."""
        with socket.socket() as probe:
            probe.bind((self.host, 0))
            self.port = probe.getsockname()[1]
        self._run([], "master.Master", "--host", self.host, "--port", str(self.port), "--webui-port", "0")
        self._wait_for("I have been elected leader", 1)

    @property
    def url(self) -> str:
        return f"spark://{self.host}:{self.port}"

    def work(
        self, host: str | None = None, inside: tuple[str, ...] = (), memory: str = "1g"
    ) -> "subprocess.Popen[bytes]":
        """A worker with one core; ``inside`` is the command that puts it into another network."""
        asked = ("--cores", "1", "--memory", memory, "--webui-port", "0", "--host", host or self.host)
        process = self._run(inside, "worker.Worker", *asked, "--work-dir", str(self.root / "work"), self.url)
        self._wait_for("Registering worker", len(self.running) - 1)
        return process

    def log(self) -> str:
        return (self.root / "cluster.txt").read_text(errors="replace")

    def stop(self) -> None:
        for process in self.running:
            kill(process)

    def _run(self, inside: tuple[str, ...], name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        words = (self.root / "cluster.txt").open("ab")
        environment = os.environ | {"SPARK_HOME": str(HOME), "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}
        command = [*inside, str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        process = subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True, env=environment)
        self.running.append(process)
        return process

    def _wait_for(self, words: str, times: int, seconds: float = 900) -> None:
        end_at = time.monotonic() + seconds
        while self.log().count(words) < times:
            if time.monotonic() > end_at:
                raise TimeoutError(f"the cluster did not say {words!r}: {self.log()[-2000:]}")
            time.sleep(0.1)


@contextmanager
def network() -> Iterator[tuple[str, ...]]:
    """A network namespace at FAR, linked to this one at NEAR; what it yields runs a command in it."""
    _ip("netns", "add", SPACE)
    try:
        _ip("link", "add", f"{SPACE}0", "type", "veth", "peer", "name", f"{SPACE}1")
        _ip("link", "set", f"{SPACE}1", "netns", SPACE)
        _ip("addr", "add", f"{NEAR}/30", "dev", f"{SPACE}0")
        _ip("link", "set", f"{SPACE}0", "up")
        for command in (["addr", "add", f"{FAR}/30", "dev", f"{SPACE}1"], ["link", "set", f"{SPACE}1", "up"]):
            _ip("-n", SPACE, *command)
        _ip("-n", SPACE, "link", "set", "lo", "up")
        yield ("ip", "netns", "exec", SPACE)
    finally:
        subprocess.run(["ip", "link", "del", f"{SPACE}0"], check=False, capture_output=True)
        _ip("netns", "del", SPACE)


def cut() -> None:
    """Take the link down: nothing comes through any more, nobody is told."""
    _ip("link", "set", f"{SPACE}0", "down")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
