"""The pictures of the workbench in README and docs: all are there, small, and shown on a page."""

import pytest

from tests.browser.pictures import FOLDER, LARGEST, PICTURES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_small_and_shown(picture):
    file = FOLDER / f"workbench-{picture.name}.png"
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size <= LARGEST
    pages = [FOLDER.parents[1] / "README.md", *FOLDER.parent.glob("*.md")]
    assert any(f"pictures/{file.name})" in page.read_text(encoding="utf-8") for page in pages)
