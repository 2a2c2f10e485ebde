"""The verdict in words: one card per series, and the sentence over all of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamgauge.model.counts import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.model.verdict import Evaluator, Judgement, Verdict
from streamgauge.report.findings import findings
from streamgauge.report.numbers import NOTHING, duration, moment, percent
from streamgauge.report.series import Series

EVALUATORS: dict[Evaluator | None, str] = {
    "definition": "the definition, window by window with pyoxigraph",
    "changes": "the incremental evaluator",
    "spark": "Spark, all windows in one job",
    None: "nobody",
}
RULES = {
    "streamgauge": "one definition of precision and recall for all semantics",
    "csrbench": "CSRBench's, quirks included: reports in order, sets of rows, times ignored",
    "yabench": "YABench's, quirks included: closed borders, reports paired by index",
}
"""Whose rules judged, in words."""
ICONS = {Judgement.RIGHT: "right", Judgement.LATE: "late", Judgement.WRONG: "wrong", Judgement.UNKNOWN: "unknown"}


@dataclass(frozen=True)
class Card:
    """The verdict on one series: icon name, words, sentences, and facts as (name, value)."""

    index: int
    label: str
    icon: str
    words: str
    sentences: tuple[str, ...]
    failures: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def cards(series: Sequence[Series]) -> list[Card]:
    """One card per series."""
    return [_card(one) for one in series]


def _card(one: Series) -> Card:
    worst = one.judgement
    count = sum(verdict.judgement is worst for _, verdict in one.runs)
    words = worst.value.capitalize()
    if len(one.runs) > 1:
        words += f" in {count:,} of {len(one.runs):,} repetitions"
    sentences = _sentences(one, worst)
    failures = dict.fromkeys(run.header.failure for run, _ in one.runs if run.header.failure)
    cautions = tuple(dict.fromkeys(sentence for _, verdict in one.runs for sentence in verdict.cautions))
    shown = (*cautions[:5], *sentences[:3])
    if len(sentences) > 3:
        shown += (f"And {counted(len(sentences) - 3, 'other outcome')}: see the table.",)
    shown += tuple(dict.fromkeys(found for _, verdict in one.runs for found in findings(one.unit, verdict)))[:5]
    return Card(one.index, one.label, ICONS[worst], words, shown, tuple(failures), _facts(one))


def _sentences(one: Series, worst: Judgement) -> list[str]:
    """The distinct explanations of the worst repetitions, told apart by the first repetition that each is about."""
    found: dict[str, str] = {}
    for run, verdict in one.runs:
        if verdict.judgement is worst:
            found.setdefault(explanation(one.unit, verdict), one.repetition(run.header))
    if len(found) == 1:
        return list(found)
    return [f"{name.capitalize()}: {sentence}" for sentence, name in found.items()]


def explanation(unit: str, verdict: Verdict) -> str:
    """Why the judgement is what it is, in a sentence."""
    total = counted(len(verdict.windows), unit)
    if verdict.judgement is Judgement.UNKNOWN:
        return verdict.reason or "No reason was given."
    if verdict.judgement is Judgement.RIGHT:
        return f"Every one of {total} was answered exactly as expected."
    if verdict.judgement is Judgement.LATE:
        late = f"{verdict.late:,} of them later than {_allowed(verdict)} (at most {duration(verdict.max_delay)})"
        return f"Every one of {total} was answered as expected, {late}."
    bad = sum(not window.right for window in verdict.windows)
    text = (
        f"{bad:,} of {total} not as expected: precision {percent(verdict.precision)}, recall {percent(verdict.recall)}"
    )
    counts = [f"{verdict.missed:,} missed"] * bool(verdict.missed) + [f"{verdict.surplus:,} surplus"] * bool(
        verdict.surplus
    )
    counts += [f"{verdict.late:,} later than {_allowed(verdict)}"] * bool(verdict.late)
    return ", ".join([text, *counts]) + "." + (f" {verdict.reason}" if verdict.reason else "")


def _allowed(verdict: Verdict) -> str:
    return "allowed" if verdict.delay_bound is None else f"the {duration(verdict.delay_bound)} allowed"


def _facts(one: Series) -> tuple[tuple[str, str], ...]:
    return facts_of(one.header, [verdict for _, verdict in one.runs])


def facts_of(header: RunHeader, verdicts: Sequence[Verdict]) -> tuple[tuple[str, str], ...]:
    """Who was judged by whom, how: the lines under a verdict; engine and semantics come first."""
    found = [
        ("Engine", header.engine),
        ("Semantics", f"{header.semantics.name}: {in_short(header.semantics)}"),
        ("Judged by", either(EVALUATORS[verdict.evaluator] for verdict in verdicts)),
        ("Rules", either(RULES.get(verdict.rules, f"as {verdict.rules} judged") for verdict in verdicts)),
        ("t0", either(NOTHING if verdict.t0 is None else moment(verdict.t0) for verdict in verdicts)),
        ("Horizon", either(_horizon(header, verdict) for verdict in verdicts)),
        ("Tolerance", either(verdict.tolerance or "none: terms are compared exactly" for verdict in verdicts)),
        ("Pace", pace(header.factor)),
    ]
    clocks = dict.fromkeys(verdict.other_clock for verdict in verdicts if verdict.other_clock)
    for clock, precision, recall in clocks:
        found.append((f"By {clock} time", f"precision {percent(precision)}, recall {percent(recall)}"))
    return tuple(found)


def _horizon(header: RunHeader, verdict: Verdict) -> str:
    """How far the recording's time came; reports of later instants were not due."""
    end = header.advanced_to if verdict.horizon is None else verdict.horizon
    return f"{moment(end)}: no report was due after it"


def either(values: Iterable[str]) -> str:
    """The distinct values, joined."""
    distinct = list(dict.fromkeys(values))
    return " or ".join(distinct[:4]) + (f" or {len(distinct) - 4} others" if len(distinct) > 4 else "")


def in_short(semantics: Semantics) -> str:
    """The fields of a semantics that explain most, in a line."""
    report = " and ".join(sorted(strategy.value for strategy in semantics.report))
    return f"{report}; {semantics.r2s.value}; windows {semantics.borders.value}; tick by {semantics.tick.value}"


def pace(factor: float | None) -> str:
    """How fast the elements were fed, in words."""
    if factor is None:
        return "as fast as the engine took the elements"
    return "real time" if factor == 1 else f"{factor:g} times real time"


def headline(series: Sequence[Series]) -> str:
    """The verdict over all runs in a sentence."""
    tally = Counter(verdict.judgement for one in series for _, verdict in one.runs)
    total = sum(tally.values())
    order = [judgement for judgement in Judgement if tally[judgement]]
    if len(order) == 1:
        subject = "The run is" if total == 1 else f"All {total:,} runs are"
        return f"{subject} {_words(order[0])}."
    parts = [
        f"{tally[judgement]:,} {'is' if tally[judgement] == 1 else 'are'} {_words(judgement)}" for judgement in order
    ]
    return f"Of {total:,} runs, {', '.join(parts[:-1])} and {parts[-1]}."


def _words(judgement: Judgement) -> str:
    return "not judged (unknown)" if judgement is Judgement.UNKNOWN else judgement.value
