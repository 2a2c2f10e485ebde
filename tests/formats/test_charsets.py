"""Texts that begin with the letters of another format are texts; what is another format is refused with what to do."""

import bz2

import pytest

from streamgauge.formats.charsets import CharsetError, text_in_utf8


def test_a_header_that_begins_as_another_format_does_is_text():
    assert text_in_utf8(b"PAR1,PAR2\n1,2\n") == b"PAR1,PAR2\n1,2\n"
    assert text_in_utf8(b"BZh,t\n1,2\n") == b"BZh,t\n1,2\n"
    with pytest.raises(CharsetError, match="bzip2"):
        text_in_utf8(bz2.compress(b"a"))
