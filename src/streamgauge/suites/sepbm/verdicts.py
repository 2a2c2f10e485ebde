"""A recording analysed, its channels judged by the common oracle: continuous queries over landmark facts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.formats.making import share
from streamgauge.formats.run import RunError, read_run
from streamgauge.formats.verdict import read_verdict, write_verdict
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.suites.sepbm import recorded
from streamgauge.suites.sepbm.analysing import Analysis, analyse, in_effect
from streamgauge.suites.sepbm.configuration import Stored
from streamgauge.suites.sepbm.contract import Due, Recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str, int, int], None]
"""Told what is done next, and how many of how many steps are done."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What is needed: ``spark`` makes the session when there is a first use of it."""

    spark: "Callable[[], SparkSession]"
    tell: Tell = lambda _what, _done, _of: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A recording, its metrics, and the verdicts on its channels (none where it was not judged)."""

    recording: Recording
    analysis: Analysis
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing was missed or told without reason, and every verdict that there is says so too."""
        judged = (each.judgement in {Judgement.RIGHT, Judgement.LATE} for each in self.verdicts.values())
        found = self.recording.failure is None and not self.analysis.missed and not self.analysis.surplus
        return found and all(judged)


def outcome(folder: Path, configuration: Stored, judging: Judging) -> Outcome:
    """The recording in a folder, analysed; RecordingError and ConfigurationError name the file."""
    recording = recorded.read(folder)
    return Outcome(recording, analyse(due(configuration, recording, judging), recording), kept(folder, recording))


def due(configuration: Stored, recording: Recording, judging: Judging) -> Sequence[Due]:
    """What the channels were due in the order in which the publications took effect."""
    order = another_order(configuration, recording)
    if not order:
        return tuple(configuration.due())
    from streamgauge.suites.sepbm.reference import due as due_in

    return due_in(judging.spark(), configuration, order, lambda what: judging.tell(f"what was due: {what}", 0, 1))


def another_order(configuration: Stored, recording: Recording) -> tuple[int, ...]:
    """All publications as they took effect, those that were not published last; empty where it is the sequence's."""
    effect = [each.number for each in in_effect(recording.published)]
    if effect == sorted(effect):
        return ()
    done = set(effect)
    return (*effect, *(each.number for each in configuration.sequence() if each.number not in done))


def judge(folder: Path, configuration: Stored, judging: Judging, *, again: bool = True) -> dict[str, Verdict]:
    """The common oracle's verdict on every channel of the recording in a folder, kept in the channels' run folders.

    Without ``again`` the verdicts stand that are there.
    """
    recording = recorded.read(folder)
    judging.tell("the facts that stood", 0, len(recording.channels))
    _facts(folder, configuration, recording, judging)
    verdicts = {}
    for done, name in enumerate(recording.channels):
        if not again and (before := _verdict(folder / recorded.CHANNELS / name)) is not None:
            verdicts[name] = before
            continue
        judging.tell(f"judging {name}", done, len(recording.channels))
        run = read_run(folder / recorded.CHANNELS / name, parse)
        verdicts[name] = judge_run(run, folder / recorded.FACTS, Means(judging.spark))
        write_verdict(folder / recorded.CHANNELS / name, verdicts[name])
    return verdicts


def _verdict(folder: Path) -> Verdict | None:
    try:
        return read_verdict(folder)
    except RunError:
        return None


def kept(folder: Path, recording: Recording) -> dict[str, Verdict]:
    """The verdicts that ``judge`` left, none unless all are there."""
    try:
        return {name: read_verdict(folder / recorded.CHANNELS / name) for name in recording.channels}
    except RunError:
        return {}


def _facts(folder: Path, configuration: Stored, recording: Recording, judging: Judging) -> None:
    """The stream that all channels are judged on; that of the sequence's own order is made once for a configuration."""
    if (folder / recorded.FACTS).exists():
        return
    from streamgauge.suites.sepbm.histories import history

    order = another_order(configuration, recording)
    if order:
        recorded.write_facts(folder, history(judging.spark(), configuration, order))
        return
    if not (configuration.folder / recorded.FACTS).exists():
        recorded.write_facts(configuration.folder, history(judging.spark(), configuration))
    share(configuration.folder / recorded.FACTS, folder / recorded.FACTS)
