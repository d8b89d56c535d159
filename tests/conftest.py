"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One small local Spark for all tests that need one."""
    pytest.importorskip("pyspark")
    from coincide.engines.spark.session import session

    made = session("coincide tests", "local[2]", spark__sql__shuffle__partitions="2")
    yield made
    made.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One Spark for all workers: what needs it goes to one of them."""
    for item in items:
        if item.get_closest_marker("spark") or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
