"""`streamgauge stream` as processes that tests start, kill and start again, and what its run folder says."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.formats.run import read_run
from streamgauge.formats.stream import elements
from streamgauge.query import parse
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.definition import expected

OBSERVED = """PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
REGISTER {operator} <urn:answers> AS SELECT ?sensor ?obs ?value
FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT{size}S STEP PT{slide}S]
WHERE {{ WINDOW <urn:w> {{ ?obs om-owl:procedure ?sensor ; om-owl:result [ om-owl:floatValue ?value ] }}
FILTER(?value > 50.0) }}
"""


def observed(operator: str, size: int, slide: int) -> str:
    """A query with two stars over windows of these seconds."""
    return OBSERVED.format(operator=operator, size=size, slide=slide)


@dataclass
class Streamed:
    """One job: its folders, and how it is asked for."""

    root: Path
    source: Path
    text: str
    more: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    @property
    def answers(self) -> Path:
        return self.root / "answers"

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    def command(self) -> list[str]:
        (self.root / "query.rq").write_text(self.text)
        places = ["--from", str(self.source), "--to", str(self.answers), "--checkpoint", str(self.checkpoint)]
        program = [sys.executable, "-m", "streamgauge.cli.main", "stream", str(self.root / "query.rq")]
        return [*program, *places, "--drain", *self.more]

    def start(self) -> "subprocess.Popen[bytes]":
        """The job in a process group of its own, Python and JVM."""
        words = (self.root / "words.txt").open("ab")
        environment = (
            os.environ | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"} | self.env
        )  # short lives, quick starts
        return subprocess.Popen(self.command(), stdout=words, stderr=words, start_new_session=True, env=environment)

    def finish(self, seconds: float = 600) -> int:
        """Run to the end; the exit code."""
        process = self.start()
        try:
            return process.wait(seconds)
        finally:
            kill(process)

    def words(self) -> str:
        return (self.root / "words.txt").read_text(errors="replace")

    def progress(self) -> tuple[int, int]:
        """How many batches Spark has begun, and how many it has committed."""
        offsets, commits = (self.checkpoint / "spark" / name for name in ("offsets", "commits"))
        return sum(1 for _ in offsets.glob("[0-9]*")), sum(1 for _ in commits.glob("[0-9]*"))

    def wait_for(self, begun: int, process: "subprocess.Popen[bytes]", seconds: float = 180) -> bool:
        """Wait until so many batches have begun; false when the job ended before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and process.poll() is None:
            if self.progress()[0] >= begun:
                return True
            time.sleep(0.02)
        return False

    def killed(self, name: str, draws: random.Random, kills: int) -> list[tuple[int, int]]:
        """Kill it at so many drawn points, and let it finish; the points: batches begun and committed."""
        points: list[tuple[int, int]] = []
        for number in range(kills):
            process = self.start()
            self.wait_for(self.progress()[0] + draws.randint(1, 2), process)
            time.sleep(draws.uniform(0, 1.2))
            assert process.poll() is None, f"the stream is too short for so many kills: it ended before number {number}"
            points.append(self.progress())
            kill(process)
            print(f"{name}: killed at {points[-1]}", file=sys.stderr, flush=True)
        assert self.finish() == 0, self.words()[-2000:]
        return points

    def reports(self) -> list[tuple[int, tuple[int, int], Counter]]:
        """What the run folder says, report by report."""
        parsed = read_run(self.answers, parse).answers
        return [(answer.instant, answer.scope, Counter(answer.added)) for answer in parsed]

    def expected(self) -> list[tuple[int, tuple[int, int], Counter]]:
        """What the definition says that should be there."""
        header = read_run(self.answers, parse).header
        came = list(elements(self.source))
        t0 = origins(header.semantics, header.query.windows, came[0].time)[0]
        due = expected(came, header.query, header.semantics, header.advanced_to, t0)
        return [(report.due.instant, (report.due.start, report.due.end), Counter(report.rows)) for report in due]


def kill(process: "subprocess.Popen[bytes]") -> None:
    """kill -9 the whole process group, if it is there."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
