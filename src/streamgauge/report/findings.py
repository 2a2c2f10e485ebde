"""What judging found beyond precision and recall, in sentences: undecided rows, fitting borders, the diagnosis."""

from collections.abc import Iterator, Sequence

from streamgauge.model.counts import counted
from streamgauge.model.semantics import Borders
from streamgauge.model.verdict import Diagnosis, Part, Verdict, WindowVerdict
from streamgauge.report.numbers import NOTHING, duration, interval, moment, percent

NAMED = 5
"""How many late reports are named."""
OTHERS = 2
"""How many models that give the same answers are named beside the first."""


def findings(unit: str, verdict: Verdict) -> tuple[str, ...]:
    """The sentences about one verdict, none when there is nothing to say; ``unit`` is ``window`` or ``report``."""
    return (
        *late_ones(unit, verdict),
        *_undecided(verdict),
        *_fitting(unit, verdict),
        *diagnosed(verdict.diagnosis),
    )


def late_ones(unit: str, verdict: Verdict) -> Iterator[str]:
    """Which reports came later than allowed, the first of them by number, with their delays."""
    late = [window for window in verdict.windows if window.late]
    if not late:
        return
    shown = ", ".join(f"{unit} {window.index:,} ({duration(window.delay)})" for window in late[:NAMED])
    more = f" and {len(late) - NAMED:,} more" if len(late) > NAMED else ""
    bound = "" if verdict.delay_bound is None else f" than {duration(verdict.delay_bound)}"
    yield f"Later{bound}: {shown}{more}."


def _undecided(verdict: Verdict) -> Iterator[str]:
    if verdict.undecided:
        verb = "is" if verdict.undecided == 1 else "are"
        yield (
            f"{counted(verdict.undecided, 'row')} {verb} undecided: so near a bound of FILTER or HAVING that either "
            "answer is right. They count for neither side."
        )


def _fitting(unit: str, verdict: Verdict) -> Iterator[str]:
    moved = [window for window in verdict.windows if shifted(window)]
    wrong = [window for window in verdict.windows if window.fitted is not None and not window.right]
    if not wrong:
        return
    exact = sum(window.fitted == (1.0, 1.0) for window in moved)
    yield (
        f"Of {counted(len(wrong), unit)} answered wrongly, {exact:,} {'fits' if exact == 1 else 'fit'} exactly under "
        f"other borders and {len(moved) - exact:,} better."
    )


def shifted(window: WindowVerdict) -> bool:
    """Whether other borders than the declared ones fit the answer best."""
    return window.borders is not None and window.borders != (window.start, window.end)


def fitted(window: WindowVerdict, borders: Borders) -> str:
    """The borders that fit best and the scores under them; nothing when these are the declared ones."""
    if window.borders is None or window.fitted is None or not shifted(window):
        return NOTHING
    precision, recall = window.fitted
    return f"{interval(*window.borders, borders)}: {percent(precision)}, {percent(recall)}"


def diagnosed(diagnosis: Diagnosis | None) -> Iterator[str]:
    """The diagnosis with its proof; where no model fits, the closest with its distance."""
    if diagnosis is None:
        return
    said = f"{diagnosis.differs:,} of {counted(diagnosis.reports, 'report')} differ otherwise"
    if diagnosis.exact:
        first, *others = diagnosis.models
        yield f"Diagnosis: {model(first)} So every report comes out exactly as recorded; {said}."
        for at, other in enumerate(others[:OTHERS], 1):
            how = "" if at < diagnosis.equal else ", with more free choices"
            yield f"The same answers{how}: {model(other)}"
        if len(others) > OTHERS:
            yield f"{counted(len(others) - OTHERS, 'more model')} of the same answers: streamgauge explain lists them."
    elif diagnosis.models:
        yield (
            f"Diagnosis: none fits. The closest: {model(diagnosis.models[0])} It still differs in "
            f"{counted(diagnosis.distance, 'report')}; {said}."
        )
    elif diagnosis.differs:
        yield f"Diagnosis: none fits; {said.removesuffix(' otherwise')} under the declared semantics."
    if diagnosis.exact and diagnosis.t0 is not None:
        yield f"t0 of the diagnosis: {moment(diagnosis.t0)}."


def model(parts: Sequence[Part]) -> str:
    """A model in words: its parts' sentences."""
    return " ".join(part.sentence.rstrip(".") + "." for part in parts) or "The declared semantics."
