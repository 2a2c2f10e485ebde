"""JSON files as other programs write them: without a seal, so that their fields decide."""

import json
from pathlib import Path
from typing import Any


def unsealed(file: Path) -> dict[str, Any]:
    """The members of a JSON file but its seal."""
    return {name: value for name, value in json.loads(file.read_text("utf-8")).items() if name != "seal"}


def unseal(file: Path) -> str:
    """Take the seal out of a JSON file; its text."""
    text = json.dumps(unsealed(file), indent=2, ensure_ascii=False)
    file.write_text(text, "utf-8")
    return text
