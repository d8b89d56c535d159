"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# A check of a change should not fail for what an example drawn by chance finds elsewhere; at home they differ every time.
settings.register_profile("same-each-time", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("same-each-time")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One small local Spark for all tests that need one."""
    pytest.importorskip("pyspark")
    from coincide.engines.spark.session import session

    made = session("coincide tests", "local[2]", spark__sql__shuffle__partitions="2")
    yield made
    made.stop()
