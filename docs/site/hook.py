"""Puts the site of the documentation into wheels, as the package's folder `site`."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the site (`dist/site`) before a wheel is made; not for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the site, unless it is there as it would be; a failed build ends the wheel's."""
        if version == "editable":
            return
        out = Path(self.root, "dist", "site")
        done = subprocess.run([sys.executable, Path(self.root, "docs", "site"), out], check=False)
        if done.returncode:
            raise RuntimeError("the site of the documentation cannot be built: see the lines before")
        build_data["force_include"][str(out)] = "streamgauge/site"
