"""An answer's rows as a digest, so that those of thousands of answers can be compared without keeping them."""

from collections.abc import Iterable
from hashlib import sha1

from streamgauge.model.terms import Row


def digest(rows: Iterable[Row]) -> str:
    """The same for equal bags of rows, whatever their order."""
    lines = sorted("\t".join(term or "-" for term in row) for row in rows)
    return sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()[:16]
