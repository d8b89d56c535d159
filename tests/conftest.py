"""Fixtures for all tests."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A machine that does other work, too, draws slowly: that says nothing about the tests.
patient = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.register_profile("patient", patient)
# A check of a change should not fail for what an example drawn by chance finds elsewhere; at home they differ every time.
settings.register_profile("same-each-time", patient, derandomize=True)
settings.load_profile("same-each-time" if os.environ.get("CI") else "patient")

SHARING = re.compile("spark|test_together|test_cli_policies|test_extraction|test_shuffled")
"""Tests that use the session of Spark: the process that hands them out knows only their names."""

BRIEF = 4
"""So many examples a random test draws at most, unless all are wanted or its mark `brief` says how many."""

HASTY = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dspark.sql.codegen.wholeStage=false",
    "-Dspark.sql.codegen.factoryMode=NO_CODEGEN",
    "-Dspark.sql.streaming.checkpointFileManagerClass=org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
)
"""For Java wherever Spark starts it: its jobs here are tiny and many, and to compile them takes longer than to interpret them.
Files of checkpoints are written without starting a program for each, for its permissions."""

PRELOADING = {"spark.python.daemon.module": "preloading", "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent)}
"""Workers in Python fork from a process that has imported what they need."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--in-full", action="store_true", help="all random examples, each case by itself on Spark, which compiles its queries"
    )


def pytest_configure(config: pytest.Config) -> None:
    sys.dont_write_bytecode = False  # hundreds of processes would compile the package again
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not config.getoption("in_full"):
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join(HASTY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker takes what shares a Spark, since to start another and to warm it up takes half a minute; of all that is run in
    full, another worker takes what is about Spark. Tests of one file stay together: what is made once for all of them would be
    made again after those of another."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if not SHARING.search(nodeid.partition("[")[0]):
                return nodeid.partition("::")[0]
            return "spark" if config.getoption("in_full") and nodeid.startswith("tests/spark/") else "on spark"

        def _assign_work_unit(self, node: Any) -> None:
            """The longest road first."""
            for scope in ("spark", "on spark"):
                if scope in self.workqueue:
                    self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not SHARING.search(item.nodeid.partition("[")[0]):
            raise pytest.UsageError(f"{item.nodeid} shares the session of Spark: SHARING should find it by its name")
    if not config.getoption("in_full"):
        for item in items:
            _shorten(item)
        _sample(items)


def _brief(item: pytest.Item, what: str) -> int | None:
    """So many examples, or sets of parameters, its mark allows."""
    mark = item.get_closest_marker("brief")
    return None if mark is None else mark.kwargs.get(what)


def _shorten(item: pytest.Item) -> None:
    test, most = getattr(item, "obj", None), _brief(item, "examples") or BRIEF
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and own.max_examples > most:
        test._hypothesis_internal_use_settings = settings(own, max_examples=most)


def _sample(items: list[pytest.Item]) -> None:
    """Of what a function is parametrized for, as many as its mark says, evenly spread; the others are for `make test-all`."""
    functions = defaultdict[tuple[str, int], list[pytest.Item]](list)
    for item in items:
        if most := _brief(item, "parameters"):
            functions[item.nodeid.partition("[")[0], most].append(item)
    for (_, most), of_one in functions.items():
        taken = {number * len(of_one) // most for number in range(most)}
        for number, item in enumerate(of_one):
            if number not in taken:
                item.add_marker("matrix")


@pytest.fixture(scope="session")
def in_full(pytestconfig: pytest.Config) -> bool:
    """Whether all is wanted, for tests that draw or choose by themselves."""
    return bool(pytestconfig.getoption("in_full"))


@pytest.fixture(scope="session")
def spark(in_full: bool) -> Iterator[Any]:
    """One small local Spark for all tests that need one."""
    pytest.importorskip("pyspark")
    from coincide.engines.spark.session import session

    conf = {"spark.sql.shuffle.partitions": "2", **({} if in_full else PRELOADING)}
    made = session("coincide tests", "local[2]", **conf)
    yield made
    made.stop()


@pytest.fixture
def compiling(spark: Any) -> Iterator[None]:
    """What Spark cannot interpret: rows of its catalog."""
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    spark.conf.unset("spark.sql.codegen.factoryMode")
