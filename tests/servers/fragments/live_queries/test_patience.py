"""What no later poll mends ends a watch with a sentence; what may pass is tried again, for so long and no longer."""

import asyncio
import socket
import ssl
from itertools import pairwise

import httpx
import pytest

from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.transport import ClientLimits, RefusedAddressError
from streamgauge.servers.fragments.live_queries.poll_loop import GaveUpError
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.simulated import clock, run
from tests.servers.fragments.live_queries.test_faults import QUERY, Watched, fact


async def ended(on):
    """The error that ends a watch, and how long (s) that takes."""
    begun = clock()
    with pytest.raises(LinkedDataError) as error:
        await taken(on)
    return error.value, (clock() - begun) / 1000


async def taken(on):
    while True:
        await anext(on.answers)


def spoiled(spoil, worked, **more):
    async def watched():
        on = Watched(**more)
        on.served.add([fact("a", "1")])
        if worked:
            assert await on.next() == {'"1"'}
        on.wire.spoil = spoil
        return (*await ended(on), on.failures)

    return run(watched())


@pytest.mark.parametrize("worked", [False, True])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 410, 414, 421, 422, 451, 501, 505])
def test_a_refusal_ends_a_watch(status, worked):
    error, seconds, failures = spoiled(lambda _: simulated.told(status), worked)
    assert (f"answers {status}" in str(error), isinstance(error, GaveUpError)) == (True, False)
    assert (seconds < 20, failures) == (True, [])


@pytest.mark.parametrize("worked", [False, True])
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest", "file:///etc/passwd", "gopher://a.test/", "http://localhost/"]
)
def test_a_redirect_to_where_nobody_may_go_ends_a_watch(target, worked):
    error, seconds, failures = spoiled(lambda _: simulated.told(302, location=target), worked)
    assert isinstance(error, RefusedAddressError)
    assert (seconds < 20, failures) == (True, [])


def raising(error):
    def spoil(request):
        raise httpx.ConnectError("no connection", request=request) from error

    return spoil


UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate"
PLAIN = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
PLAIN.reason = "WRONG_VERSION_NUMBER"


@pytest.mark.parametrize("worked", [False, True])
@pytest.mark.parametrize(("cause", "says"), [(UNTRUSTED, "self-signed certificate"), (PLAIN, "no TLS is spoken")])
def test_a_certificate_or_a_server_without_tls_ends_a_watch(cause, says, worked):
    error, seconds, _ = spoiled(raising(cause), worked)
    assert (says in str(error), isinstance(error, GaveUpError), seconds < 20) == (True, False, True)


def test_a_host_that_is_nowhere_ends_a_watch_that_never_worked():
    nowhere = raising(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    assert not isinstance(spoiled(nowhere, worked=False)[0], GaveUpError)
    assert isinstance(spoiled(nowhere, worked=True)[0], GaveUpError)
    passing = raising(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"))
    assert isinstance(spoiled(passing, worked=False)[0], GaveUpError)


def test_what_is_no_source_ends_a_watch_that_never_worked_and_is_waited_for_later():
    def page(_request):
        return simulated.told(200, b"<p>maintenance</p>", content_type="text/html")

    error, seconds, _ = spoiled(page, worked=False)
    assert ("not an interface that is known" in str(error), seconds < 20) == (True, True)
    error, seconds, failures = spoiled(page, worked=True)
    assert (isinstance(error, GaveUpError), len(failures) > 5) == (True, True)


@pytest.mark.parametrize("worked", [False, True])
@pytest.mark.parametrize("patience", [30_000, 600_000])
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_for_so_long(status, patience, worked):
    error, seconds, failures = spoiled(lambda _: simulated.told(status), worked, patience=patience)
    assert isinstance(error, GaveUpError)
    assert f"answers {status}" in str(error)
    assert f"--patience is {patience / 1000:g} s" in str(error)
    assert patience / 1000 - 65 < seconds <= patience / 1000 + 30
    assert failures
    assert all(f"answers {status}" in failure.why for failure in failures)


@pytest.mark.slow
def test_without_an_end_to_patience_a_watch_goes_on():
    async def watched():
        on = Watched(patience=None)
        on.served.add([fact("a", "1", 10**8)])
        on.wire.spoil = lambda _: simulated.told(503)
        asyncio.get_running_loop().call_later(50_000, lambda: setattr(on.wire, "spoil", None))
        answer = await anext(on.answers)
        await on.answers.aclose()
        return answer

    assert len(run(watched()).added) == 1


def test_retry_after_is_kept_to():
    times = []

    def spoil(_request):
        times.append(clock())
        return simulated.told(503, retry_after="100")

    error, _, failures = spoiled(spoil, worked=False, patience=350_000, limits=ClientLimits(put_off=True))
    assert "asks to come again in 100 s" in str(error)
    assert len(failures) == len(times) - 1 == 3
    assert all(later - sooner >= 100_000 for sooner, later in pairwise(times))


def test_a_server_that_asks_for_more_than_there_is_patience_for_ends_a_watch_at_once():
    far = {"worked": False, "limits": ClientLimits(put_off=True)}
    error, seconds, failures = spoiled(lambda _: simulated.told(503, retry_after="86400"), **far)
    assert (isinstance(error, GaveUpError), seconds < 5, failures) == (True, True, [])


@pytest.mark.parametrize(
    "address", ["gopher://a.test/x", "file:///etc/passwd", "trains", "http://u:p@a.test/", "ftp://a"]
)
def test_an_address_that_is_none_ends_a_watch(address):
    async def watched():
        web = CachingHttpClient(
            httpx.AsyncClient(transport=httpx.MockTransport(None)), clock, asyncio.sleep, ClientLimits()
        )
        with pytest.raises(RefusedAddressError):
            await anext(watch(QUERY, [address], web=web))

    run(watched())
