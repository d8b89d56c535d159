"""A streaming query that goes on for ever: run and killed by test_restart.py."""

import sys
from pathlib import Path

from coincide import spark as on_spark


def main(folder: Path, rules: str, trigger: str) -> None:
    spark = on_spark.session("restart", "local[2]", spark__sql__shuffle__partitions="2")
    schema = spark.read.parquet(str(folder / "events")).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    found = on_spark.detect(rules, frame, delay="3 seconds")
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.trigger(availableNow=True) if trigger == "finish" else writer.trigger(processingTime="0 seconds")
    writer.start(str(folder / "detections")).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
