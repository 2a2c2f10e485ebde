"""What went wrong, as a response: a status and a sentence."""

from collections.abc import Mapping

from starlette.responses import JSONResponse


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """``{"error": sentence}``."""
    return JSONResponse({"error": sentence}, status, dict(headers or {}))
