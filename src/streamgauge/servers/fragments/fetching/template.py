"""URI templates (RFC 6570) up to level 3, of single values."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z0-9_.%]+")

_KINDS: Final = {
    "": ("", ",", False, ""),
    "+": ("", ",", False, ":/?#[]@!$&'()*+,;="),
    "#": ("#", ",", False, ":/?#[]@!$&'()*+,;="),
    ".": (".", ".", False, ""),
    "/": ("/", "/", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, ""),
    "&": ("&", "&", True, ""),
}
"""By operator: what comes first, what between, whether names are written, reserved characters that stay."""


class TemplateError(ValueError):
    """A template that is none, or asks for more than single values."""


def expand(template: str, values: Mapping[str, str]) -> str:
    """The address for these values, variables without one left out; TemplateError names what is wrong."""
    return _EXPRESSION.sub(lambda found: _expression(found[1], values), template)


def variables(template: str) -> tuple[str, ...]:
    """The names in a template, in order."""
    parts = _EXPRESSION.findall(template)
    return tuple(name for part in parts for name in part.lstrip("+#./;?&").split(","))


def _expression(text: str, values: Mapping[str, str]) -> str:
    operator = text[:1] if text[:1] in _KINDS else ""
    first, between, named, kept = _KINDS[operator]
    parts = []
    for name in text[len(operator) :].split(","):
        if not _NAME.fullmatch(name):
            raise TemplateError(f"{{{text:.100}}} is no expression of single values (RFC 6570, level 3)")
        if name in values:
            value = quote(values[name], safe=kept)
            parts.append(f"{name}={value}" if named else value)
    return first + between.join(parts) if parts else ""
