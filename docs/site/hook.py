"""Puts the site of the documentation into wheels, as the package's folder `site`."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the site before a wheel is made; not for an editable installation.

    It goes to a temporary folder: the checkout may be another user's, and two builds may run at once.
    """

    _place: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the site; one that cannot be built does not stop the wheel, which is then made without it."""
        if version == "editable":
            return
        self._place = TemporaryDirectory(prefix="streamgauge-site-")
        site = Path(self._place.name, "site")
        done = subprocess.run([sys.executable, Path(self.root, "docs", "site"), site], check=False)
        if done.returncode:
            self.app.display_warning("the wheel has no documentation, which could not be built: see the lines above")
        else:
            build_data["force_include"][str(site)] = "streamgauge/site"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was built."""
        if self._place is not None:
            self._place.cleanup()
