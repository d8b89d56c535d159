"""Messages of a broker as rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from coincide.engines.spark.rejects import CORRUPT

RECORD = "a record of json"  # no column's name


def decoded(frame: DataFrame, schema: StructType | str, keep: Sequence[str] = ()) -> DataFrame:
    """The records of JSON in the column `value` of messages (one each, or several, one a line) as columns by a schema, and before
    them the columns to `keep`. Of what is not JSON all columns are null, or, if the schema has it, all but `_corrupt_record`."""
    lines = frame.select(*keep, F.explode(F.split(F.col("value").cast("string"), "\n")).alias(RECORD))
    read = F.from_json(RECORD, schema, {"columnNameOfCorruptRecord": CORRUPT})
    return lines.filter(F.trim(RECORD) != "").select(*keep, read.alias(RECORD)).select(*keep, f"`{RECORD}`.*")
