"""The cache of the experiment is set up as the documentation says."""

from pathlib import Path

from streamgauge.suites.crowds.systems.fragments import NGINX

DOCS = Path(__file__).parents[3] / "docs" / "fragments.md"


def test_the_documented_cache_is_the_measured_one():
    sample = DOCS.read_text(encoding="utf-8").partition("```nginx\n")[2].partition("```")[0]
    lines = [line.strip() for line in sample.splitlines() if line.strip().startswith(("map ", "proxy_"))]
    used = NGINX.format(folder="F", port=1, origin="O", temporary="")
    own = ("proxy_pass", "proxy_cache_path")
    assert len(lines) > 10
    assert [line for line in lines if line not in used and not line.startswith(own)] == []
