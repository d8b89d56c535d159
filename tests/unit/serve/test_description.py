"""The service does what its description says, whatever is asked of it: schemathesis makes the requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serve_support import Served, rules, served

from coincide.serve.description import described

schema = schemathesis.openapi.from_dict(described()).exclude(path="/detections/stream")  # it has no end


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("described")
    with served(rules(folder), "--rate", "0", "--clock", "event") as running:
        yield running


@schema.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_it_answers_as_described(case: Any, server: Served) -> None:
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    case.call_and_validate(base_url=str(server.http.base_url), checks=checks)
