"""No server and no client grows by more than 64 MiB, whatever is sent to it or not taken; servers give it back."""

import pytest

from tests.boundaries.client_growth import CLIENTS, growths
from tests.boundaries.growth import LEFT, measured
from tests.boundaries.sockets import BOUNDARIES, GROWTH, MEBI

pytestmark = pytest.mark.prove


def told(capsys, name, sizes):
    with capsys.disabled():
        print(f"\n{name}, MiB: " + "; ".join(f"{kind} {size / MEBI:.0f}" for kind, size in sizes.items()))


@pytest.mark.parametrize("name", BOUNDARIES)
def test_no_server_grows_by_more_than_64_mib(name, tmp_path, capsys):
    growth = measured(name, tmp_path)
    told(capsys, name, growth)
    assert max(growth.values()) <= GROWTH
    assert growth["left"] <= LEFT


@pytest.mark.parametrize("name", CLIENTS)
def test_no_client_grows_by_more_than_64_mib(name, capsys):
    growth = growths(name)
    told(capsys, name, growth)
    assert 0 < max(growth.values()) <= GROWTH
