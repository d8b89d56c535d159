"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A machine that does other work, too, draws slowly: that says nothing about the tests.
patient = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.register_profile("patient", patient)
# A check of a change should not fail for what an example drawn by chance finds elsewhere; at home they differ every time.
settings.register_profile("same-each-time", patient, derandomize=True)
settings.load_profile("same-each-time" if os.environ.get("CI") else "patient")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One small local Spark for all tests that need one."""
    pytest.importorskip("pyspark")
    from coincide.engines.spark.session import session

    made = session("coincide tests", "local[2]", spark__sql__shuffle__partitions="2")
    yield made
    made.stop()
