"""Triple terms in each other are counted, what is in strings is not."""

import pytest

from streamgauge.wire.nesting import MOST, NestingError, refuse_nested


def deep(levels: int, inner: str = "<urn:d>") -> str:
    return "<urn:s> <urn:p> " + "<<( <urn:a> <urn:b> " * levels + inner + " )>>" * levels + " .\n"


@pytest.mark.parametrize("coded", [str, str.encode])
def test_what_is_too_deep_is_refused(coded) -> None:
    refuse_nested(coded(deep(MOST)))
    refuse_nested(coded(deep(1) * 1000))
    with pytest.raises(NestingError, match="more than 32 deep"):
        refuse_nested(coded(deep(MOST + 1)))
    with pytest.raises(NestingError, match="more than 32 deep"):
        refuse_nested(coded("<urn:s> <urn:p> " + "<<( " * 30_000))


@pytest.mark.parametrize(
    "text",
    ['"%s"', "'%s'", '"""a"%s"""', "'''a'\n%s'''", '"\\"%s"', '"""\\"""%s"""'],
)
def test_what_is_in_strings_is_text(text: str) -> None:
    refuse_nested(f"<urn:s> <urn:p> {text % ('<<(' * 100)} ; <urn:q> <<( <urn:a> <urn:b> <urn:c> )>> .")
