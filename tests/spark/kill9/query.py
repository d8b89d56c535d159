"""A streaming query over files: run, killed and started again by test_kill9.py.

python query.py FOLDER RULES… (for ever | finish)"""

import sys
from pathlib import Path

from coincide.spark import by_batch, detect, session

SCHEMA = "type string, time long, id string, k string"


def main(folder: Path, rules: list[str], trigger: str) -> None:
    spark = session("kill9", "local[2]", spark__sql__shuffle__partitions="2", spark__local__dir=str(folder / "local"))
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 3).json(str(folder / "events"))
    writer = files.transform(detect(rules, delay="3 seconds", keys=True)).writeStream
    writer = writer.foreachBatch(by_batch(str(folder / "kept" / "found")))
    writer = writer.option("checkpointLocation", str(folder / "kept" / "checkpoint"))
    writer = writer.trigger(availableNow=True) if trigger == "finish" else writer.trigger(processingTime="0 seconds")
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:-1], sys.argv[-1])
