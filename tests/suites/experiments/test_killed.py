"""`streamgauge run` killed in the middle: the same command goes on (20 points under `make prove`)."""

import pytest

from tests.prove.killed import Killed, kill_and_go_on


@pytest.mark.server
def test_killed_in_the_middle_it_goes_on(tmp_path):
    assert len(kill_and_go_on(Killed(tmp_path, repetitions=1), seed=6, kills=1)) == 1
