"""500 starts of ``certify --jobs 4``; ``python -m tests.prove.starts N`` does as many as you like."""

import pytest

from tests.prove.starts import start

pytestmark = pytest.mark.prove


@pytest.mark.parametrize("lot", range(50))
def test_ten_starts_end_with_a_certificate(lot, tmp_path):
    assert [fault for _ in range(10) if (fault := start(tmp_path))] == []
