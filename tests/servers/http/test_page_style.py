"""The style of the servers' own pages: the colours of the report, in both themes; in each page once."""

import re
from importlib.resources import files

from streamgauge.report import charts
from streamgauge.servers.http.replies import page, style

REPORT = "report/templates/style.css"
TOKEN = re.compile(r"--([a-z]+):([^;}]+)")


def themes(css):
    """The tokens of :root, and of :root in the dark."""
    light, dark = (dict(TOKEN.findall(item)) for item in re.findall(r":root\{(.*?)\}", css, re.DOTALL))
    return light, dark


def test_colours_and_fonts_are_those_of_the_report():
    own = themes(style())
    report = themes((files("streamgauge") / REPORT).read_text(encoding="utf-8"))
    for theme, mine, theirs in zip(("light", "dark"), own, report, strict=True):
        known = {**theirs, **dict(TOKEN.findall(charts.variables(theme)))}
        assert mine == {name: known[name] for name in mine}
        assert {"page", "paper", "ink", "muted", "accent", "wrong"} <= set(mine)


def test_each_page_has_the_style_once_and_asks_nobody_for_another():
    for package in ("streamgauge.servers.broker", "streamgauge.servers.queries"):
        made = page(package)
        text = bytes(made.body).decode()
        assert text.count(style()) == 1
        assert "stylesheet" not in text
        assert "connect-src 'self'" in made.headers["content-security-policy"]
