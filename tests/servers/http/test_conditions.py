"""If-Match and If-None-Match by RFC 9110, 13.1: the comparisons, lists, the star, targets without a tag."""

import pytest

from streamgauge.servers.http.headers import (
    ConditionError,
    PreconditionError,
    entity_tag,
    read_conditions,
)

A, B = '"a"', '"b"'


def holds(name, value, tags):
    lines = value if isinstance(value, list) else [value]
    conditions = read_conditions([(name.encode(), line.encode("latin-1")) for line in lines])
    try:
        conditions.require(tags, "the thing")
    except PreconditionError:
        return False
    return True


@pytest.mark.parametrize(
    ("value", "tags", "expected"),
    [
        (A, [A], True),
        (A, [B], False),
        (A, [], False),
        ("*", [A], True),
        ("*", [], False),
        (f"{B}, {A}", [A], True),
        (f"{B},{A},", [A], True),
        (f" ,, {A}", [A], True),
        ([B, A], [A], True),
        (f"W/{A}", [A], False),  # strong comparison
        ('"x,y"', ['"x,y"'], True),
        ('"x,y"', ['"x"'], False),
        ("", [A], False),
        ('"é"', ['"é"'], True),
    ],
)
def test_if_match(value, tags, expected):
    assert holds("if-match", value, tags) is expected


@pytest.mark.parametrize(
    ("value", "tags", "expected"),
    [
        ("*", [], True),
        ("*", [A], False),
        (A, [A], False),
        (A, [B], True),
        (f"W/{A}", [A], False),  # weak comparison
        (f"{B}, {A}", [A], False),
        ("", [A], True),
    ],
)
def test_if_none_match(value, tags, expected):
    assert holds("if-none-match", value, tags) is expected


@pytest.mark.parametrize("value", ["a", '"a', "a, b", '"a" "b"', "*, *", '*, "a"', 'w/"a"', 'W/ "a"', '"a\x7f"'])
def test_what_is_no_list_of_tags_is_said(value):
    with pytest.raises(ConditionError, match="expected \\* or a list of entity tags"):
        read_conditions([(b"if-match", value.encode())])


def test_long_lists_are_read_in_one_pass():
    tags = [entity_tag(b"%d" % n) for n in range(3000)]
    assert holds("if-match", ", ".join(tags), tags[-1:])
    with pytest.raises(ConditionError):
        read_conditions([(b"if-match", b'"a",' * 20_000 + b"x")])


def test_a_target_without_tags_refuses_both():
    read_conditions([]).refuse("/publish")
    for name in (b"if-match", b"if-none-match"):
        with pytest.raises(PreconditionError, match="/publish has no entity tag"):
            read_conditions([(name, b"*")]).refuse("/publish")
