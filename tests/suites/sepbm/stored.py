"""The small configuration in a folder."""

from streamgauge.suites.sepbm import About, read, triples_text, write, write_due
from tests.servers.broker.world import BASE, ONTOLOGY
from tests.suites.sepbm.small import Small

SMALL = Small()


def stored(folder):
    """Written, and read back."""
    write(folder, About({"small": True}), ONTOLOGY, SMALL.channels, SMALL.publications)
    (folder / "base.nt").write_text(triples_text(BASE), encoding="utf-8")
    write_due(folder, SMALL.due())
    return read(folder)
