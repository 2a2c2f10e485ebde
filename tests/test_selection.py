"""Which files the suite leaves to `make prove` without importing them."""

from types import SimpleNamespace

import pytest

from tests.selection import pytest_ignore_collect

ALONE = ("pytestmark = pytest.mark.prove", "pytestmark = [pytest.mark.browser, pytest.mark.prove]")
AMONG_OTHERS = ("@pytest.mark.prove\ndef test_it(): ...", "pytestmark = pytest.mark.server", "PROOFS = 'prove'")


@pytest.mark.parametrize("marks", ["not prove", "prove", ""])
@pytest.mark.parametrize("text", [*ALONE, *AMONG_OTHERS])
def test_a_file_of_proofs_alone_is_left_out_where_proofs_are(text, marks, tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(f"import pytest\n\n{text}\n")
    ignored = pytest_ignore_collect(file, SimpleNamespace(option=SimpleNamespace(markexpr=marks)))
    assert bool(ignored) == (marks == "not prove" and text in ALONE)
