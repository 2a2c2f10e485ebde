"""Puts the site of the documentation into wheels, as the package's folder `site`."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the site before a wheel is made; not for an editable installation."""

    _place: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the site (`dist/site`, elsewhere where this user may not write there), unless it is up to date.

        A site that cannot be built does not stop the wheel, which is then made without one.
        """
        if version == "editable":
            return
        out = Path(self.root, "dist", "site")
        if not os.access(self.root, os.W_OK):
            self._place = TemporaryDirectory(prefix="streamgauge-site-")
            out = Path(self._place.name, "site")
        done = subprocess.run([sys.executable, Path(self.root, "docs", "site"), out], check=False)
        if done.returncode:
            self.app.display_warning("the wheel has no documentation, which could not be built: see the lines above")
        else:
            build_data["force_include"][str(out)] = "streamgauge/site"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove a site that was built elsewhere."""
        if self._place is not None:
            self._place.cleanup()
