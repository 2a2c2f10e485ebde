"""One browser for all pages: each module finds it as a new one, by day, on a desk, with nothing in its log."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driving import as_new, started


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Iterator[Any]:
    as_new(chromium)
    yield chromium
    chromium.get("about:blank")  # no page goes on while its server ends
