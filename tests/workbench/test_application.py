"""The frame of the workbench: who comes in, which pages there are, what a browser is told."""

import httpx
import pytest

from tests.workbench.serving import opened

pytestmark = pytest.mark.server

TOKEN = "a-token-of-the-workbench"
HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("runs")) as bench, httpx.Client(base_url=bench.url, timeout=60) as client:
        yield client


@pytest.fixture
def guarded(tmp_path):
    with opened(tmp_path, [TOKEN]) as bench, httpx.Client(base_url=bench.url, timeout=60) as client:
        yield client


def test_the_front_page_leads_to_every_room(bench):
    found = bench.get("/", headers=HTML).text
    for name in ("runs",):
        assert f'href="/{name}/"' in found
        assert bench.get(f"/{name}/", headers=HTML).status_code == 200


def test_every_page_has_a_policy_that_keeps_it_here(bench):
    headers = bench.get("/", headers=HTML).headers
    policy = headers["content-security-policy"]
    assert headers["referrer-policy"] == "same-origin"
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_page_elsewhere_cannot_use_it(bench):
    assert bench.get("/", headers={"origin": "https://elsewhere.example"}).status_code == 403
    assert bench.get("/", headers={"host": "rebound.example"}).status_code == 421


def test_what_is_not_there_is_said_as_it_was_asked(bench):
    assert bench.get("/nowhere", headers=HTML).text.startswith("<!doctype html>")
    assert bench.get("/nowhere").json() == {"error": "Not Found"}


def test_a_token_in_the_address_becomes_a_cookie(guarded):
    assert guarded.get("/runs/").status_code == 401
    come = guarded.get(f"/runs/?access_token={TOKEN}&kept=1")
    assert (come.status_code, come.headers["location"]) == (303, "/runs/?kept=1")
    assert "HttpOnly" in come.headers["set-cookie"]
    assert "samesite=strict" in come.headers["set-cookie"].lower()
    assert guarded.get("/runs/", headers=HTML).status_code == 200


def test_a_wrong_token_stays_outside(guarded):
    assert guarded.get("/runs/?access_token=another-token-of-them").status_code == 401
    guarded.cookies.set("streamgauge_token", "another-token-of-them")
    assert guarded.get("/runs/").status_code == 401
