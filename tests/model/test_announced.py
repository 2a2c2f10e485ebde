"""Entry points are read once, and again when a package comes."""

from importlib import metadata

from streamgauge.model.announced import entry_points


def test_a_package_that_comes_is_seen_and_nothing_is_read_twice(tmp_path, monkeypatch):
    asked, plain = [], metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda: asked.append(1) or plain())
    monkeypatch.syspath_prepend(str(tmp_path))
    for _ in range(3):
        assert not entry_points(group="urn.test.group")
    assert len(asked) == 1
    package = tmp_path / "one-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: one\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[urn.test.group]\nfirst = json\n")
    assert [(point.name, point.value) for point in entry_points(group="urn.test.group")] == [("first", "json")]
    assert entry_points(group="urn.test.group")
    assert len(asked) == 2
