"""The frame of the workbench: who comes in, which pages there are, what a browser is told."""

import re

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
    result = bench.get("/", headers=HTML).text
    for name in ("runs",):
        assert f'href="/{name}/"' in result
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


ODD = ["a" * 300, "a/" * 2_000, "%00", "%ED%A0%80", "..%2F..%2Fetc%2Fpasswd"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "path", ["/runs/run/{}", "/runs/report/{}", "/runs/experiment/{}", "/runs/compare?a={}&b={}", "/playground/?run={}"]
)
def test_a_text_that_is_no_path_is_refused(tmp_path, path, odd):
    with opened(tmp_path) as bench:
        response = httpx.get(bench.url + path.format(odd, odd), timeout=60)
    assert response.status_code in (400, 404, 422), response.text


def test_a_source_that_is_no_path_is_refused(tmp_path):
    query = "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { ?a ?p ?s } }"
    with opened(tmp_path) as bench:
        for source in ("a" * 300, "a/" * 2_000, "a\0b"):
            response = httpx.post(bench.url + "/live/new", data={"query": query, "sources": source}, timeout=60)
            match = re.search(r'role="alert"[^>]*>(.*?)<', response.text, re.DOTALL)
            assert response.status_code == 400
            assert "only files below" in match[1]


@pytest.mark.parametrize("body", ["{}", "[]", '{"name": 1}', '{"name": "no-such-profile"}'])
def test_a_profile_without_its_name_is_a_sentence(tmp_path, body):
    with opened(tmp_path) as bench:
        response = httpx.post(bench.url + "/playground/profile", content=body, timeout=60)
    assert response.status_code == 400
    assert "profile" in response.json()["error"]
