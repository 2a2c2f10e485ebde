"""Fields of forms that browsers send (application/x-www-form-urlencoded), bounded before they are read."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.limits import BodyError, read_body, text

FIELDS = 40
"""The most fields of a form."""


class FormError(MistakeError, ValueError):
    """A form that cannot be read; the sentence says why."""


async def read_form(request: Request, limit: int) -> Mapping[str, str]:
    """The fields of a form of at most ``limit`` bytes, the last of several with one name; FormError."""
    try:
        body = text(await read_body(request, limit))
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=FIELDS)
    except (BodyError, ValueError) as error:
        raise FormError(str(error)) from error
    return {name: value.replace("\r\n", "\n") for name, value in pairs}
