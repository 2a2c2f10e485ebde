"""Idempotency keys: of an owner, an operation and a body; what is another is refused, nobody displaces others' keys."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.servers.http.retries import (
    UNKNOWN_DIGEST,
    BadKeyError,
    KeyBusyError,
    KeyReuseError,
    Once,
    RetryKey,
    RetryMemory,
    read_key,
    request_digest,
)


def test_a_key_is_known_to_its_owner_only():
    memory = RetryMemory[int](10)
    memory.remember(RetryKey("a", "k", b"1"), 1)
    assert memory.known(RetryKey("a", "k", b"1")) == 1
    assert memory.known(RetryKey("b", "k", b"1")) is None
    assert memory.known(None) is None


def test_a_key_with_another_digest_is_refused():
    memory = RetryMemory[int](10)
    memory.remember(RetryKey("a", "k", b"1"), 1)
    with pytest.raises(KeyReuseError, match="'k' was used for another request"):
        memory.known(RetryKey("a", "k", b"2"))
    memory.forget(RetryKey("a", "k", b"1"))
    assert memory.known(RetryKey("a", "k", b"2")) is None


def test_a_key_of_unknown_digest_is_that_of_the_next_request():
    memory = RetryMemory[int](10, [(RetryKey("a", "k", UNKNOWN_DIGEST), 1)])
    assert memory.known(RetryKey("a", "k", b"2")) == 1
    with pytest.raises(KeyReuseError):
        memory.known(RetryKey("a", "k", b"3"))


def test_an_owner_displaces_no_key_but_its_own():
    memory = RetryMemory[int](3)
    memory.remember(RetryKey("a", "first", b""), 0)
    assert [memory.remember(RetryKey("b", str(n), b"x"), n) for n in range(5)] == [[], [], [], [0], [1]]
    assert memory.holds(RetryKey("a", "first", b""))
    assert not memory.holds(RetryKey("b", "0", b""))


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_two_lists_of_parts_have_one_digest_only_when_they_are_equal(one, other):
    assert (request_digest(*one) == request_digest(*other)) is (one == other)


@pytest.mark.parametrize("text", ["", "x" * 201, "a\nb", "\x00"])
def test_what_is_no_key(text):
    with pytest.raises(BadKeyError, match="1 to 200 printable"):
        read_key(text, "")


def test_what_is_under_way_is_not_begun_again_and_what_failed_may_be():
    done, wait = [], asyncio.Event()

    async def work():
        done.append(len(done))
        await wait.wait()
        if len(done) == 1:
            raise OSError("the first time fails")
        return len(done)

    async def main():
        once, key = Once[int](10), RetryKey("a", "k", b"1")
        first = asyncio.create_task(once(key, work))
        await asyncio.sleep(0)
        with pytest.raises(KeyBusyError, match="'k' is under way: come again"):
            await once(key, work)
        with pytest.raises(KeyReuseError):
            await once(RetryKey("a", "k", b"2"), work)
        wait.set()
        with pytest.raises(OSError, match="the first time"):
            await first
        return [await once(key, work), await once(key, work), await once(RetryKey("b", "k", b"1"), work)]

    assert asyncio.run(main()) == [2, 2, 3]


def test_a_request_that_is_broken_off_leaves_its_key_free():
    async def main():
        once, key = Once[int](10), RetryKey("a", "k", b"1")
        task = asyncio.create_task(once(key, lambda: asyncio.sleep(1000, 1)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return await once(key, lambda: asyncio.sleep(0, 2))

    assert asyncio.run(main()) == 2
