"""A fragments server keeps what its OpenAPI description says, whatever is made up from it."""

from collections.abc import Sequence

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.labels import Style
from tests.fuzz.test_fragments import TOKEN, Served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    unsupported_method,
]
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def operations(names: Sequence[str]) -> list[object]:
    """Every operation of a server for each of some methods of annotation, asked well and badly where that can be."""
    results = []
    for number, name in enumerate(names):
        server = Served(Style(name))
        schema = schemathesis.openapi.from_asgi("/openapi.json", server.app)
        for operation in (result.ok() for result in schema.get_all_operations()):
            own = "{" in operation.path
            for mode in schemathesis.GenerationMode if own else [schemathesis.GenerationMode.POSITIVE]:
                if number == 0 or own:
                    label = f"{name}-{operation.method}-{operation.path}-{mode.value}"
                    results.append(pytest.param(server, operation, mode, id=label))
    return results


def holds(server: Served, case: schemathesis.Case, authorized: bool) -> None:
    version = server.data.store.version
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"} if authorized else {}, checks=CHECKS)
    if not authorized:
        assert server.data.store.version == version
    elif server.data.store.version != version:
        server.readable()


@pytest.mark.slow
@pytest.mark.parametrize(("server", "operation", "mode"), operations(methods()[:2]))
def test_requests_made_up_from_the_description(
    server: Served, operation: schemathesis.APIOperation, mode: schemathesis.GenerationMode
) -> None:
    asked(server, operation, mode, 5)


@pytest.mark.prove
@pytest.mark.parametrize(("server", "operation", "mode"), operations(methods()))
def test_many_requests_made_up_from_the_description(
    server: Served, operation: schemathesis.APIOperation, mode: schemathesis.GenerationMode
) -> None:
    asked(server, operation, mode, 100)


def asked(server: Served, operation: schemathesis.APIOperation, mode: schemathesis.GenerationMode, many: int) -> None:
    """Requests of an operation, with a token or without."""

    @settings(max_examples=many, deadline=None, suppress_health_check=PATIENT, database=None)
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    def ask(case: schemathesis.Case, authorized: bool) -> None:
        holds(server, case, authorized)

    ask()
