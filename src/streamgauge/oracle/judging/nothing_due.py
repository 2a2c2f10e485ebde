"""Runs in which no report was due: the verdict is unknown, with the likely cause as a sentence."""

from dataclasses import replace
from typing import Final

from streamgauge.model.phrases import counted
from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.semantics.beginning import awaited

_TIMES: Final = "are the times of its elements those that are meant (--time-property, --time-in)?"
_HORIZON: Final = "let time go on until windows close (--advance-to, [feed] advance_to)"


def over_nothing(run: Run, verdict: Verdict) -> Verdict:
    """The verdict, but unknown instead of right if no report was due and none was answered."""
    if verdict.windows or verdict.judgement not in (Judgement.RIGHT, Judgement.LATE):
        return verdict
    return replace(verdict, judgement=Judgement.UNKNOWN, reason=nothing_due(run, verdict.t0))


def nothing_due(run: Run, t0: int | None) -> str:
    """Why no report was due, and what to do, as a sentence.

    Worked example: frames at 0 to 2,000 ms under windows of a minute: the first window closes at 60,000 ms, and the
    horizon is 2,000 ms.
    """
    times = [fed.time for fed in run.fed if fed.sequence >= 0]
    if run.fed and not times:
        return "No report was due, because no element was fed: is the stream empty, or another one?"
    span = max(times) - min(times) if times else None
    fed = "" if span is None else f"{counted(len(times), 'element')} span {span:,} ms and "
    end = run.header.advanced_to
    window = max((window.window for window in run.header.query.windows), key=lambda window: window.slide, default=None)
    if window is None:
        return f"No report was due: {fed}time reached {end:,} ms; {_HORIZON}."
    unit = "triples" if window.kind == "count" else "ms"
    shown = f"the window has {window.size:,} {unit} and slides by {window.slide:,}"
    begun = "" if t0 is None else f" from {t0:,} ms"
    semantics = run.header.semantics
    if first := awaited(run.header.query.windows, semantics, semantics.t0 if t0 is None else t0, end):
        shown, begun = f"{first} ({shown}", f"{begun})"
    return f"No report was due: {fed}time reached {end:,} ms, but {shown}{begun}; {_TIMES} Or {_HORIZON}."
