"""A streaming query over files: run, killed and started again by test_kill9.py.

python query.py FOLDER RULES… (for ever | finish | prepare)"""

import sys
from contextlib import suppress
from pathlib import Path

from coincide.spark import by_batch, detect, session

SCHEMA = "type string, time long, id string, k string"
FILES = {"prepare": 3, "for ever": 3, "finish": 40}
"""Of a micro-batch: few, so that there are many to be killed in; more where nobody is killed any more."""
LITTLE_COMPILING = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A query that lives for seconds would spend most of them on what serves long ones, in Spark and in Java."""


def java_options(folder: Path, trigger: str) -> str:
    """Classes are read and checked once, by the query that prepares: half of a start."""
    what = "ArchiveClassesAtExit" if trigger == "prepare" else "SharedArchiveFile"
    return f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -XX:{what}={folder / 'classes.jsa'}"


def main(folder: Path, rules: list[str], trigger: str) -> None:
    settings = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(folder / "local"), **LITTLE_COMPILING}
    settings["spark.driver.extraJavaOptions"] = java_options(folder, trigger)
    spark = session("kill9", "local[2]", **{name.replace(".", "__"): value for name, value in settings.items()})
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES[trigger]).json(str(folder / "events"))
    writer = files.transform(detect(rules, delay="3 seconds", keys=True)).writeStream
    writer = writer.foreachBatch(by_batch(str(folder / "kept" / "found")))
    writer = writer.option("checkpointLocation", str(folder / "kept" / "checkpoint"))
    writer = writer.trigger(processingTime="0 seconds") if trigger == "for ever" else writer.trigger(availableNow=True)
    query = writer.start()
    (folder / "running").touch()
    query.awaitTermination()
    if trigger == "prepare":
        with suppress(Exception):  # of the connection, which ends
            spark._jvm.java.lang.System.exit(0)
        spark._sc._gateway.proc.wait(300)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:-1], sys.argv[-1])
