"""One at a time, in order, and not too many who wait."""

import asyncio

import pytest

from streamgauge.servers.http.gates import CrowdedError, Gate


def test_one_is_inside_at_a_time_in_the_order_in_which_they_came():
    async def run():
        gate, inside, seen = Gate(10, "begin"), [0], []

        async def one(number):
            async with gate.through():
                inside[0] += 1
                assert inside[0] == 1
                await asyncio.sleep(0)
                seen.append(number)
                inside[0] -= 1

        await asyncio.gather(*map(one, range(5)))
        return seen

    assert asyncio.run(run()) == list(range(5))


def test_too_many_who_wait_are_told_to_come_again():
    async def run():
        gate = Gate(1, "begin a channel")
        async with gate.through():
            waiting = asyncio.create_task(gate.through().__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(CrowdedError, match="1 wait to begin a channel already"):
                async with gate.through():
                    pass
        await waiting

    asyncio.run(run())
