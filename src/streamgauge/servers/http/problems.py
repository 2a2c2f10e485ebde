"""What went wrong, as a response: a status and a sentence."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse

LONGEST: Final = 1_000
"""Characters of a sentence: what it quotes of a request may be long."""


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """``{"error": sentence}``, the sentence cut after ``LONGEST`` characters."""
    return JSONResponse({"error": clipped(sentence)}, status, dict(headers or {}))


def clipped(sentence: str) -> str:
    """The sentence, or its beginning and three dots."""
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}..."
