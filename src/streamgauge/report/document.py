"""Puts the page together: verdict, tables, plots and conditions into one template."""

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamgauge.report import cards, plots, tables, theme
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.plots import Figure
from streamgauge.report.series import Judged, Series, series_of

Section = tuple[str, str, list[Figure]]


def document(runs: Sequence[Judged], title: str) -> str:
    """The whole page as text; everything that an engine or a workload said is escaped."""
    if not runs:
        raise ValueError("there is no run to report: give at least one run with its verdict")
    series = series_of(runs)
    environment = Environment(
        loader=PackageLoader("streamgauge.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        title=title,
        headline=cards.headline(series),
        cards=cards.cards(series),
        summary=tables.summary(series),
        summary_headings=tables.SUMMARY_HEADINGS,
        sections=sections(series),
        windows=tables.window_tables(series),
        window_headings=tables.window_headings(series),
        conditions=tables.conditions(series),
        labels=[one.label for one in series],
        swatches=[swatch(one.index) for one in series],
        light=Markup(theme.variables("light")),
        dark=Markup(theme.variables("dark")),
        plot_css=Markup(theme.plot_css()),
    )


def sections(series: Sequence[Series]) -> list[Section]:
    """The plots under their headings; headings without any plot are left out."""
    drawing = ChartDrawing()
    found: list[Section] = [
        (
            "correctness",
            "How right",
            [
                *plots.of_kind(drawing, series, plots.PRECISION),
                *plots.of_kind(drawing, series, plots.RECALL),
                *plots.result_sizes(drawing, series),
                *plots.of_kind(drawing, series, plots.CONTENT),
                *plots.border_strips(drawing, series),
                *plots.reconstructed(drawing, series),
            ],
        ),
        (
            "delay",
            "How late",
            [
                *plots.of_kind(drawing, series, plots.DELAY),
                *plots.delay_by_size(drawing, series),
                *plots.feed(drawing, series),
            ],
        ),
        ("resources", "At what cost", list(plots.resources(drawing, series))),
        ("repetitions", "How steady", list(plots.box_plots(drawing, series))),
    ]
    return [section for section in found if section[2]]


_SWATCHES = {
    "circle": "M12 4a4 4 0 1 0 .01 0z",
    "square": "M8.5 4.5h7v7h-7z",
    "triangle-up": "M12 3.5l4.5 8h-9z",
    "diamond": "M12 3l5 5-5 5-5-5z",
    "triangle-down": "M12 12.5l4.5-8h-9z",
    "cross": "M10.5 3.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "triangle-right": "M8 3.5v9l8-4.5z",
}


def swatch(index: int) -> Markup:
    """The legend's sign of a series: its line with its point."""
    colour, shape = index % len(theme.SERIES), _SWATCHES[theme.series_shape(index)]
    return Markup(
        '<svg class="swatch" viewBox="0 0 24 16" aria-hidden="true" style="color:var(--series-{})">'
        '<path d="M0 8h24" stroke="currentColor" stroke-width="2"/><path d="{}" fill="currentColor"/></svg>'
    ).format(colour, shape)
