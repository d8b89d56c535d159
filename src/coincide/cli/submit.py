"""`coincide spark-submit`: a job on a cluster."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from pathlib import Path

from coincide.cli.command import Command, Given
from coincide.errors import CoincideError

DESCRIPTION = """\
Run rules over a source, to a sink, on any Spark cluster.

With --checkpoint it is a stream that goes on from there, else a batch. The package and the rules are sent along; what the package
needs (NumPy, Numba, PyArrow, pandas …) must be where the workers are: see docs/spark-clusters.md.

example:
  coincide spark-submit theft.ecl --source events/ --sink found/
  coincide spark-submit theft.ecl --master spark://10.0.0.1:7077 --source 'nats://broker/events?stream=EVENTS' \\
      --schema 'type string, time timestamp, item string' --sink found/ --checkpoint kept/ --conf spark.executor.memory=4g
"""
SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
OF_STREAMS = {"spark.sql.shuffle.partitions": "8"}
"""As many as a group of rules has buckets: of Spark's 200 most would have a store and a worker each for nothing."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    from coincide.connectors.job import arguments

    parser.add_argument("rules", nargs="+", metavar="RULES", help="rule files, loaded together in this order")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="spark://…, yarn, k8s://… (default: this machine)")
    parser.add_argument(
        "--conf", metavar="NAME=VALUE", action="append", default=[], help="a setting of Spark; may be given again"
    )
    text = "the package to send along (`make package` makes one; default: made of what is running, with --print coincide.zip)"
    parser.add_argument("--zip", metavar="FILE", type=Path, help=text)
    parser.add_argument("--print", action="store_true", help="print the command instead of running it")
    arguments(parser)


def submit(given: Given) -> int:
    import subprocess
    import tempfile

    from coincide.connectors.packaging import archive
    from coincide.rulebook import load, rule_files

    load(
        *given.rules, sigma_mapping=given.sigma_mapping or given.mapping
    )  # what is wrong with them is told here, not by a cluster
    given.rules = [file.name for file in rule_files(given.rules)]  # Spark sends files, not folders
    if given.print:
        print(shlex.join(_command(given, given.zip or Path("coincide.zip"))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        package = given.zip or Path(folder) / "coincide.zip"
        if given.zip is None:
            archive(package)
        return subprocess.run(_command(given, package), env=_environment(), check=False).returncode


def _command(given: Given, package: Path) -> list[str]:
    from coincide.connectors import job

    usual = SETTINGS if given.checkpoint is None else SETTINGS | OF_STREAMS
    settings = [*(f"{name}={value}" for name, value in usual.items()), *given.conf]
    conf = [word for setting in settings for word in ("--conf", setting)]
    mappings = [file for file in (given.mapping, given.sigma_mapping) if file and Path(file).exists()]  # or of the package
    files = _sent([*given.rules, *dict.fromkeys(mappings)])
    shipped = ["--master", given.master, "--py-files", str(package), "--files", ",".join(files)]
    return [_spark_submit(), *shipped, *conf, job.__file__, *given.rules, *job.repeated(given)]


def _sent(files: list[str]) -> list[str]:
    """As they lie in one folder where the job runs."""
    names = Counter(Path(file).name for file in files)
    for name, count in names.items():
        if count > 1:
            raise CoincideError(f"{count} files are called '{name}', and Spark sends files by these names: rename them")
    return files


def _spark_submit() -> str:
    """Of the Spark that SPARK_HOME names, or of PySpark."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return str(home / "bin" / "spark-submit")


def _environment() -> dict[str, str]:
    from coincide.engines.spark.session import java_home

    home = java_home()
    java = {} if home is None else {"JAVA_HOME": str(home)}
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, **os.environ, **java}


SUBMIT = Command("spark-submit", DESCRIPTION, _arguments, submit)
