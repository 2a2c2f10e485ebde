"""Brokers that the tests start themselves, and take away."""

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
        until = time.monotonic() + 300
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
            self._process.wait(300)
            self._process = None


@pytest.fixture
def mosquitto_program() -> str:
    result = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin")
    if result is None:
        pytest.skip("mosquitto is not installed: this check runs where it is (Debian package mosquitto)")
    return result


@pytest.fixture
def mosquitto(mosquitto_program: str, tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(mosquitto_program, tmp_path)
    broker.start()
    yield broker
    broker.kill()


JARS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamgauge-tests" / "kafka-4.1.0"
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/log
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
"""


class Kafka:
    """A broker of one node (KRaft) on a free port."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
        self._settings = folder / "server.properties"
        self.move()
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kafka.tools.StorageTool", "format", "-t", "c3RyZWFtZ2F1Z2UtdGVzdA", "-c", str(self._settings))

    def move(self) -> None:
        """Take other ports: while it does not run, others may take those that it had."""
        self.port = free_port()
        folder = self._settings.parent
        self._settings.write_text(SETTINGS.format(port=self.port, controller=free_port(), folder=folder))

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        command = [*self._java, "kafka.Kafka", str(self._settings)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 300
        while not answers(self.port):
            assert self._process.poll() is None, "Kafka ended"
            assert time.monotonic() < until, "Kafka does not answer"
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(300)
            self._process = None

    def topic(self, partitions: int = 1) -> str:
        """A new topic."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}"})
        name = f"t{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
        ends = time.monotonic() + 30
        while admin.list_topics(name).topics[name].error is not None:  # it is known a moment after it is made
            assert time.monotonic() < ends, f"{name} is made and not known"
            time.sleep(0.05)
        return name

    def _run(self, *words: str) -> None:
        subprocess.run([*self._java, *words], check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The broker's jars, fetched by Maven once and kept in the user's cache folder."""
    if shutil.which("java") is None:
        pytest.skip("there is no java: Kafka's checks run where it is")
    if not list(JARS.glob("kafka_2.13-*.jar")):
        if shutil.which("mvn") is None:
            pytest.skip("there is no mvn, which fetches Kafka's jars: this check runs where it is")
        pom, folder = Path(__file__).parent / "kafka" / "pom.xml", JARS.with_suffix(".part")
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
        if done.returncode:
            pytest.skip(f"Maven could not fetch Kafka's jars: {done.stdout[-300:]}")
        folder.rename(JARS)
    return JARS


BROKER: Final = pytest.StashKey[Kafka]()
"""The broker of this process: one, whichever folders' tests ask for it."""


class BrokerEnd:
    """A plugin that ends the broker before a test that does not ask for it: an idle one computes all the time."""

    def __init__(self, broker: Kafka) -> None:
        self._broker = broker

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> None:
        if "kafka" not in getattr(nextitem, "fixturenames", ()):
            self._broker.kill()
            self._broker.move()


@pytest.fixture
def kafka(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    stash = request.config.stash
    if BROKER not in stash:
        stash[BROKER] = Kafka(kafka_jars, tmp_path_factory.mktemp("kafka"))
        request.config.pluginmanager.register(BrokerEnd(stash[BROKER]))
    stash[BROKER].start()
    return stash[BROKER]
