"""The built editor belongs to its sources."""

import hashlib
import json
import re
from pathlib import Path

import streamgauge.workbench.rooms.playground as playground

HOME = Path(playground.__file__).parent
SOURCES = (
    "build.mjs",
    "editor.js",
    "highlighting.js",
    "keywords.js",
    "package-lock.json",
    "package.json",
    "sparql.grammar",
)


def test_the_built_editor_has_the_digest_of_its_sources():
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update(f"{name}\n".encode() + (HOME / "editor" / name).read_bytes())
    head = (HOME / "static" / "editor.js").read_text(encoding="utf-8").split("\n", 1)[0]
    assert re.search(r"digest of the sources: (\w+);", head)[1] == digest.hexdigest(), "npm run build in editor/"
    assert {path.name for path in (HOME / "editor").iterdir()} - {"node_modules"} == set(SOURCES)


def test_the_licences_of_all_its_parts_are_beside_it():
    told = (HOME / "static" / "editor.licences.txt").read_text(encoding="utf-8")
    for name, version in json.loads((HOME / "editor" / "package.json").read_text(encoding="utf-8"))[
        "dependencies"
    ].items():
        assert re.search(rf"^{re.escape(name)} {re.escape(version)} \(MIT\)$", told, re.MULTILINE), name
