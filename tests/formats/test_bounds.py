"""Bounds of text: nesting and chains are counted; brackets in strings, IRIs and comments are not."""

import random
import string
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.bounded_files import bounded
from streamgauge.formats.bounds import (
    DATA_DEPTH,
    TRIPLE_TERMS,
    BoundError,
    TextBounds,
    TurtleScan,
    XmlScan,
    check_json,
    check_rdf,
    check_results,
    check_turtle,
    check_xml,
    read_json,
)
from tests.examples import examples

RDF = ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="urn:t:"'


def refusal(check: Callable[[str], object], text: str) -> BoundError | None:
    try:
        check(text)
    except BoundError as error:
        return error
    return None


def feed_blocks(scan: TurtleScan | XmlScan, text: str, size: int) -> None:
    for at in range(0, len(text), size):
        scan.feed(text[at : at + size], last=False)
        # What is carried over has a short form, but for IRIs.
        assert len(scan.rest) < 20 or scan.rest[0] == "<"
    scan.feed("", last=True)


HOSTILE = [
    '"\\"',
    '"""\\"',
    "a.",
    "a-",
    "_:a.",
    "1",
    "<",
    "<a",
    '"""',
    "#",
    "@a-",
    "'",
    "\\",
    "<!--",
    "<a '",
    "{",
    "\\u0021",
]


@pytest.mark.slow
@pytest.mark.parametrize("part", [*HOSTILE, '"a": [', '{"@context": {"a": "b"}, "c": ', "<a>", "<!"])
def test_a_scan_takes_time_in_proportion_to_the_text(part: str) -> None:
    text = part * (256 * 1024 // len(part))
    begun = time.process_time()
    for check in (
        check_turtle,
        check_json,
        check_xml,
        lambda text: check_rdf(text, ox.RdfFormat.JSON_LD),
    ):
        with suppress(BoundError):
            check(text)
    assert time.process_time() - begun < 3


def test_any_text_is_accepted_or_refused_with_a_sentence() -> None:
    draw = random.Random(16)
    parts = [
        *string.printable,
        '"""',
        "'''",
        "<<",
        ">>",
        "||",
        "\\u0022",
        "\\u0028",
        "VALUES",
        "INSERT",
        "<a:b>",
        "é",
        "\0",
    ]
    for _ in range(2_000):
        text = "".join(draw.choices(parts, k=draw.randrange(60)))
        for check in (check_turtle, check_json, check_xml):
            result = refusal(check, text)
            assert result is None or (str(result) and 0 <= result.position <= len(text))


# RDF


def deep(levels: int, inner: str = "<urn:d>") -> str:
    return "<urn:s> <urn:p> " + "<<( <urn:a> <urn:b> " * levels + inner + " )>>" * levels + " .\n"


@pytest.mark.parametrize("coded", [str, str.encode])
def test_triple_terms_that_are_too_deep_are_refused(coded) -> None:
    check_turtle(coded(deep(TRIPLE_TERMS)))
    check_turtle(coded(deep(1) * 1000))
    with pytest.raises(BoundError, match="more than 32 deep"):
        check_turtle(coded(deep(TRIPLE_TERMS + 1)))
    with pytest.raises(BoundError, match="more than 32 deep"):
        check_turtle(coded("<urn:s> <urn:p> " + "<<( " * 30_000))


@pytest.mark.parametrize(
    "text",
    [
        '"%s"',
        "'%s'",
        '"""a"%s"""',
        "'''a'\n%s'''",
        '"\\"%s"',
        '"""\\"""%s"""',
        "1 ; <urn:o'neil> 1 . # it's %s\n<urn:s> a 1",
    ],
)
def test_what_is_in_strings_and_comments_is_text(text: str) -> None:
    for part in ("<<(", "[", "("):
        whole = f"<urn:s> <urn:p> {text % (part * 200)} ; <urn:q> <<( <urn:a> <urn:b> <urn:c> )>> ."
        check_turtle(whole)
        for size in (1, 7, 64):
            scan = TurtleScan()
            for at in range(0, len(whole), size):
                scan.feed(whole[at : at + size], last=False)
            scan.feed("", last=True)
            assert (scan.brackets, scan.terms) == (0, 0)


TURTLE_PARTS = [
    *("[", "]", "(", ")", "<<", ">>", "<", ">", "#", "\n", " ", "a", "\\", '"', "'", '"""', "'''"),
    *(
        '\\"',
        "\\\\",
        "<urn:long-enough>",
        "<\\u0041long-enough",
        '"a longer [ text"',
        "# a longer ( comment",
        '"""a longer "" text',
        "'''a longer ' one",
    ),
]


@given(st.lists(st.sampled_from(TURTLE_PARTS), max_size=20).map("".join), st.integers(1, 30))
@examples(150, 20_000)
def test_turtle_in_blocks_is_held_to_the_bounds_of_the_whole(text: str, size: int) -> None:
    for levels in range(DATA_DEPTH - 2, DATA_DEPTH + 1):
        whole = refusal(partial(TurtleScan(levels).feed, last=True), text)
        cut = refusal(partial(feed_blocks, TurtleScan(levels), size=size), text)
        assert str(cut) == str(whole)


def test_a_string_of_many_blocks_is_scanned_once() -> None:
    begun, scan = time.process_time(), TurtleScan()
    for block in ('<urn:a> <urn:p> """', *['a [ "" ' * 300] * 2_000, '""" .'):
        scan.feed(block, last=False)
    assert scan.brackets == 0
    # To scan all of the string with each block would take minutes.
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("text", ["[ <urn:p> ", "( ", "{| <urn:p> ", "<urn:g> {"])
def test_brackets_of_turtle_lie_at_most_so_deep(text: str) -> None:
    check_turtle(text * DATA_DEPTH)
    check_turtle("<urn:s> <urn:p> [ <urn:p> (1 2) ] .\n" * 500)
    with pytest.raises(BoundError, match=f"brackets are nested more than {DATA_DEPTH} deep"):
        check_turtle(text * (DATA_DEPTH + 1))


def test_json_lies_at_most_so_deep() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"a":"[{",  "b":', "}]")):
        levels = DATA_DEPTH // sum(opening.replace('"[{"', "").count(sign) for sign in "[{")
        assert read_json((opening * levels + "1" + closing * levels).encode())
        with pytest.raises(BoundError, match="more than 100 deep"):
            read_json(opening * (levels + 1) + "1" + closing * (levels + 1))
    assert read_json('["' + "[" * 500 + '", "\\"[[[["]' + " " * 10) == ["[" * 500, '"[[[[']
    with pytest.raises(ValueError, match="Expecting"):
        read_json("[1,")


@pytest.mark.parametrize("item", ["1", '"a, [b"', "{}", "[1]", '{"b": 1}'])
def test_a_document_of_json_ld_has_at_most_so_many_values(item: str) -> None:
    entry = 1 + item.count("[1") + item.count("{")
    bounds = TextBounds(0, 0, 1000)
    for many, taken in ((990 // entry, True), (1001 // entry + 1, False)):
        text = f'{{"urn:p": [{", ".join([item] * many)}]}}'
        if taken:
            check_rdf(text.encode(), ox.RdfFormat.JSON_LD, bounds)
            continue
        with pytest.raises(BoundError, match="more than 1000 values: send it in parts, or as N-Triples or Turtle"):
            check_rdf(text.encode(), ox.RdfFormat.JSON_LD, bounds)


@pytest.mark.parametrize(
    "text", ['["\\ud834"]', b'{"\\udd1e\\ud834": 1}', b'["\xed\xa0\xb4"]', '{"a": {"b": "\ud834"}}']
)
def test_half_a_surrogate_pair_is_no_text(text: str | bytes) -> None:
    with pytest.raises(BoundError, match="UTF-8 cannot encode it"):
        read_json(text)
    assert read_json('["\\ud834\\udd1e"]') == ["\U0001d11e"]


def test_json_ld_is_held_to_depth_and_contexts() -> None:
    with pytest.raises(BoundError, match="more than 100 deep"):
        check_rdf('{"urn:p":' * 5_000 + "1" + "}" * 5_000, ox.RdfFormat.JSON_LD)
    context = ",".join(f'"a{n}": "urn:a{n}"' for n in range(4_000))
    many = ",".join(['{"@context": {"b": "urn:b"}, "b": 1}'] * 4_000)
    check_rdf(f'{{"@context": {{{context}}}, "a1": 1}}', ox.RdfFormat.JSON_LD)
    check_rdf(f"[{many}]", ox.RdfFormat.JSON_LD)
    for key in ("@context", "\\u0040context", "@\\u0063ontext"):
        own = many.replace("@context", key)
        with pytest.raises(BoundError, match="contexts are nested too deep"):
            check_rdf(f'{{"@context": {{{context}}}, "a1": [{own}]}}', ox.RdfFormat.JSON_LD)
        scoped = f'{context}, "t": {{"@id": "urn:t", "{key}": {{"z": "urn:z"}}}}'
        with pytest.raises(BoundError, match="contexts are nested too deep"):
            check_rdf(f'{{"@context": {{{scoped}}}, "a1": [{",".join(["{}"] * 4_000)}]}}', ox.RdfFormat.JSON_LD)


@pytest.mark.parametrize(
    "body",
    [
        '<!DOCTYPE rdf:RDF [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rdf:RDF/>',
        '<?xml version="1.0"?>\n<!-- <a> -->\n<!DOCTYPE rdf:RDF SYSTEM "http://127.0.0.1/a.dtd"><rdf:RDF/>',
        "<!doctype a><rdf:RDF/>",
        "<rdf:RDF/><!ENTITY a 'b'>",
    ],
)
def test_a_dtd_is_refused(body: str) -> None:
    for item in (body, body.encode()):
        with pytest.raises(BoundError, match=r"DTD .* is refused"):
            check_rdf(item, ox.RdfFormat.RDF_XML)
    for coding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        with pytest.raises(BoundError, match="UTF-8"):
            check_rdf(body.encode(coding), ox.RdfFormat.RDF_XML)
    with pytest.raises(BoundError, match="UTF-8"):
        check_rdf('<?xml version="1.0" encoding="ISO-2022-JP"?><a/>', ox.RdfFormat.RDF_XML)


def test_xml_lies_at_most_so_deep() -> None:
    whole = f"<rdf:RDF{RDF}>%s</rdf:RDF>"
    check_xml(whole % ("<t:A><t:p>" * 49 + "</t:p></t:A>" * 49))
    check_xml(whole % ("<t:A t:a=\"<b>\" t:b='>'/>" * 500 + "<!-- <a> -->" * 500 + "<![CDATA[<!DOCTYPE <a>]]>" * 500))
    with pytest.raises(BoundError, match="elements are nested more than 100 deep"):
        check_xml(whole % ("<t:A><t:p>" * 51 + "</t:p></t:A>" * 51))


XML_PARTS = [
    "<a>",
    "</a>",
    "<b/>",
    *("<", ">", "/>", "</", "a", "=", "/", "!", "-", "]", "\n", " ", '"', "'"),
    "<t:a t:b=\"<c> '\" t:d='>'>",
    *("<!--", "-->", "<!-- <a> -->", "<![CDATA[", "]]>", "<![CDATA[<!DOCTYPE <a>]]>", "<?a", "?>", "<!DOCTYPE"),
]


@pytest.mark.parametrize("blanks", ["", " \n "])
@pytest.mark.parametrize("kind", ["Resource", "Collection", "Triple", "Literal", "Resources", "x" * 20, ""])
def test_literals_of_xml_are_seen_in_blocks_of_any_size(kind: str, blanks: str) -> None:
    for size in range(1, 60):
        scan = XmlScan()
        feed_blocks(scan, f'<a/><t:b rdf:parseType{blanks}={blanks}"{kind}">', size)
        assert scan.literals == (kind not in ("Resource", "Collection", "Triple"))


@given(st.lists(st.sampled_from(XML_PARTS), max_size=20).map("".join), st.integers(1, 9))
@examples(150, 20_000)
def test_xml_in_blocks_is_held_to_the_bounds_of_the_whole(text: str, size: int) -> None:
    for levels in range(DATA_DEPTH - 2, DATA_DEPTH + 1):
        whole = refusal(partial(XmlScan(levels).feed, last=True), text)
        cut = refusal(partial(feed_blocks, XmlScan(levels), size=size), text)
        assert str(cut) == str(whole)


def test_results_are_held_to_the_same_bounds() -> None:
    check_results(b'{"head": {"vars": []}, "results": {"bindings": []}}', ox.QueryResultsFormat.JSON)
    with pytest.raises(BoundError, match="deep"):
        check_results(b'{"value":' * 500, ox.QueryResultsFormat.JSON)
    with pytest.raises(BoundError, match="DTD"):
        check_results(b"<!DOCTYPE a><sparql/>", ox.QueryResultsFormat.XML)


# Files


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        (deep(40), ox.RdfFormat.TURTLE),
        ("<urn:s> <urn:p> <urn:o> .\n" * 10_000 + deep(40), ox.RdfFormat.N_TRIPLES),
        ('{"urn:p":' * 200 + "1" + "}" * 200, ox.RdfFormat.JSON_LD),
        ("<!DOCTYPE a><a/>", ox.RdfFormat.RDF_XML),
    ],
    ids=["turtle", "n-triples", "json-ld", "rdf-xml"],
)
def test_an_open_file_is_held_to_the_bounds(text: str, syntax: ox.RdfFormat, tmp_path) -> None:
    path = tmp_path / "deep"
    path.write_text(text)
    with path.open("rb") as file, pytest.raises(BoundError):
        list(ox.parse(bounded(file, syntax), format=syntax))
    with pytest.raises(BoundError):
        list(ox.parse(bounded(BytesIO(text.encode()), syntax), format=syntax))


def test_a_file_within_the_bounds_is_read_as_it_is(tmp_path) -> None:
    path = tmp_path / "flat.ttl"
    path.write_text(deep(3) * 50 + "<urn:s> <urn:p> '<<<<<<', '''a\n<<''' .\n" * 5_000)
    with path.open("rb") as file:
        assert len(list(ox.parse(bounded(file, ox.RdfFormat.TURTLE), format=ox.RdfFormat.TURTLE))) == 10_050
