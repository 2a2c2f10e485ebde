"""`streamgauge run` killed, without a chance to clean up, once its folder has grown to a drawn number of files."""

import json
import random
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from streamgauge.formats.run import read_run, read_verdict
from streamgauge.formats.stream import write
from streamgauge.model.verdict import Judgement
from streamgauge.query import parse
from tests.notation import stream

QUERY = """SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE 5s STEP 5s]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }
"""
EXPERIMENT = """name = "killed"
repetitions = {repetitions}
[workload]
file = "stream.parquet"
[query]
file = "query.rq"
[[engine]]
name = "live"
semantics = {semantics}
[feed]
advance_to = "20s"
"""
TEXT = " | ".join(f"{t}: s{t % 3} p o{t}." for t in range(0, 20_000, 500))


@dataclass(frozen=True)
class Killed:
    """An experiment in a folder, a run for each semantics a repetition, done by a process of its own."""

    folder: Path
    repetitions: int
    semantics: tuple[str, ...] = ("rspql", "cqels")

    def prepare(self) -> None:
        (self.folder / "query.rq").write_text(QUERY)
        text = EXPERIMENT.format(repetitions=self.repetitions, semantics=json.dumps(self.semantics))
        (self.folder / "killed.toml").write_text(text)
        write(stream(TEXT), self.folder / "stream.parquet")

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def start(self) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "streamgauge.cli.main", "run", str(self.folder / "killed.toml")]
        return subprocess.Popen(
            [*words, "--out", str(self.out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def finish(self) -> tuple[int, str]:
        process = self.start()
        said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def files(self) -> int:
        """How many files there are now, however many come and go meanwhile."""
        result = 0
        for pattern in ("*", "*/*", "*/*/*"):
            with suppress(OSError):
                result += sum(1 for _ in self.out.glob(pattern))
        return result

    def kill_at(self, files: int) -> bool:
        """Run it, and kill it at so many files; whether it was still running."""
        process = self.start()
        while process.poll() is None and self.files() < files:
            time.sleep(0.002)
        running = process.poll() is None
        engines = psutil.Process(process.pid).children(recursive=True) if running else []
        process.kill()
        process.communicate()
        assert not psutil.wait_procs(engines, timeout=30)[1], "an engine outlived the harness"
        return running

    def whole(self) -> dict[Path, int]:
        """The finished runs, each whole and right, with the time at which it was written."""
        results = {}
        for folder in self.out.glob("live-*"):
            run = read_run(folder, parse)
            assert run.header.failure is None
            assert read_verdict(folder).judgement is Judgement.RIGHT
            results[folder] = (folder / "run.json").stat().st_mtime_ns
        return results


def kill_and_go_on(job: Killed, seed: int, kills: int) -> list[int]:
    """Kill it at so many points, then let it finish: whatever was finished is kept. The points are returned."""
    draws, points = random.Random(seed), list[int]()
    job.prepare()
    kept: dict[Path, int] = {}
    while len(points) < kills:
        begun = job.files() if job.out.exists() else 0
        point = begun + draws.randint(0, 12)
        if not job.kill_at(point):
            break
        points.append(point)
        now = job.whole()
        assert kept.items() <= now.items(), "a finished run was done again"
        kept = now
    code, said = job.finish()
    assert code == 0, said
    done = job.whole()
    assert kept.items() <= done.items(), "a finished run was done again"
    assert len(done) == len(job.semantics) * job.repetitions
    assert not list(job.out.glob(".live-*")), "something half-written is left"
    return points
