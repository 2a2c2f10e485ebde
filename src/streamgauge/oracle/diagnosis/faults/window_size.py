"""The window is not the declared one: SLIDE equals RANGE, RANGE equals SLIDE, or one of them is off."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model.query import Window
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen


def proposals(seen: Seen) -> Iterator[Fault]:
    """Other sizes and slides of the first window that is not a landmark window."""
    windows = [window.window for window in seen.case.query.windows if window.window.kind != "landmark"]
    if not windows:
        return
    window, unit = windows[0], seen.case.semantics.time_unit
    for other in dict.fromkeys(others(window, unit)):
        if other != window:
            yield Fault(window_part(window, other), partial(change, window=window, other=other), family="window")


def others(window: Window, unit: int) -> Iterator[Window]:
    """Windows with size or slide off by a unit, a slide or a factor of 2, or exchanged."""
    size, slide, kind = window.size, window.slide, window.kind
    step = unit if kind == "time" else 1
    sizes = (slide, size - step, size + step, size - slide, size + slide, 2 * size, size // 2)
    slides = (size, slide - step, slide + step, 2 * slide, slide // 2)
    for other in sizes:
        if other > 0:
            yield Window(other, slide, kind)
            # A tumbling window of another size usually still tumbles.
            if slide == size:
                yield Window(other, other, kind)
    yield from (Window(size, other, kind) for other in slides if other > 0)
    yield Window(slide, size, kind)


def window_part(declared: Window, window: Window) -> Part:
    """The part that describes a window other than the declared one.

    Another slide alone cannot be told from a t0 that moves with each answer, and the sentence says so.
    """
    unit = "triples" if window.kind == "count" else "ms"
    text = f"RANGE {window.size:,} {unit}, SLIDE {window.slide:,} {unit}"
    sentence, later = f"The window is {text}, whatever the query asks for.", window.slide - declared.slide
    if later and window.size == declared.size and window.kind == "time":
        moved = f"{abs(later):,} ms {'on' if later > 0 else 'back'}"
        sentence += f" The same answers come from the declared SLIDE when t0 moves {moved} with each answer."
    return Part(f"window is {text}", sentence)


def change(case: Case, window: Window, other: Window) -> Case:
    """The case with ``window`` replaced by ``other`` in its query."""
    windows = tuple(
        replace(other_window, window=other) if other_window.window == window else other_window
        for other_window in case.query.windows
    )
    return case.asking(replace(case.query, windows=windows))
