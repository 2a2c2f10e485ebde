"""Addresses that are public, private, and never requested, in every notation and wrapping."""

import pytest

from streamgauge.outgoing.addresses import is_private, names_private, never_requested

PRIVATE = [
    "127.0.0.1", "127.1", "0x7f.1", "2130706433", "0", "0.0.0.0", "10.1.2.3", "192.168.1.1", "172.16.0.1", "100.64.0.1",
    "169.254.169.254", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1",
    "fec0::1", "feff::1", "64:ff9b:1::1", "64:ff9b::10.0.0.1", "::ffff:10.0.0.1", "::10.0.0.1", "::127.0.0.1",
    "2002:0a00:0001::1", "2002:7f00:1::", "2001:db8::1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1",
    "ff02::1", "168.63.129.16", "fd00:ec2::254", "127.0.0.1.",
]  # fmt: skip
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:0808:0808::1",
    "134744072",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_of_the_public_internet(address):
    assert is_private(address)
    assert names_private(address)


@pytest.mark.parametrize("address", [*PUBLIC, "taker.example", "1.2.3.4.example", "", "x" * 300, "0x", "1.2.3.4.5"])
def test_what_is_public_or_no_address(address):
    assert not is_private(address)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "x.localhost"])
def test_this_machine_by_name(host):
    assert names_private(host)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1",
        "::169.254.169.254", "fe80::1", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200",
        "168.63.129.16", "0.0.0.0", "::", "224.0.0.1",
        "255.255.255.255", "not an address",
    ],
)  # fmt: skip
def test_what_no_request_goes_to(address):
    assert never_requested(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "fd12::1", "8.8.8.8"])
def test_what_a_person_may_type(address):
    assert not never_requested(address)
