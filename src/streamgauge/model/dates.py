"""Stream times that count from 1970, as dates."""

from datetime import UTC, datetime
from typing import Final

DATED: Final = range(10**11, 253_402_300_800_000)
"""Stream times (ms) that are taken to count from 1970: 1973 to 9999."""


def date_text(ms: float) -> str | None:
    """Date and time in UTC, to the millisecond; ``None`` for a time that is not ``DATED``.

    ``date_text(1_763_900_000_250)`` is ``"2025-11-23 12:13:20.250Z"``.
    """
    seconds, rest = divmod(int(ms), 1000)
    if int(ms) not in DATED:
        return None
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}{f'.{rest:03d}' if rest else ''}Z"
