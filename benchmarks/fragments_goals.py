"""The goals of the fragments server beside @ldf/server, and whether the rows of a run reach them."""

from collections.abc import Sequence
from typing import Final

LEAST: Final = 2.0
LEAST_FIRST: Final = 1.5
LEAST_GRAPHS: Final = 50.0
"""How many times ours @ldf/server's CPU should be at least: asked before, never asked, and with many graphs."""

MOST_FIRST_MS: Final = 0.08
MOST_HTML_MS: Final = 1.0
"""CPU ms of a request that nobody sent before, as text for programs, and of an HTML page, at most."""


def summary(rows: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """The least and the largest ratio, the largest costs that have a limit, and whether all goals are reached."""
    ratios = [(float(row[-1][:-1]), row[0]) for row in rows if row[-1]]
    least = {"first": LEAST_FIRST, "big, p": LEAST_GRAPHS}
    kept = all(
        ratio >= next((goal for end, goal in least.items() if name.endswith(end)), LEAST) for ratio, name in ratios
    )
    first = max(float(row[3]) for row in rows if row[0].endswith("first") and row[1] != "html")
    html = max(float(row[3]) for row in rows if row[1] == "html")
    compared = f"{min(ratios)[0]:.1f}x to {max(ratios)[0]:,.0f}x; " if ratios else ""
    message = f"{compared}never asked at most {first:.3f} ms, HTML at most {html:.3f} ms"
    return message, kept and first <= MOST_FIRST_MS and html <= MOST_HTML_MS
