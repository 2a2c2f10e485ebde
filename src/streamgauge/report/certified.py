"""A certificate as terminal output (rich) and as JSON values."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from streamgauge.model.phrases import counted
from streamgauge.report.fitting_table import FittingTable
from streamgauge.suites.conformance.certificate import BAD, DIMENSIONS, Certificate, CertifiedTask, TaskStanding
from streamgauge.suites.conformance.runner import ConformanceOutcome

_COLUMNS = (TaskStanding.PASSED, TaskStanding.REFUSED, TaskStanding.DEVIATING, TaskStanding.FLAKY, *sorted(BAD))


def certified_lines(certificate: Certificate) -> RenderableType:
    """Passed, refused, deviating and failing tasks with their reasons; then counts by feature."""
    shown = [column for column in _COLUMNS if certificate.counts()[column]]
    parts: list[RenderableType] = [Text(headline(certificate), style="bold")]
    parts += (Text(sentence) for sentence in shared_sentences(certificate))
    parts += _refused(certificate)
    parts += _deviating(certificate)
    parts += _bad(certificate)
    parts.append(_table(certificate, shown))
    return Group(*parts)


def outcome_line(outcome: ConformanceOutcome, listed: str | None) -> str:
    """The line of a finished task; ``listed`` is the name of the deviation that lists it."""
    sentence = f", listed under {listed!r}" if listed else ""
    if outcome.sentence:
        sentence += f": {' '.join(outcome.sentence.split())}"
    return f"{outcome.kind:<8}{outcome.name}{sentence}"


def headline(certificate: Certificate) -> str:
    """The counts, as a sentence."""
    counts = certificate.counts()
    tallies = [f"{counts[column]:,} {column}" for column in _COLUMNS if counts[column]]
    word = "certified" if certificate.good else "not certified"
    return f"{certificate.engine}: {word}, {counted(len(certificate.stood), 'task')}: {', '.join(tallies) or 'none'}"


def shared_sentences(certificate: Certificate) -> Iterator[str]:
    """The values of the semantics that explain most failing tasks, a sentence each."""
    for value in certificate.shared:
        against = counted(value.contradicting, "task") if value.contradicting else "none"
        yield (
            f"{value.explained:,} of {value.failing:,} failing tasks come out under {value.part.name} "
            f"({value.part.sentence.rstrip('.')}); of those that passed {against} would fail under it"
        )


def _refused(certificate: Certificate) -> Iterator[Text]:
    sentences = Counter(task.outcome.sentence for task in certificate.stood if task.standing is TaskStanding.REFUSED)
    if sentences:
        yield Text("refused by name:")
    for sentence, count in sentences.most_common():
        yield Text(f"  {count:>4}  {sentence}")


def _deviating(certificate: Certificate) -> Iterator[Text]:
    listed = Counter(task.deviation for task in certificate.stood if task.standing in _LISTED and task.deviation)
    if listed:
        yield Text("deviates as listed:")
    for deviation, count in listed.most_common():
        yield Text(f"  {count:>4}  {deviation.name}: {deviation.why or 'no reason is written'}")
        yield Text(f"        the oracle: {'; or '.join(deviation.findings)}", style="dim")
        if deviation.flaky:
            yield Text(f"        right now and then: {deviation.flaky}", style="dim")


_LISTED = frozenset({TaskStanding.DEVIATING, TaskStanding.FLAKY})


def _bad(certificate: Certificate) -> Iterator[Text]:
    for task in certificate.stood:
        if task.standing in BAD:
            yield Text(f"{task.standing}: {task.outcome.name}", style="red")
            yield Text(f"      {_bad_because(task)}")
    for case in certificate.unknown:
        yield Text(f"stale: {case}: listed, but there is no such task", style="red")
    for name in certificate.bare:
        yield Text(f"deviation {name!r} has no reason: write its why and source by hand", style="red")


def _bad_because(task: CertifiedTask) -> str:
    if task.standing is TaskStanding.STALE and task.deviation is not None:
        return f"listed under {task.deviation.name!r}, but it is {task.outcome.kind}"
    if task.standing is TaskStanding.OTHERWISE and task.deviation is not None:
        message = f"listed under {task.deviation.name!r}: {'; or '.join(task.deviation.findings)}"
        return f"{message}; but the oracle finds: {'; or '.join(task.found)}"
    return f"{task.outcome.sentence} ({task.outcome.asked.case.why})"


def _table(certificate: Certificate, shown: list[TaskStanding]) -> FittingTable:
    table = FittingTable("asked for", "", *(str(column) for column in shown), box=None)
    tally = certificate.tally()
    for dimension in DIMENSIONS:
        values = sorted(value for of, value in tally if of == dimension)
        for place, value in enumerate(values):
            counts = tally[dimension, value]
            # The name of a dimension is written once, in its first row.
            table.add_row("" if place else dimension, Text(value), *(str(counts[column] or "-") for column in shown))
    return table


def certified_json(certificate: Certificate) -> dict[str, object]:
    """The certificate as JSON values: every task with its standing and sentence, and the tallies."""
    tasks = [
        {
            "task": task.outcome.name,
            "case": task.outcome.asked.case.name,
            "theme": task.outcome.asked.case.theme,
            "semantics": task.outcome.asked.profile,
            "standing": str(task.standing),
            "sentence": task.outcome.sentence,
            "deviation": task.deviation.name if task.deviation else None,
        }
        for task in certificate.stood
    ]
    tally = [
        {"asked_for": dimension, "value": value, **{str(standing): count for standing, count in sorted(counts.items())}}
        for (dimension, value), counts in sorted(certificate.tally().items())
    ]
    return {
        "engine": certificate.engine,
        "certified": certificate.good,
        "counts": {str(standing): count for standing, count in sorted(certificate.counts().items())},
        "shared": [
            {
                "value": value.part.name,
                "sentence": value.part.sentence,
                "explained": value.explained,
                "failing": value.failing,
                "contradicting": value.contradicting,
            }
            for value in certificate.shared
        ],
        "unknown": list(certificate.unknown),
        "without_reason": list(certificate.bare),
        "tasks": tasks,
        "tally": tally,
    }
