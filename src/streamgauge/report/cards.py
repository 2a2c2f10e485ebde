"""Verdicts in sentences: a card per series, and a summary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Borders, Semantics
from streamgauge.model.verdict import Diagnosis, Evaluator, Judgement, Part, Verdict, WindowVerdict
from streamgauge.report.numbers import NOTHING, duration, interval, moment, percent
from streamgauge.report.series import Series

NAMED = 5
"""Maximum number of late reports in a sentence."""
OTHERS = 2
"""Maximum number of further models with the same answers."""


def findings(unit: str, verdict: Verdict) -> tuple[str, ...]:
    """The sentences about a verdict, if any; ``unit`` is ``window`` or ``report``."""
    return (*late_ones(unit, verdict), *_undecided(verdict), *_fitting(unit, verdict), *diagnosed(verdict.diagnosis))


def late_ones(unit: str, verdict: Verdict) -> Iterator[str]:
    """A sentence on the reports that were later than allowed, with the delays of the first ones."""
    # A generator: the first few are named, and ``others`` then counts what it has left.
    late = (window for window in verdict.windows if window.late)
    shown = ", ".join(f"{unit} {window.index:,} ({duration(window.delay)})" for window in islice(late, NAMED))
    if not shown:
        return
    others = sum(1 for _ in late)
    more = f" and {others:,} more" if others else ""
    bound = "" if verdict.delay_bound is None else f" than {duration(verdict.delay_bound)}"
    yield f"Later{bound}: {shown}{more}."


def _undecided(verdict: Verdict) -> Iterator[str]:
    if verdict.undecided:
        verb = "is" if verdict.undecided == 1 else "are"
        yield (
            f"{counted(verdict.undecided, 'row')} {verb} undecided: SPARQL leaves them open, and legal answers "
            "differ in them from the evaluator's own."
        )


def _fitting(unit: str, verdict: Verdict) -> Iterator[str]:
    wrong = [window for window in verdict.windows if window.fitted is not None and not window.right]
    moved = [window for window in wrong if shifted(window)]
    if wrong:
        exact = sum(window.fitted == (1.0, 1.0) for window in moved)
        how = f": {moves(moved)}" if moved else ""
        yield (
            f"Of {counted(len(wrong), unit)} answered wrongly, {exact:,} {'fits' if exact == 1 else 'fit'} exactly "
            f"under other borders and {len(moved) - exact:,} better{how}."
        )
    if verdict.judgement is not Judgement.RIGHT:
        yield from _righted(unit, verdict)


def _righted(unit: str, verdict: Verdict) -> Iterator[str]:
    """The windows that are right only because a published gracious mode moved their borders."""
    moved = [window for window in verdict.windows if window.right and shifted(window)]
    if moved:
        count = f"{len(moved):,} of {counted(len(verdict.windows), unit)}"
        yield f"{count} {'fits' if len(moved) == 1 else 'fit'} exactly only under moved borders: {moves(moved)}."


def moves(moved: Sequence[WindowVerdict]) -> str:
    """The shifts of borders in ms: ``starts by 40 to 62 ms, ends by -5 ms``."""
    pairs = [((window.start, window.end), window.borders) for window in moved if window.borders]
    starts = [borders[0] - start for (start, _), borders in pairs if start is not None]
    ends = [borders[1] - end for (_, end), borders in pairs if end is not None]
    return ", ".join(f"{name} by {_range(shifts)} ms" for name, shifts in (("starts", starts), ("ends", ends)))


def _range(shifts: Sequence[int]) -> str:
    low, high = min(shifts), max(shifts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def shifted(window: WindowVerdict) -> bool:
    """Whether the answer fits other borders than the declared ones best."""
    return window.borders is not None and window.borders != (window.start, window.end)


def fitted(window: WindowVerdict, borders: Borders) -> str:
    """The best borders with their scores; a dash if these are the declared ones."""
    if window.borders is None or window.fitted is None or not shifted(window):
        return NOTHING
    precision, recall = window.fitted
    return f"{interval(*window.borders, borders)}: {percent(precision)}, {percent(recall)}"


def diagnosed(diagnosis: Diagnosis | None) -> Iterator[str]:
    """The diagnosis with its proof; if no model fits, the closest model with its distance."""
    if diagnosis is None:
        return
    message = f"{diagnosis.differs:,} of {counted(diagnosis.reports, 'report')} differ otherwise"
    if diagnosis.exact:
        first, *others = diagnosis.models
        yield f"Diagnosis: {model(first)} So every report comes out exactly as recorded; {message}."
        for at, other in enumerate(others[:OTHERS], 1):
            how = "" if at < diagnosis.equal else ", with more free choices"
            yield f"The same answers{how}: {model(other)}"
        if len(others) > OTHERS:
            yield f"{counted(len(others) - OTHERS, 'more model')} of the same answers: streamgauge explain lists them."
    elif diagnosis.models:
        yield (
            f"Diagnosis: none fits. The closest: {model(diagnosis.models[0])} It still differs in "
            f"{counted(diagnosis.distance, 'report')}; {message}."
        )
    elif diagnosis.differs:
        yield f"Diagnosis: none fits; {message.removesuffix(' otherwise')} under the declared semantics."
    if diagnosis.exact and diagnosis.t0 is not None:
        yield f"t0 of the diagnosis: {moment(diagnosis.t0)}."


def model(parts: Sequence[Part]) -> str:
    """A diagnosed model in words: the sentences of its parts, or that it is the declared semantics."""
    return " ".join(part.sentence.rstrip(".") + "." for part in parts) or "The declared semantics."


EVALUATORS: dict[Evaluator | None, str] = {
    "definition": "the definition, window by window",
    "changes": "the incremental evaluator",
    "spark": "Spark, all windows in one job",
    None: "nobody",
}
RULES = {
    "streamgauge": "one definition of precision and recall for all semantics",
    "csrbench": "CSRBench's, quirks included: reports in order, sets of rows, times ignored",
    "yabench": "YABench's, quirks included: closed borders, reports paired by index",
}
"""The rules by which the run was judged, as sentences."""
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
    # Repetitions mostly find the same.
    shown += tuple(dict.fromkeys(finding for _, verdict in one.runs for finding in findings(one.unit, verdict)))[:5]
    return Card(one.index, one.label, ICONS[worst], words, shown, tuple(failures), _facts(one))


def _sentences(one: Series, worst: Judgement) -> list[str]:
    """The distinct explanations of the worst repetitions, each with the first repetition that it explains."""
    repetitions: dict[str, str] = {}
    for run, verdict in one.runs:
        if verdict.judgement is worst:
            repetitions.setdefault(explanation(one.unit, verdict), one.repetition(run.header))
    if len(repetitions) == 1:
        return list(repetitions)
    return [f"{name.capitalize()}: {sentence}" for sentence, name in repetitions.items()]


def explanation(unit: str, verdict: Verdict) -> str:
    """The reason for the judgement, as a sentence."""
    total = counted(len(verdict.windows), unit)
    if verdict.judgement is Judgement.UNKNOWN:
        return verdict.reason or "No reason was given."
    if verdict.judgement is Judgement.RIGHT:
        return next(_righted(unit, verdict), f"Every one of {total} was answered exactly as expected.")
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
    """The lines below a verdict: the run, its judge and the rules; engine and semantics come first."""
    pairs = [
        ("Engine", header.engine),
        ("Semantics", f"{header.semantics.name}: {in_short(header.semantics)}"),
        ("Judged by", either(EVALUATORS[verdict.evaluator] for verdict in verdicts)),
        ("Rules", either(RULES.get(verdict.rules, f"as {verdict.rules} judged") for verdict in verdicts)),
        (
            "First window begins (t0)",
            either(NOTHING if verdict.t0 is None else moment(verdict.t0) for verdict in verdicts),
        ),
        ("Horizon", either(_horizon(header, verdict) for verdict in verdicts)),
        ("Tolerance", either(verdict.tolerance or "none: terms are compared exactly" for verdict in verdicts)),
        ("Pace", pace(header.factor)),
    ]
    clocks = dict.fromkeys(verdict.other_clock for verdict in verdicts if verdict.other_clock)
    for clock, precision, recall in clocks:
        pairs.append((f"By {clock} time", f"precision {percent(precision)}, recall {percent(recall)}"))
    return tuple(pairs)


def _horizon(header: RunHeader, verdict: Verdict) -> str:
    """The end of the recording's time; reports of later instants were not due."""
    end = header.advanced_to if verdict.horizon is None else verdict.horizon
    return f"{moment(end)}: no report was due after it"


def either(values: Iterable[str]) -> str:
    """The distinct values, joined."""
    distinct = list(dict.fromkeys(values))
    return " or ".join(distinct[:4]) + (f" or {len(distinct) - 4} others" if len(distinct) > 4 else "")


def in_short(semantics: Semantics) -> str:
    """The most important fields of a semantics, in a line."""
    report = " and ".join(sorted(strategy.value for strategy in semantics.report))
    return f"{report}; {semantics.r2s.value}; windows {semantics.borders.value}; tick by {semantics.tick.value}"


def pace(factor: float | None) -> str:
    """The pace of the feed in words: unpaced, or a multiple of real time."""
    if factor is None:
        return "as fast as the engine took the elements"
    return "real time" if factor == 1 else f"{factor:g} times real time"


def headline(series: Sequence[Series]) -> str:
    """The verdict over all runs, as a sentence."""
    tally = Counter(verdict.judgement for one in series for _, verdict in one.runs)
    total = sum(tally.values())
    order = [judgement for judgement in Judgement if tally[judgement]]
    if len(order) == 1:
        subject = {1: "The run is", 2: "Both runs are"}.get(total, f"All {total:,} runs are")
        return f"{subject} {_words(order[0])}."
    parts = [
        f"{tally[judgement]:,} {'is' if tally[judgement] == 1 else 'are'} {_words(judgement)}" for judgement in order
    ]
    return f"Of {total:,} runs, {', '.join(parts[:-1])} and {parts[-1]}."


def _words(judgement: Judgement) -> str:
    return "not judged (unknown)" if judgement is Judgement.UNKNOWN else judgement.value
