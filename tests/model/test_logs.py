"""Log records: text for people, JSON for programs, and no secret in either, whoever logs it."""

import io
import json
import logging
import sys
from contextlib import contextmanager, redirect_stderr

import pytest

from streamgauge.model.logs import REQUEST, fields, logging_to_standard_error, without_secrets

LOG = logging.getLogger("streamgauge.tests")
SECRET = "hush-hush-hush"

SECRETS = {
    f"mqtt://me:{SECRET}@host:1883/topic?qos=1": "mqtt://me:...@host:1883/topic?qos=1",
    f"sse+http://host/x?token={SECRET}&last=7": "sse+http://host/x?token=...&last=7",
    f"GET /queries?access_token={SECRET}": "GET /queries?access_token=...",
    f"Authorization: Bearer {SECRET}": "Authorization: Bearer ...",
    f"kafka://host/t?password={SECRET}": "kafka://host/t?password=...",
    f"webhook+http://host/?secret={SECRET}": "webhook+http://host/?secret=...",
    "http://host:8080/a@b": "http://host:8080/a@b",
    "nothing of that kind": "nothing of that kind",
}


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_left_out(text):
    assert without_secrets(text) == SECRETS[text]


@contextmanager
def logged(level, form):
    """What is written to standard error, logging as a command does."""
    with redirect_stderr(io.StringIO()) as errors, logging_to_standard_error(level, form):
        yield errors


def test_text_has_the_level_the_sentence_and_the_fields():
    token = REQUEST.set("r1")
    with logged("info", "text") as errors:
        LOG.info("the query is registered", extra=fields(query="q1", late=None))
        LOG.warning("the disk is %s", "slow")
        LOG.debug("not logged")
    REQUEST.reset(token)
    LOG.info("not logged any more")
    lines = ["the query is registered (request=r1 query=q1)", "warning: the disk is slow (request=r1)"]
    assert errors.getvalue().splitlines() == lines


def test_json_is_an_object_a_line_whatever_is_printed():
    with logged("debug", "json") as errors:
        LOG.debug("a %s\nof two lines", "sentence", extra=fields(query="q1"))
        print("printed,", f"token={SECRET}\nand more", end="", file=sys.stderr)
        try:
            raise ValueError(f"mqtt://me:{SECRET}@host")
        except ValueError:
            LOG.exception("it failed")
        print(" at the end", file=sys.stderr)
    lines = [json.loads(line) for line in errors.getvalue().splitlines()]
    assert [line["message"] for line in lines] == [
        "a sentence\nof two lines",
        "printed, token=...",
        "it failed",
        "and more at the end",
    ]
    assert {"level": "debug", "logger": "streamgauge.tests", "query": "q1"}.items() <= lines[0].items()
    assert lines[2]["level"] == "error"
    assert lines[2]["error"].endswith("ValueError: mqtt://me:...@host")
    assert SECRET not in errors.getvalue()
    assert all(line["time"].endswith("Z") for line in lines)


@pytest.mark.parametrize(("level", "expected"), [("debug", ["warning"]), ("error", [])])
def test_libraries_log_no_more_than_warnings(level, expected):
    with logged(level, "json") as errors:
        logging.getLogger("httpx").debug("GET /?access_token=x")
        logging.getLogger("httpx").info("sent")
        logging.getLogger("httpx").warning("slow")
    assert [json.loads(line)["level"] for line in errors.getvalue().splitlines()] == expected
