"""Box plots over repetitions."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.report import charts
from streamgauge.report.charts import ChartAxis, ChartDrawing, ChartSize, PlacedBox
from streamgauge.report.plots import STEADY, Figure, Plot, figure
from streamgauge.report.plots.lines import DELAY, PRECISION, RECALL, WindowMeasure
from streamgauge.report.series import Series, box, unit_over

BOXES = 24  # of each series, on a wide screen


def box_plots(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Three figures over the series that were repeated; one of equal values is only a sentence."""
    repeated = [one for one in series if len(one.runs) > 1]
    if repeated:
        for kind in (PRECISION, RECALL, DELAY):
            yield from _figure(drawing, repeated, kind)


def _figure(drawing: ChartDrawing, series: Sequence[Series], kind: WindowMeasure) -> Iterator[Figure]:
    values = {found for one in series for columns in _columns(one, kind).values() for found in columns}
    unit = unit_over(series)
    if not values:
        return
    if len(values) == 1:
        text = f"{kind.name} is {kind.show(values.pop())} in every {unit} of every repetition"
        yield Figure(text, "", ())
        return
    text = f"{kind.name} over the repetitions: {kind.show(min(values))} to {kind.show(max(values))}"
    width = _width(series, BOXES)
    note = "Whiskers: lowest and highest; box: quartiles."
    if width > 1:
        note += f" Each box takes {counted(width, unit)} together."

    def chart(size: ChartSize) -> charts.Spec:
        placed = _placed(series, kind, BOXES if size.width > 400 else 8)
        return charts.boxes(placed, ChartAxis(unit), kind.axis, size)

    yield figure(drawing, text, chart, tuple(one.index for one in series), note)


def _columns(one: Series, kind: WindowMeasure) -> dict[int, list[float]]:
    columns: dict[int, list[float]] = {}
    for _, verdict in one.runs:
        for window in verdict.windows:
            value = kind.value(window)
            if value is not None:
                columns.setdefault(window.index, []).append(value)
    return columns


def _width(series: Sequence[Series], limit: int) -> int:
    last = max((window.index for one in series for _, verdict in one.runs for window in verdict.windows), default=0)
    return -(-(last + 1) // max(4, limit // len(series)))


def _placed(series: Sequence[Series], kind: WindowMeasure, limit: int) -> list[PlacedBox]:
    width = _width(series, limit)
    found: dict[tuple[int, int], list[float]] = {}
    for one in series:
        for index, values in _columns(one, kind).items():
            found.setdefault((index // width, one.index), []).extend(values)
    labels = {one.index: one.label for one in series}
    return [_box(group, index, width, values, kind, labels[index]) for (group, index), values in sorted(found.items())]


def _box(group: int, index: int, width: int, values: list[float], kind: WindowMeasure, label: str) -> PlacedBox:
    first, last = group * width, group * width + width - 1
    name = f"{first:,}" if width == 1 else f"{first:,}–{last:,}"
    made = box(values)
    first_to_third = ", ".join(map(kind.show, (made.first, made.middle, made.third)))
    tip = (
        f"{label}, {name}, {counted(made.values, 'value')}: lowest {kind.show(made.low)}, "
        f"quartiles {first_to_third}, highest {kind.show(made.high)}"
    )
    return PlacedBox(name, index, made, tip)


PLOTS = (Plot(STEADY, 100, box_plots),)
