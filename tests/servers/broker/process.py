"""A broker in a process of its own, as `streamgauge broker serve` starts it: killed, started again, measured."""

import signal
import socket
import subprocess
import sys
import time

import psutil

from tests.servers.broker.world import ONTOLOGY


class Process:
    """``with`` it a broker serves at ``url``; ``options`` are more of the command's."""

    def __init__(self, folder, *options, journal=True, environment=None):
        self._folder, self._environment = folder, environment
        ontology = folder / "ontology.nt"
        ontology.write_text("".join(f"{' '.join(triple)} .\n" for triple in ONTOLOGY))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = ("--journal", str(folder / "journal")) if journal else ()
        self._words = ("broker", "serve", "--port", str(self.port), "--ontology", str(ontology), *kept, *options)
        self._process, self._log = None, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *what):
        self.kill()

    def start(self):
        """Serve; waits until somebody answers."""
        self._log = (self._folder.parent / f"{self._folder.name}.log").open("ab")
        words = [sys.executable, "-m", "streamgauge.cli.main", *self._words]
        self._process = subprocess.Popen(words, stderr=self._log, stdout=self._log, env=self._environment)
        until(self._answers, 600)

    def _answers(self):
        assert self._process.poll() is None, self.said()
        try:
            socket.create_connection(("127.0.0.1", self.port), 10).close()
        except OSError:
            return False
        return True

    def said(self):
        """What it wrote."""
        return (self._folder.parent / f"{self._folder.name}.log").read_text()

    def kill(self):
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self):
        """The end in good order."""
        self._end(signal.SIGTERM)

    def _end(self, how):
        if self._process.poll() is None:
            self._process.send_signal(how)
        self._process.wait(120)
        self._log.close()

    @property
    def memory(self):
        """Bytes that it has of the machine's memory."""
        return psutil.Process(self._process.pid).memory_info().rss

    @property
    def sockets(self):
        """Connections that it holds open."""
        return sum(
            connection.status == psutil.CONN_ESTABLISHED
            for connection in psutil.Process(self._process.pid).net_connections()
        )


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def until(holds, seconds=300):
    """Wait until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
