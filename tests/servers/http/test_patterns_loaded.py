"""What reads queries is imported before somebody's time counts."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.server


def test_all_parsers_are_there_once_they_are_loaded():
    program = (
        "import sys; from streamgauge.servers.http.patterns import load_parsers; "
        "assert 'rdflib' not in sys.modules; load_parsers(); "
        "print(*(name for name in ('rdflib.plugins.sparql.parser', 'elementpath') if name in sys.modules))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert loaded == ["rdflib.plugins.sparql.parser", "elementpath"]
