"""Bytes unpacked within bounds, archives, charsets as they come, values of JSON, contexts."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.charsets import CharsetError, in_utf8, text_in_utf8
from streamgauge.formats.codings import CodingError, UnpackedSizeError, unpack, unpack_gzip
from streamgauge.formats.contexts import ContextError, embedded, read_contexts
from streamgauge.formats.documents import FormatError
from streamgauge.formats.instants import Instants
from streamgauge.formats.json_values import JsonText, json_path, json_value
from streamgauge.formats.streams import read_stream, read_triples

QUADS = "".join(f"<urn:a> <urn:b> {n} <urn:g/{n}> .\n".replace(f" {n} ", f' "{n}" ') for n in range(3)).encode()
PACKED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKED)
def test_packed_files(tmp_path, ending):
    path = tmp_path / f"s.nq{ending}"
    path.write_bytes(PACKED[ending](QUADS))
    assert [item.time for item in read_stream(path)] == [0, 1, 2]
    path.write_bytes(PACKED[ending](QUADS * 999)[:-9])
    with pytest.raises(FormatError, match=r"s\.nq.*cannot be"):
        list(read_stream(path))


@pytest.mark.parametrize("name", ["s.zip", "s.tar", "s.tar.gz", "s.tgz", "s.tar.zst"])
def test_archives_are_folders(tmp_path, name):
    files = {"in/b_2.ttl": b"<urn:a> <urn:b> 2 .", "in/a_1.ttl": b"<urn:a> <urn:b> 1 .", "in/README.md": b"about it"}
    files |= {
        "__MACOSX/in/._a_1.ttl": b"\x00\x05",
        "in/.c_3.ttl": b"no data",
        "_SUCCESS": b"",
        "in/_notes.ttl": b"none",
    }
    file = io.BytesIO()
    if name == "s.zip":
        with zipfile.ZipFile(file, "w") as archive:
            for member, text in files.items():
                archive.writestr(member, text)
    else:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for member, text in files.items():
                entry = tarfile.TarInfo(member)
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
    data = file.getvalue()
    coding = {"s.tar.gz": ".gz", "s.tgz": ".gz", "s.tar.zst": ".zst"}.get(name)
    (tmp_path / name).write_bytes(data if coding is None else PACKED[coding](data))
    assert [item.time for item in read_stream(tmp_path / name)] == [1000, 2000]
    (tmp_path / name).write_bytes(b"no archive")
    with pytest.raises(FormatError, match=r"cannot be (unpacked|read)"):
        list(read_stream(tmp_path / name))


BODY = b"<urn:a> <urn:b> <urn:c> .\n" * 100
HTTP = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
    "zstd": pa.compress(BODY, codec="zstd", asbytes=True),
    "br": pa.compress(BODY, codec="brotli", asbytes=True),
    "identity": BODY,
    "": BODY,
    "gzip, deflate": zlib.compress(gzip.compress(BODY)),
}


@pytest.mark.parametrize("coding", HTTP)
def test_bodies_are_unpacked_within_a_bound(coding):
    assert unpack(HTTP[coding], coding, len(BODY)) == BODY
    if HTTP[coding] is not BODY:
        with pytest.raises(UnpackedSizeError, match=f"unpacks to more than {len(BODY) - 1} bytes"):
            unpack(HTTP[coding], coding, len(BODY) - 1)
        with pytest.raises(CodingError, match="cannot be unpacked as"):
            unpack(HTTP[coding][:-5], coding, len(BODY))


def test_a_coding_that_is_not_read_is_named():
    with pytest.raises(CodingError, match=r"the content coding 'compress' is not supported: send gzip, .*zstd"):
        unpack(BODY, "compress", 10)
    assert unpack_gzip(gzip.compress(BODY), len(BODY)) == unpack_gzip(BODY, 1) == BODY
    with pytest.raises(UnpackedSizeError):
        unpack_gzip(gzip.compress(bytes(10**7)), 10**6)


def test_a_coding_that_arrow_was_built_without_is_named(monkeypatch):
    monkeypatch.setattr(pa, "Codec", SimpleNamespace(is_available=lambda _: False))
    with pytest.raises(CodingError, match="pyarrow was built without brotli: pip install"):
        unpack(HTTP["br"], "br", len(BODY))


@pytest.mark.slow
@given(text=st.text(st.characters(codec="utf-8"), min_size=1), size=st.integers(1, 9))
def test_every_charset_comes_as_utf8_however_it_is_cut(text, size):
    text = text.lstrip("\ufeff\x00") or "x"  # the mark of UTF-16 and a null are the mark of UTF-32
    for charset in ("utf-8-sig", "utf-16", "utf-32"):
        body = text.encode(charset)
        assert text_in_utf8(body).decode() == text
        cut = io.BufferedReader(io.BytesIO(body), size)  # type: ignore[arg-type]
        if size >= 4:
            assert in_utf8(cut).read().decode() == text  # type: ignore[arg-type]


def test_bytes_that_are_no_text_are_named():
    with pytest.raises(CharsetError, match=r"not utf-16 text"):
        text_in_utf8(b"\xff\xfea\x00\x00")


PLAIN = st.none() | st.booleans() | st.integers() | st.text()
OBJECTS = st.dictionaries(
    st.text(), st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)


@pytest.mark.slow
@given(values=st.lists(OBJECTS, max_size=4), indent=st.sampled_from([None, 1]))
def test_values_of_json_are_the_same_one_by_one_or_in_an_array(values, indent):
    import json

    lines = "\n".join(json.dumps(value, indent=indent) for value in values)
    array = json.dumps(values, indent=indent)

    def read(text: str) -> list[object]:
        numbered = enumerate(io.BytesIO(text.encode()), 1)
        return [json.loads(part) for _, part in JsonText(2**20, items=True).values(numbered)]

    assert read(lines) == read(array) == values


def test_paths():
    data = json_value(b'{"a": [{"b c": 1}, {"b c": 2.50}], "x.y": 3}')
    assert json_path("$.a[*]['b c']").values(data) == ["1", "2.50"]
    assert json_path("a[-1]").values(data) == [{"b c": "2.50"}]
    assert json_path("$.a[0].none").values(data) == []
    with pytest.raises(ValueError, match="is not a supported path"):
        json_path("$..a")


def test_contexts_that_name_each_other(tmp_path):
    (tmp_path / "a").write_text('{"@context": "urn:b"}')
    (tmp_path / "b").write_text('{"@context": ["urn:a", {"v": "urn:v"}]}')
    named = f"urn:a={tmp_path / 'a'},urn:b={tmp_path / 'b'}"
    with pytest.raises(ContextError, match="contexts refer to each other in a chain of more than 8"):
        embedded(b'{"@context": "urn:a"}', read_contexts(named), None)
    with pytest.raises(ContextError, match="its context urn:c is not fetched"):
        embedded(b'{"@graph": [{"@context": ["urn:c"]}]}', read_contexts(named), None)
    assert embedded(b'{"@context": {"v": "urn:v"}}', {}, None) == b'{"@context": {"v": "urn:v"}}'


def test_background_data_have_a_base_and_contexts(tmp_path):
    (tmp_path / "s.ttl").write_text("<a> <b> <c> .")
    assert list(read_triples(f"{tmp_path}/s.ttl?base=http://b/")) == [("<http://b/a>", "<http://b/b>", "<http://b/c>")]
    with pytest.raises(FormatError, match="a relative IRI"):
        list(read_triples(Path(tmp_path / "s.ttl")))


def test_a_live_feed_goes_on_when_the_clocks_change():
    """In order of arrival through the hour that comes twice, and over the one that is skipped; one note in all."""
    notes: list[str] = []
    times = Instants(zone="Europe/Vienna", note=notes.append, strict=False)
    moments = ["01:59", "02:00", "02:30", "02:59", "02:00", "02:10", "02:59", "03:00"]
    read = [times.of_text(f"2026-10-25T{moment}:00", "feed") for moment in moments]
    assert read == sorted(read)
    assert [(time - read[0]) // 60_000 for time in read] == [0, 1, 31, 60, 61, 71, 120, 121]
    assert times.of_text("2027-03-28T02:30:00", "feed") == times.of_text("2027-03-28T03:30:00", "feed")
    assert len(notes) == 1
    assert "feed: 2026-10-25T02:00:00 occurs twice in Europe/Vienna" in notes[0]
