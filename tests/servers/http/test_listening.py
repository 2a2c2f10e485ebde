"""Sockets that a server listens at: all of a host's addresses, one port; in words why there are none."""

import socket

import pytest

from streamgauge.servers.http.server import PortError, listening

pytestmark = pytest.mark.server


def test_every_address_of_a_host_has_the_same_free_port():
    opened = listening("localhost", 0)
    try:
        assert len({item.getsockname()[1] for item in opened}) == 1
        assert opened[0].getsockname()[1] > 0
    finally:
        for item in opened:
            item.close()


def test_a_port_that_is_used_is_said_with_the_option():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortError, match=rf"127\.0\.0\.1:{port}: another program already uses this port.*--port"):
            listening("127.0.0.1", port)


def test_an_address_of_another_machine_is_said_with_the_option():
    with pytest.raises(PortError, match=r"192\.0\.2\.1:0: this machine does not have that address.*--host"):
        listening("192.0.2.1", 0)


def test_a_host_that_is_none_is_said():
    with pytest.raises(PortError, match="there is no host with that name"):
        listening("no-such-host.invalid", 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a system without IPv6")
def test_every_address_of_both_families_is_two_colons():
    (opened,) = listening("::", 0)
    with opened:
        port = opened.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, port), 10) as client:
                accepted, (peer, *_) = opened.accept()
                accepted.close()
                assert peer.removeprefix("::ffff:") == client.getsockname()[0]
