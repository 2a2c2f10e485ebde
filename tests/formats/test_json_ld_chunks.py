"""Large JSON-LD in chunks means what the whole means, wherever it is cut and whatever is wrong with it."""

import json
import random
from collections.abc import Callable
from io import BufferedReader, BytesIO

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.bounded_files import ByteReader
from streamgauge.formats.documents import FormatError
from streamgauge.formats.json_ld_chunks import CHUNK, chunks
from streamgauge.formats.syntaxes import parse_open
from tests.examples import examples

CONTEXT = {"@vocab": "urn:v:", "id": "@id", "at": {"@type": "@id"}, "in": {"@context": {"n": "urn:other:n"}}}
STRINGS = ["", "a", "é", '"', "\\", "]", "}, {", '"@graph": [', "\n", "[\\"]
IDS = ["_:a", "_:b", "urn:s", "urn:t"]

values = st.recursive(
    st.sampled_from([*STRINGS, 1, -0.5, True, None]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["n", "m", "in"]), inner, max_size=3)
        | st.builds(lambda name, value: {"@id": name, "n": value}, st.sampled_from(IDS), inner)
    ),
    max_leaves=6,
)
nodes = st.lists(
    st.builds(
        lambda name, own, members: {**({"@context": {"m": "urn:own:m"}} if own else {}), "@id": name, **members},
        st.sampled_from(IDS),
        st.booleans(),
        st.dictionaries(st.sampled_from(["n", "m", "in", "@type"]), values | st.just("urn:c"), max_size=3),
    )
    | values,
    max_size=8,
)
SHAPES: dict[str, Callable[[list[object]], object]] = {
    "array": lambda items: items,
    "context first": lambda items: {"@context": CONTEXT, "@graph": items},
    "context last": lambda items: {"@graph": items, "@context": CONTEXT},
    "named": lambda items: {"@context": CONTEXT, "@graph": items, "@id": "urn:g"},
    "more members": lambda items: {"@context": CONTEXT, "n": {"m": 1}, "@graph": items},
    "a property": lambda items: {"@context": CONTEXT, "@id": "urn:s", "n": items},
}


def meaning(parts: list[bytes]) -> list[str] | str:
    """The quads of documents together, blank nodes by their canonical names; or that one is invalid."""
    dataset = ox.Dataset()
    try:
        for part in parts:
            for quad in ox.parse(part, format=ox.RdfFormat.JSON_LD, base_iri="urn:base:"):
                dataset.add(quad)
    except SyntaxError:
        return "invalid"
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return sorted(map(str, dataset))


def divided(text: bytes, size: int) -> list[bytes]:
    return [part for _, part in chunks(BufferedReader(BytesIO(text)), size)]


@given(nodes, st.sampled_from(sorted(SHAPES)), st.sampled_from([None, 1]), st.integers(0, 2**32))
@examples(80, 10_000)
def test_chunks_of_any_size_mean_the_whole(items, shape, indent, seed) -> None:
    text = json.dumps(SHAPES[shape](items), indent=indent, ensure_ascii=False).encode()
    draw = random.Random(seed)
    at = draw.randrange(len(text))
    # Whole, and with a byte too few or one too many.
    for document in (
        text,
        text[:at] + text[at + 1 :],
        text[:at] + draw.choice([b",", b"]", b'"', b"{", b"x"]) + text[at:],
    ):
        whole = meaning([document])
        for size in (1, 2, 3, 5, 8, 13, 40, 150):
            assert meaning(divided(document, size)) == whole


@pytest.mark.parametrize(("shape", "many"), [(shape, shape not in ("more members", "a property")) for shape in SHAPES])
def test_what_is_divided(shape: str, many: bool) -> None:
    text = json.dumps(SHAPES[shape]([{"@id": f"urn:{at}", "urn:p": [{"urn:q": at}]} for at in range(50)])).encode()
    parts = divided(text, 300)
    assert (len(parts) > 3) == many
    assert all(len(part) < len(text) / 2 for part in parts) == many


@pytest.mark.parametrize("end", ["]", ",]", "}", ",,]", "] x", "", "]]", ", {]"])
def test_the_end_of_an_array_is_not_cut_off(end: str) -> None:
    items = ",".join(f'{{"urn:p": {at}}}' for at in range(9))
    document = f"[{items}{end}".encode()
    assert {str(meaning(divided(document, size)))[:9] for size in range(1, 99)} == {str(meaning([document]))[:9]}


def large(error: str = "") -> bytes:
    """A document of several chunks, an item on each line from 2 on, with an error on line 2,900."""
    items = [f'{{"@id": "urn:{at}", "p": [{{"@id": "_:same"}}, "{"x" * 280}"]}}' for at in range(3_000)]
    items[2_898] += error
    return ('{"@graph": [\n' + ",\n".join(items) + '],\n"@context": {"@vocab": "urn:v:"}}').encode()


def test_the_first_triples_come_before_the_last_are_parsed() -> None:
    text = large()
    for file in (BytesIO(text), ByteReader(BytesIO(text).read)):
        assert len(text) > 3 * CHUNK
        assert (
            len({(str(quad.subject), str(quad.object)) for quad in parse_open(file, "f", ox.RdfFormat.JSON_LD)})
            == 6_000
        )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (" x", r"^f\.jsonld, line 2900: "),
        (', {"a": ' + "[" * 120 + "]" * 120 + "}", "nested more than 100 deep"),
        (', {"@annotation": 1}', "@annotation is of a draft"),
        (', {"@id": "relative"}', None),
        (', {"@id": "relative", "p": 1}', "relative IRI"),
        (', {"@context": "http://b.example/c", "p": 1}', "is not fetched"),
    ],
    ids=["syntax", "depth", "keyword", "nothing", "relative", "context"],
)
def test_what_is_wrong_in_a_later_chunk_is_refused(error: str, reason: str | None) -> None:
    quads = parse_open(BytesIO(large(error)), "f.jsonld", ox.RdfFormat.JSON_LD)
    if reason is None:
        assert sum(1 for _ in quads) == 6_000
        return
    with pytest.raises(FormatError, match=reason):
        list(quads)
