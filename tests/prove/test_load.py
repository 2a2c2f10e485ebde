"""No server grows by being used: an hour's requests each, 18,000 (``STREAMGAUGE_LOAD_MINUTES`` for fewer)."""

import pytest

from tests.prove.load import LOADS, MINUTES, growths, looks

pytestmark = [pytest.mark.prove, pytest.mark.timeout(60 * (2 * MINUTES + 10))]


@pytest.mark.parametrize("name", LOADS)
def test_nothing_grows_by_being_used(name, capsys):
    def tell(text):
        with capsys.disabled():
            print(f"\n{text}", end="")

    result = looks(name, MINUTES, tell)
    assert result[-1].steps > 100
    assert growths(result) == {}
