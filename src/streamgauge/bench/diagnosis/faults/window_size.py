"""The window is not the one asked for: SLIDE as long as RANGE, RANGE as short as SLIDE, or one of them off."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.bench.diagnosis.models import Case, Fault, Seen
from streamgauge.model.query import Window
from streamgauge.model.verdict import Part


def proposals(seen: Seen) -> Iterator[Fault]:
    """Other sizes and slides of the first time-based window."""
    windows = [each.window for each in seen.case.query.windows if each.window.kind != "landmark"]
    if not windows:
        return
    window, unit = windows[0], seen.case.semantics.time_unit
    for other in dict.fromkeys(_others(window, unit)):
        if other != window:
            yield Fault(window_part(other), "window", partial(change, window=window, other=other))


def _others(window: Window, unit: int) -> Iterator[Window]:
    size, slide, kind = window.size, window.slide, window.kind
    step = unit if kind == "time" else 1
    sizes = (slide, size - step, size + step, size - slide, size + slide, 2 * size, size // 2)
    slides = (size, slide - step, slide + step, 2 * slide, slide // 2)
    for other in sizes:
        if other > 0:
            yield Window(other, slide, kind)
            if slide == size:
                yield Window(other, other, kind)
    yield from (Window(size, other, kind) for other in slides if other > 0)
    yield Window(slide, size, kind)


def window_part(window: Window) -> Part:
    """The part that names a window which is not the declared one."""
    unit = "triples" if window.kind == "count" else "ms"
    text = f"RANGE {window.size:,} {unit}, SLIDE {window.slide:,} {unit}"
    return Part(f"window is {text}", f"The window is {text}, whatever the query asks for.")


def change(case: Case, window: Window, other: Window) -> Case:
    """The case with another window in place of one of the query's."""
    windows = tuple(replace(each, window=other) if each.window == window else each for each in case.query.windows)
    return case.asking(replace(case.query, windows=windows))
