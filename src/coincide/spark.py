"""Detection in Spark: `detect(rules, df)`, or `df.transform(detect(rules))`, for batch and streaming DataFrames alike."""

from coincide.connectors.formats import register
from coincide.connectors.messages import decoded
from coincide.connectors.reading import events
from coincide.connectors.reasons import why
from coincide.connectors.sinks import by_batch, by_key
from coincide.engines.spark.bytype import by_type
from coincide.engines.spark.detect import detect
from coincide.engines.spark.latecomers import split
from coincide.engines.spark.progress import progress
from coincide.engines.spark.report import Report
from coincide.engines.spark.rowpatterns import match_recognize
from coincide.engines.spark.rowsql import sql
from coincide.engines.spark.session import session
from coincide.engines.spark.tableend import match_recognize_to_end
from coincide.engines.spark.watching import watched

__all__ = [
    "Report",
    "by_batch",
    "by_key",
    "by_type",
    "decoded",
    "detect",
    "events",
    "match_recognize",
    "match_recognize_to_end",
    "progress",
    "register",
    "session",
    "split",
    "sql",
    "watched",
    "why",
]
