"""A job for spark-submit: rules over a source, to a sink.

    spark-submit --master … --py-files coincide.zip coincide_job.py RULES… --source … --sink … [--checkpoint …]

`coincide spark-submit` puts this command together. With a checkpoint it is a stream, else a batch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.connectors.sinks import Write


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the job takes beside its rules."""
    group = parser.add_argument_group("the job")
    text = "where events are: a path, or nats://…?stream=NAME, mqtt://…, kafka://HOST:PORT/TOPIC"
    group.add_argument("--source", metavar="WHERE", required=True, help=text)
    text = "where detections go: a path (Parquet), or a sink that has each once by its key: postgresql://…#TABLE, nats://…?stream=NAME"
    group.add_argument("--sink", metavar="WHERE", required=True, help=text)
    group.add_argument(
        "--schema", metavar="COLUMNS", help="of messages, or files that do not tell: 'type string, time timestamp, …'"
    )
    group.add_argument("--format", metavar="NAME", help="of files: parquet, json, csv …")
    group.add_argument(
        "--option", metavar="NAME=VALUE", action="append", default=[], help="of Spark's reader; may be given again"
    )
    text = "where rows go that are no events (Parquet), with the reason; without it they are counted"
    group.add_argument("--rejects", metavar="PATH", help=text)
    group.add_argument("--late", metavar="PATH", help="where events go that came too late (Parquet); without it they are counted")
    group.add_argument("--mapping", metavar="FILE", help="a mapping of fields (YAML)")
    group.add_argument("--sigma-mapping", metavar="FILE", help="log sources and fields of Sigma's rules")
    group.add_argument("--policy", metavar="NAME", help="best-effort, guaranteed, 'probabilistic 0.95': of rules that name none")
    group.add_argument("--checkpoint", metavar="DIR", help="a stream, that goes on from here")
    group.add_argument("--every", metavar="SPAN", help="of a stream: for ever, in micro-batches (default: what is there)")
    group.add_argument("--delay", metavar="SPAN", default="10 seconds", help="of a stream: how late events may come (10 seconds)")
    text = "of a stream: events so far beyond the others are set aside (a day); none: all are believed"
    group.add_argument("--ahead", metavar="SPAN", help=text)
    group.add_argument("--idle", metavar="SPAN", help="of a stream: when nothing comes for so long, time goes by the wall")
    group.add_argument("--until", metavar="TIME", help="of a batch: let time go on after the last event")


def repeated(given: argparse.Namespace) -> list[str]:
    """The same arguments again, for another process."""
    parser = argparse.ArgumentParser()
    arguments(parser)
    out: list[str] = []
    for action in parser._actions:
        value = getattr(given, action.dest, None)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            out += [action.option_strings[-1], each]
    return out


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("coincide_job.py", description="Run rules over a source, to a sink.")
    parser.add_argument("rules", nargs="+", metavar="RULES")
    arguments(parser)
    given = parser.parse_args(argv)
    from pyspark.sql import SparkSession

    from coincide.errors import CoincideError

    spark = SparkSession.builder.appName("coincide").getOrCreate()
    try:
        return run(spark, given)
    except CoincideError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        spark.stop()


def run(spark: SparkSession, given: argparse.Namespace) -> int:
    from coincide.adapters.mappingfile import load_mapping
    from coincide.connectors.reading import events
    from coincide.engines.spark.detect import Options, detect
    from coincide.engines.spark.report import Report
    from coincide.rulebook import load

    book = load(*map(_shipped, given.rules), sigma_mapping=_mapping(given.sigma_mapping or given.mapping))
    options = dict(_pair(option) for option in given.option)
    stream = given.checkpoint is not None
    frame = events(spark, given.source, _schema(given), streaming=stream, format=given.format, options=options)
    fields = _mapping(given.mapping or given.sigma_mapping)
    shape: Options = {"mapping": None if fields is None else load_mapping(fields), "keys": True, "policy": given.policy}
    shape |= {"late": given.late is not None, "rejects": given.rejects is not None}
    if stream:
        shape |= {"delay": given.delay, "idle": given.idle, "checkpoint": given.checkpoint}
        if given.ahead is not None:
            shape["ahead"] = None if given.ahead == "none" else given.ahead
        _write_stream(detect(book, frame, **shape), given)
    else:
        report = Report()
        shape |= {"until": given.until, "report": report}
        _writer(given, by_whole)(detect(book, frame, **shape), 0)
        print(report, file=sys.stderr, end="\n" if report.warnings else "")
    return 0


def _mapping(named: str | None) -> Path | None:
    """A file, or one of the package."""
    from coincide.rulebook import known_mapping

    return None if named is None else known_mapping(_shipped(named))


def _schema(given: argparse.Namespace) -> str | None:
    """If rows that are no events are kept, with the text of what is no JSON."""
    from coincide.connectors.reading import is_json
    from coincide.engines.spark.rejects import CORRUPT

    wanted = given.rejects is not None and given.schema is not None and is_json(given.source, given.format)
    return f"{given.schema}, {CORRUPT} string" if wanted and CORRUPT not in given.schema else given.schema


def by_whole(path: str) -> Write:
    """Files of a batch, in place of those before."""
    return lambda found, _: found.write.mode("overwrite").parquet(path)


def _writer(given: argparse.Namespace, files: Callable[[str], Write]) -> Write:
    """To the sink; to a path as `files` write, as what was late or rejected is."""
    from coincide.connectors.sinks import by_key
    from coincide.engines.spark.latecomers import split

    write = by_key(given.sink) if _is_keyed(given.sink) else files(given.sink)
    writes = [write, *(files(path) for path in (given.late, given.rejects) if path is not None)]
    if len(writes) == 1:
        return write

    def each(found: DataFrame, number: int) -> None:
        found.persist()
        for write, part in zip(writes, split(found), strict=True):
            write(part, number)
        found.unpersist()

    return each


def _write_stream(found: DataFrame, given: argparse.Namespace) -> None:
    from coincide.connectors.sinks import by_batch
    from coincide.engines.spark.progress import progress

    writer = found.writeStream.foreachBatch(_writer(given, by_batch)).option("checkpointLocation", given.checkpoint)
    trigger = writer.trigger(availableNow=True) if given.every is None else writer.trigger(processingTime=given.every)
    query = trigger.start()
    progress(query)
    query.awaitTermination()


def _is_keyed(sink: str) -> bool:
    """Is it a sink of coincide? Other URLs (hdfs, s3a) are paths."""
    from coincide.streams.registry import SINKS

    return sink.partition(":")[0].partition("+")[0] in SINKS


def _pair(option: str) -> tuple[str, str]:
    from coincide.errors import CoincideError

    name, equals, value = option.partition("=")
    if not equals:
        raise CoincideError(f"--option: '{option}' is not NAME=VALUE")
    return name, value


def _shipped(path: str) -> str:
    """A file that was sent with the job (`--files`) lies where the driver runs, if that is another machine."""
    here = Path(Path(path).name)
    return str(here) if here.exists() and not Path(path).exists() else path


if __name__ == "__main__":
    sys.exit(main())
