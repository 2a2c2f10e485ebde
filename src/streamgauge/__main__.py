"""``python -m streamgauge`` is the command ``streamgauge``."""

from streamgauge.cli.main import main

main()
