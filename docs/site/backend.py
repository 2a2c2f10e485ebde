"""The build backend: hatchling, and the site of the documentation within wheels (PEP 517).

An editable installation has no site and needs nothing for one: there `streamgauge docs` builds it when asked.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.build import *  # noqa: F403
from hatchling.build import get_requires_for_build_wheel as _requires

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
DRAWN_WITH = ("elementpath", "google-re2", "numpy", "pyoxigraph", "regex")
"""The dependencies of the package that the pictures of the documentation are drawn with.

A test draws them with no others. With one missing, the wheel is built without the site (hook.py).
"""


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The packages that build a wheel: hatchling's needs, Sphinx with its parts, those that draw the pictures."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    drawing = [line for line in project["dependencies"] if re.split("[<>=~! ]", line)[0] in DRAWN_WITH]
    return [*_requires(config_settings), *project["optional-dependencies"]["docs"], *drawing]
