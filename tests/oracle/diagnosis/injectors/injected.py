"""The injectors: into the engine (a World becomes another), or into its reports; each draws its own place."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import floor
from random import Random

from streamgauge.model.query import Window
from streamgauge.model.semantics import CQL, Borders, EmptyAggregate, Grain, Report, Scope
from tests.oracle.diagnosis.injectors.shapes import Shape
from tests.oracle.diagnosis.injectors.world import Graph, Told, World

Into = Callable[[Random, World, Shape], World | None]
IntoReports = Callable[[Random, Told, World], Told | None]


def borders(rng, world, shape):
    others = [Border for Border in Borders if Border is not world.semantics.borders]
    return _semantics(world, borders=rng.choice(others))


def partial_head(rng, world, shape):
    return _semantics(world, partial_head=not world.semantics.partial_head)


def operator(rng, world, shape):
    others = [item for item in CQL if item is not world.semantics.r2s]
    return _semantics(world, r2s=rng.choice(others), r2s_able=frozenset(CQL))


def empty_answers(rng, world, shape):
    return _semantics(world, notify_empty=not world.semantics.notify_empty)


def empty_windows(rng, world, shape):
    return _semantics(world, report=world.semantics.report ^ {Report.NON_EMPTY})


def strategy(rng, world, shape):
    report = world.semantics.report ^ {Report.WINDOW_CLOSE, Report.CONTENT_CHANGE}
    return _semantics(world, report=report)


def pure_range(rng, world, shape):
    if Report.CONTENT_CHANGE not in world.semantics.report:
        return None
    return _semantics(world, scope=Scope.RANGE, borders=rng.choice((Borders.CLOSED, Borders.CLOSED_OPEN)))


def tumbling(rng, world, shape):
    window = world.window
    return None if window.size == window.slide else replace(world, window=Window(window.size, window.size))


def short_range(rng, world, shape):
    window = world.window
    return None if window.size == window.slide else replace(world, window=Window(window.slide, window.slide))


def size_off(rng, world, shape):
    size = world.window.size + rng.choice((-1, 1)) * world.semantics.time_unit
    return replace(world, window=Window(size, world.window.slide)) if size > 0 else None


def slide_off(rng, world, shape):
    slide = world.window.slide + rng.choice((-1, 1)) * world.semantics.time_unit
    return replace(world, window=Window(world.window.size, slide)) if slide > 0 else None


def no_filter(rng, world, shape):
    return _text(world, shape.unfiltered)


def no_distinct(rng, world, shape):
    return _text(world, shape.distinct)


def distinct_rows(rng, world, shape):
    return replace(world, rows=lambda rows: list(dict.fromkeys(rows)))


def optional_join(rng, world, shape):
    return _text(world, shape.joined)


def no_static(rng, world, shape):
    return replace(world, static=()) if world.static else None


def kept_side(rng, world, shape):
    return _text(world, rng.choice(shape.kept)) if shape.kept else None


def free_side(rng, world, shape):
    return _text(world, rng.choice(shape.unconstrained)) if shape.unconstrained else None


def never_evicts(rng, world, shape):
    if world.hold:
        return None

    def hold(here: World, number: int, instant: int, graph: Graph) -> Graph:
        closed = here.semantics.borders is not Borders.CLOSED_OPEN or Report.WINDOW_CLOSE not in here.semantics.report
        until = instant if closed else instant - 1
        return [(time, triple) for time, triple in here.facts() if here.t0 <= time <= until]

    return replace(world, hold=hold)


def jitter(rng, world, shape):
    """One or two borders move by up to one time unit; a border that two windows share moves for both."""
    semantics, window = world.semantics, world.window
    if Report.WINDOW_CLOSE not in semantics.report or Report.CONTENT_CHANGE in semantics.report or world.hold:
        return None
    first = window.slide if semantics.partial_head else window.size
    closes = list(range(world.t0 + first, world.advanced_to + 1, window.slide))
    if len(closes) < 5:
        return None
    moved = {}
    for close in rng.sample(closes, rng.choice((1, 1, 2))):
        moved[close if window.size == window.slide else (close, rng.choice("se"))] = rng.choice((-1, 1)) * rng.randint(
            1, semantics.time_unit
        )

    def hold(here: World, number: int, instant: int, graph: Graph) -> Graph:
        start, end = instant - here.window.size, instant
        if here.window.size == here.window.slide:
            low, high = start + moved.get(start, 0), end + moved.get(end, 0)
        else:
            low, high = start + moved.get((instant, "s"), 0), end + moved.get((instant, "e"), 0)
        open_low = here.semantics.borders is Borders.OPEN_CLOSED
        open_high = here.semantics.borders is Borders.CLOSED_OPEN
        return [
            (time, triple)
            for time, triple in here.facts()
            if time >= here.t0
            and (low < time if open_low else low <= time)
            and (time < high if open_high else time <= high)
        ]

    return replace(world, hold=hold)


def element_lost(rng, world, shape):
    at = rng.choice((0, len(world.elements) - 1, rng.randrange(len(world.elements))))
    return replace(world, elements=world.elements[:at] + world.elements[at + 1 :])


def coarse_times(rng, world, shape):
    if Report.CONTENT_CHANGE in world.semantics.report:
        return None
    return _stream(world, lambda time: time - time % 1000)


def shifted_times(rng, world, shape):
    by = rng.choice((-1, 1)) * world.semantics.time_unit
    return _stream(world, lambda time: time + by)


def on_match_only(rng, world, shape):
    if world.gate or Report.CONTENT_CHANGE not in world.semantics.report or not shape.matches:
        return None

    def gate(seen):
        return bool(Counter(seen[-1]) - Counter(seen[-2] if len(seen) > 1 else []))

    return replace(world, gate=gate, matches=shape.matches)


def from_first_match(rng, world, shape):
    if world.gate or Report.WINDOW_CLOSE not in world.semantics.report or not shape.matches:
        return None
    report = world.semantics.report - {Report.NON_EMPTY}
    changed = _semantics(world, report=report, notify_empty=True)
    return replace(changed, gate=lambda seen: any(seen), matches=shape.matches)


def goes_on(rng, world, shape):
    return replace(world, advanced_to=world.advanced_to + rng.randint(1, 4) * world.window.slide)


def no_minus(rng, world, shape):
    return _text(world, shape.unnegated)


def branch_lost(rng, world, shape):
    return _text(world, rng.choice(shape.branches)) if shape.branches else None


def comparison(rng, world, shape):
    """One comparison of the text with another operator."""
    places = list(re.finditer(r"(?<=\?value|value1) (<=|>=|!=|<|>|=) ", world.text))
    if not places:
        return None
    place = rng.choice(places)
    other = rng.choice([item for item in ("<", "<=", "=", "!=", ">=", ">") if item != place[1]])
    return _text(world, f"{world.text[: place.start()]} {other} {world.text[place.end() :]}")


def aggregate(rng, world, shape):
    return _text(world, world.text.replace("AVG(", rng.choice(("MIN(", "MAX(", "SUM(", "COUNT("))))


def other_window(rng, world, shape):
    """Another size and another slide, in seconds."""
    window = world.window
    size = rng.randint(1, (window.size + window.slide) // 1000) * 1000
    slide = rng.randint(1, 2 * window.slide // 1000 + 1) * 1000
    return None if size == window.size or slide == window.slide else replace(world, window=Window(size, slide))


def start_moves(rng, world, shape):
    """The start moves on with each answer, as if t0 were a little later."""
    window = world.window
    slide = window.slide + rng.choice((1000, 2000, window.slide, 2 * window.slide))
    return replace(world, window=Window(window.size, slide))


def newest_per_sensor(rng, world, shape):
    """Of the observations of a sensor that a window holds, only the newest, or only the oldest."""
    last = rng.random() < 0.6

    def kept(graph: Graph) -> Graph:
        sensor = {triple[0]: triple[2] for _, triple in graph if triple[1].endswith("procedure>")}
        chosen: dict[str, str] = {}
        for obs, of in sensor.items():
            if last or of not in chosen:
                chosen[of] = obs
        numbers = {obs.rpartition("_")[2] for obs in chosen.values()}
        return [(time, triple) for time, triple in graph if triple[0].rpartition("_")[2] in numbers]

    return _content(world, kept)


def capped(rng, world, shape):
    """At most n observations, of four triples each."""
    most = rng.randint(1, 4)
    return _content(world, lambda graph: graph[-4 * most :])


def first_only(rng, world, shape):
    most = rng.randint(1, 4)
    return _content(world, lambda graph: graph[: 4 * most])


def full(rng, world, shape):
    """What comes while the last RANGE holds n elements is dropped."""
    most, kept = rng.randint(1, 4), []
    for element in world.elements:
        if len([other for other in kept if element.time - other.time < world.window.size]) < most:
            kept.append(element)
    return replace(world, elements=tuple(kept))


def drifting_clock(rng, world, shape):
    """The engine's clock is fast or slow by some per cent."""
    rate = Fraction(rng.choice((-1, 1)) * rng.choice((1, 2, 5, 10, 15, 20)), 100)
    shown = world.t0 + int((world.advanced_to - world.t0) * (1 + rate))

    def time(here: World, instant: int, at: int) -> int:
        return here.t0 + floor((at - here.t0) * (1 + rate))

    until = shown if rng.random() < 0.5 and world.advanced_to > world.t0 else world.advanced_to
    return _moved(replace(world, advanced_to=until), time)


def drifting_closes(rng, world, shape):
    """The k-th window is k times some milliseconds late, or early."""
    first = world.t0 + (world.window.slide if world.semantics.partial_head else world.window.size)
    late = rng.choice((-1, 1)) * rng.choice((10, 50, 100, 200)) * world.window.slide // 1000

    def time(here: World, instant: int, at: int) -> int:
        return at - (instant - first) // here.window.slide * late

    return _moved(world, time)


def _content(world: World, kept: Callable[[Graph], Graph]) -> World | None:
    """The world whose windows hold less, where reports follow no change of the content."""
    if world.hold or Report.CONTENT_CHANGE in world.semantics.report:
        return None
    return replace(world, hold=lambda here, number, instant, graph: kept(graph))


def _moved(world: World, time: Callable[[World, int, int], int]) -> World | None:
    """The world in which a window sees other times than the stream has."""
    if world.hold or Report.CONTENT_CHANGE in world.semantics.report:
        return None

    def hold(here: World, number: int, instant: int, graph: Graph) -> Graph:
        low, high = instant - here.window.size, instant
        if here.semantics.borders is Borders.OPEN_CLOSED:
            low += 1
        if here.semantics.borders is Borders.CLOSED_OPEN:
            high -= 1
        return [(at, triple) for at, triple in here.facts()
                if at >= here.t0 and low <= time(here, instant, at) <= high]  # fmt: skip

    return replace(world, hold=hold)


def null_average(rng, world, shape):
    if not shape.aggregate:
        return None
    if rng.random() < 0.5:
        return replace(world, over_nothing='"null"', matches=shape.matches)
    value = rng.choice((EmptyAggregate.UNBOUND, EmptyAggregate.EMPTY_STRING, EmptyAggregate.NO_ROW))
    return replace(_semantics(world, empty_aggregate=value), matches=shape.matches)


def rounded(rng, world, shape):
    if not shape.aggregate:
        return None
    digits = rng.choice((0, 1, 2))
    return _numbers(world, lambda text: str(round(Decimal(text), digits).normalize()), None)


def integers(rng, world, shape):
    if shape.aggregate or "?value" not in shape.text.split("{")[0]:
        return None  # a computed number of another datatype is the same number
    return _numbers(world, lambda text: text, "integer")


def _numbers(world, change, kind):
    double = "^^<http://www.w3.org/2001/XMLSchema#double>"
    to = double if kind is None else f"^^<http://www.w3.org/2001/XMLSchema#{kind}>"

    def one(term):
        if term is None or not term.endswith(double) or "E" in term:
            return term
        text = change(term[1 : term.index('"', 1)])
        lexical = str(int(Decimal(text))) if kind == "integer" else f"{Decimal(text):f}"
        return f'"{lexical}"{to}'

    return replace(world, rows=lambda rows: [tuple(map(one, row)) for row in rows])


def _semantics(world: World, **fields) -> World:
    return replace(world, semantics=replace(world.semantics, **fields))


def _text(world: World, text: str | None) -> World | None:
    return None if text is None or text == world.text else replace(world, text=text)


def _stream(world: World, time: Callable[[int], int]) -> World:
    return replace(world, elements=tuple(replace(element, time=time(element.time)) for element in world.elements))


def lost_head(rng, reports, world):
    return reports[rng.randint(1, max(1, len(reports) // 3)) :]


def lost_tail(rng, reports, world):
    return reports[: -rng.randint(1, max(1, len(reports) // 3))]


def lost_between(rng, reports, world):
    gone = set(rng.sample(range(len(reports)), _few(rng, reports)))
    return [report for i, report in enumerate(reports) if i not in gone]


def twice(rng, reports, world):
    again = set(rng.sample(range(len(reports)), _few(rng, reports)))
    return [item for i, one in enumerate(reports) for item in ([one, one] if i in again else [one])]


def stale(rng, reports, world):
    old = set(rng.sample(range(1, len(reports)), _few(rng, reports)))
    return [(now[0], reports[i - 1][1] if i in old else now[1]) for i, now in enumerate(reports)]


def swapped(rng, reports, world):
    if world.semantics.grain is Grain.ROW:
        return None
    at = rng.randrange(len(reports) - 1)
    results = list(reports)
    results[at], results[at + 1] = results[at + 1], results[at]
    return results


def merged(rng, reports, world):
    if world.semantics.grain is Grain.ROW:
        return None
    at = rng.randrange(len(reports) - 1)
    both = (reports[at][0], reports[at][1] + reports[at + 1][1])
    return [*reports[:at], both, *reports[at + 2 :]]


def delayed(rng, reports, world):
    return [(now[0], before[1]) for before, now in zip([(0, []), *reports], reports, strict=False)]


def rows_lost(rng, reports, world):
    results = [(instant, list(rows)) for instant, rows in reports]
    full = [i for i, (_, rows) in enumerate(results) if rows]
    if not full:
        return None
    for i in rng.sample(full, min(len(full), _few(rng, reports))):
        results[i][1].pop(rng.randrange(len(results[i][1])))
    return results


def rows_twice(rng, reports, world):
    results = [(instant, list(rows)) for instant, rows in reports]
    full = [i for i, (_, rows) in enumerate(results) if rows]
    if not full:
        return None
    for i in rng.sample(full, min(len(full), _few(rng, reports))):
        results[i][1].append(rng.choice(results[i][1]))
    return results


def _few(rng: Random, reports: Told) -> int:
    return rng.randint(1, max(1, min(3, (len(reports) - 1) // 3)))


ENGINE = (
    borders, partial_head, operator, empty_answers, empty_windows, strategy, pure_range, tumbling, short_range,
    size_off, slide_off, no_filter, no_distinct, distinct_rows, optional_join, no_static, kept_side, free_side,
    never_evicts, jitter, element_lost, coarse_times, shifted_times, on_match_only, from_first_match, null_average,
    rounded, integers, goes_on, no_minus, branch_lost, comparison, aggregate, other_window, start_moves,
    newest_per_sensor, capped, first_only, full, drifting_clock, drifting_closes,
)  # fmt: skip
REPORTS = (
    lost_head, lost_tail, lost_between, twice, stale, swapped, merged, delayed, rows_lost, rows_twice,
)  # fmt: skip
