"""Query templates: ``${NAME}`` stands for a value."""

import re
from collections.abc import Mapping
from typing import Final

from streamgauge.model.mistake import MistakeError
from streamgauge.query.errors import refusal

_PARAMETER: Final = re.compile(r"\$\{([^}\s]*)\}")


class TemplateError(MistakeError, ValueError):
    """Values for parameters that a template does not have; the sentence names both."""


def parameters(template: str) -> tuple[str, ...]:
    """The names of a template's parameters, in order of first appearance."""
    return tuple(dict.fromkeys(_PARAMETER.findall(template)))


def fill(template: str, values: Mapping[str, object]) -> str:
    """The text with every ``${NAME}`` replaced by its value; a missing value is a QueryError, others TemplateError."""
    for match in _PARAMETER.finditer(template):
        if match.group(1) not in values:
            raise refusal(
                f"the parameter {match.group(1)} has no value: give {match.group(1)}=...", template, match.start()
            )
    unused = sorted(set(values) - set(parameters(template)))
    if unused:
        known = ", ".join(parameters(template)) or "none"
        raise TemplateError(f"the query has no parameter {', '.join(unused)}; its parameters: {known}")
    return _PARAMETER.sub(lambda match: str(values[match.group(1)]), template)
