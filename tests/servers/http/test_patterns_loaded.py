"""What reads queries is imported before somebody's time counts."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.server


def test_all_parsers_are_there_once_they_are_loaded():
    program = (
        "import sys; from streamgauge.servers.http.limits import load_parsers; "
        "assert not {'elementpath', 'regex'} & set(sys.modules); load_parsers(); "
        "asked = ('streamgauge.query.reader', 'elementpath', 'regex', 'rdflib'); "
        "print(*(name for name in asked if name in sys.modules))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert loaded == ["streamgauge.query.reader", "elementpath", "regex"]
