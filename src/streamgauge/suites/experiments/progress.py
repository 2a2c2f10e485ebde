"""The progress of an experiment as a growing folder: the runner writes it, the workbench reads it.

``progress.jsonl`` has a line for each step, for each second of a run (answers as the engine wrote them, samples) and
for each verdict; ``run1``, ``run2``, ... are unfinished run folders with the headers. The runner neither decodes nor
judges answers during a run, so that watching hardly affects the measurement.
"""

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final, NoReturn

from streamgauge.formats.files import made_folder
from streamgauge.formats.lines import Late, LineError, decode_output
from streamgauge.formats.run import RunWriter, read_run
from streamgauge.harness.resources import ResourceSampler
from streamgauge.harness.systems.pipe import Observation
from streamgauge.model.answer import Answer
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Clock
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.semantics.refusal import RefusedError

LINES: Final = "progress.jsonl"
"""The file of steps, answers, samples and verdicts."""

ANSWER_BYTES: Final = 64 * 2**20
"""Maximum size of the answers that a reader judges during a run; larger runs are judged at their end."""


class ProgressFolder:
    """Writes the progress of an experiment; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = made_folder(folder), Lock()
        self._runs = 0
        self._seen: Observation | None = None
        self._sampler: ResourceSampler | None = None
        self._lines = self._samples = 0

    def step(self, what: str, share: float) -> None:
        """Record the current step and the completed share of the experiment (0 to 1)."""
        self._write({"step": what, "share": share})

    def begin(self, trial: str, header: RunHeader, stream: Path) -> None:
        """Record the start of a trial's run; ``stream`` is its table."""
        self._runs += 1
        name = f"run{self._runs}"
        RunWriter(self._folder / name, header, stream)
        self._seen = self._sampler = None
        self._lines = self._samples = 0
        self._write({"trial": trial, "run": name, "stream": str(stream.resolve())})

    def watch(self, seen: Observation, sampler: ResourceSampler) -> None:
        """Set the observation and sampler of the run that was begun."""
        self._seen, self._sampler = seen, sampler

    def add(self, come: int | None) -> None:
        """Record engine output and samples since the last call; ``come`` is the feed's position in stream time (ms)."""
        seen, sampler = self._seen, self._sampler
        if seen is None or sampler is None or come is None:
            return
        # Slices of lists that other threads extend: what comes meanwhile is written the next time.
        lines, samples = seen.lines[self._lines :], sampler.samples["system"][self._samples :]
        self._lines, self._samples = self._lines + len(lines), self._samples + len(samples)
        self._write(
            {
                "come": come,
                "started": seen.started,
                "answers": [[received, line.decode(errors="replace")] for received, line in lines],
                "samples": [[sample.at, sample.rss, sample.cpu_percent] for sample in samples],
            }
        )

    def judged(self, trial: str, verdict: Verdict) -> None:
        """Record the verdict on a run, done now or earlier."""
        self._write(
            {
                "judged": trial,
                "judgement": verdict.judgement.value,
                "precision": verdict.precision,
                "recall": verdict.recall,
            }
        )

    def _write(self, line: dict[str, Any]) -> None:
        # Opened for each line: every line reaches the reader at once, and none stays in a buffer if the runner is
        # killed.
        with self._lock, (self._folder / LINES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """A judged run: the name of its trial, its judgement, precision and recall (0 to 1)."""

    trial: str
    judgement: str
    precision: float
    recall: float


@dataclass
class ProgressReader:
    """The progress of an experiment as of the last ``read`` of its folder.

    ``samples`` are (ns, bytes, CPU %) of the current run, ``come`` (ms) is its feed's position, ``wrong`` is why its
    answers cannot be judged before its end. ``so_far`` is the latest intermediate verdict.
    """

    folder: Path
    step: str = ""
    share: float = 0.0
    trial: str = ""
    come: int | None = None
    samples: list[tuple[int, int, float]] = field(default_factory=list)
    outcomes: list[JudgedTrial] = field(default_factory=list)
    wrong: str = ""
    so_far: Verdict | None = None
    _offset: int = 0
    _run: str = ""
    _stream: str = ""
    _before: int | None = None
    _started: int = 0
    _bytes: int = 0
    _lines: deque[tuple[int, str]] = field(default_factory=deque)
    _answers: list[Answer] = field(default_factory=list)

    def read(self) -> None:
        """Read the complete lines that were appended since the last call."""
        file = self.folder / LINES
        if not file.is_file():
            return
        with file.open("rb") as lines:
            lines.seek(self._offset)
            new = lines.read()
        # The runner may be in the middle of a line: its rest is read next time.
        end = new.rfind(b"\n") + 1
        self._offset += end
        for line in new[:end].splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "step" in line:
            # The share never goes back, as a bar that does would be taken for a mistake.
            self.step, self.share = line["step"], max(self.share, float(line["share"]))
        elif "trial" in line:
            self.trial, self._run, self._stream = line["trial"], line["run"], line["stream"]
            self.come = self._before = None
            self.samples, self._answers, self._bytes, self.wrong = [], [], 0, ""
            self._lines.clear()
            self.so_far = None
        elif "come" in line:
            self._before, self.come, self._started = self.come, line["come"], line["started"]
            self.samples += [(at, rss, cpu) for at, rss, cpu in line["samples"]]
            for received, text in line["answers"]:
                self._add(received, text)
        elif "judged" in line:
            self.outcomes.append(
                JudgedTrial(line["judged"], line["judgement"], float(line["precision"]), float(line["recall"]))
            )
            self.trial, self.so_far = "", None

    def _add(self, received: int, text: str) -> None:
        """Buffer a line of the engine for judging, or give up if there are too many."""
        self._bytes += len(text)
        if self._bytes > ANSWER_BYTES and not self.wrong:
            self.wrong = "It has too many answers to be judged while it runs."
        # Nothing is kept for a verdict that will not be given.
        if self.wrong:
            self._lines.clear()
            self._answers.clear()
        else:
            self._lines.append((received, text))

    def _decode(self) -> None:
        """Decode buffered lines as answers, up to the first invalid one."""
        while self._lines and not self.wrong:
            received, text = self._lines.popleft()
            try:
                output = decode_output(text.encode())
            except LineError as error:
                self.wrong = f"A line of the engine is not an answer: {error}"
                return
            if not isinstance(output, Late):
                self._answers.append(replace(output, received=received))

    def verdict(self) -> Verdict | None:
        """An intermediate verdict on the current run up to the newest answered instant; ``None`` without one.

        Later reports are left out, as their answers may still be on the way. Delays are known in paced runs.
        """
        self._decode()
        horizon = self._horizon()
        if not self.trial or self.wrong or horizon is None:
            return None
        run = read_run(self.folder / self._run, parse)
        if run.header.semantics.clock is not Clock.APPLICATION:
            self.wrong = "Its windows are over arrival times, so it is judged at its end."
            return None
        verdict_ = judge_run(_until(run, self._answers, horizon, self._started), Path(self._stream), Means(_no_spark))
        if not verdict_.windows and verdict_.evaluator is not None:
            return None  # no report is expected yet
        if verdict_.judgement is Judgement.UNKNOWN:
            self.wrong = f"Not judged while it runs: {verdict_.reason}"
            return None
        self.so_far = verdict_
        return verdict_

    def _horizon(self) -> int | None:
        """The time (ms) up to which to judge reports: the newest answered instant, else the previous feed position."""
        instants = [answer.instant for answer in self._answers if answer.instant is not None]
        if not self._answers or self.come is None:
            return None
        # An engine may name an instant beyond the time that it was fed.
        return min(self.come, max(instants)) if instants else self._before


def _until(run: Run, answers: Sequence[Answer], horizon: int, started: int) -> Run:
    """The run cut off at a time (ms), with the answers up to then."""
    kept = tuple(answer for answer in answers if answer.instant is None or answer.instant <= horizon)
    header = replace(run.header, advanced_to=horizon, started=started, failure=None)
    return replace(run, header=header, answers=kept)


def _no_spark() -> NoReturn:
    raise RefusedError("it is too large to be judged while it runs")
