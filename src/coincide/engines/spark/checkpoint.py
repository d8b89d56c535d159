"""A streaming query's checkpoint, as the driver reads it before a query goes on from it: of which rules its state is, and how it
is divided. Whatever is wrong with it is told here, in one line, and not by a worker."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.detection.snapshots import reading_state
from coincide.engines.spark.bucket import Meta, read_meta
from coincide.engines.spark.division import Division
from coincide.engines.spark.groups import Group
from coincide.engines.spark.moving import Moving, moved
from coincide.engines.spark.packing import balanced_buckets
from coincide.engines.spark.pages import CHECKPOINT
from coincide.engines.spark.shipping import shipped
from coincide.engines.spark.timing import Timing
from coincide.engines.spark.worker import Sources, rules_of
from coincide.errors import CoincideError, Diagnostic

LOG = logging.getLogger("coincide.spark")

PARTS = {"meta": "value", "segments": "map", "bases": "map", "logs": "map", "rules": "map"}
"""The variables of a bucket's state (stateful.py)."""


def state_part(spark: SparkSession, checkpoint: str, name: str, stage: int = 0) -> DataFrame:
    """A variable of the buckets of a stage: the group's name, the bucket, the variable, the key in it (as JSON) and the bytes."""
    reader = spark.read.format("statestore").option("path", checkpoint).option("stateVarName", name).option("operatorId", stage)
    key = F.col("key")
    if PARTS[name] == "value":
        item, value = F.lit("{}"), F.col("value")
    else:
        item, value = F.to_json(F.col("user_map_key")), F.col("user_map_value")
    place = key["name"].alias("name"), key["bucket"].alias("bucket"), F.lit(name).alias("part")
    return reader.load().select(*place, item.alias("item"), value["data"].alias("data"))


class StoredBucket:
    """A bucket's store, to read."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.parts: dict[tuple[str, tuple[Any, ...]], bytes] = {}
        for row in rows:
            self.parts[row["part"], tuple(json.loads(row["item"]).values())] = row["data"]

    def meta(self) -> bytes | None:
        return self.parts.get(("meta", ()))

    def segment(self, number: int) -> bytes:
        return self.parts["segments", (number,)]

    def base(self, page: int) -> bytes | None:
        return self.parts.get(("bases", (page,)))

    def entry(self, page: int, number: int) -> bytes:
        return self.parts["logs", (page, number)]

    def rules(self, digest: str) -> bytes:
        return self.parts["rules", (digest,)]

    def put_meta(self, data: bytes) -> None: ...
    def put_segment(self, number: int, data: bytes) -> None: ...
    def drop_segment(self, number: int) -> None: ...
    def put_base(self, page: int, data: bytes) -> None: ...
    def put_entry(self, page: int, number: int, data: bytes) -> None: ...
    def drop_entry(self, page: int, number: int) -> None: ...
    def put_rules(self, digest: str, data: bytes) -> None: ...
    def drop_rules(self, digest: str) -> None: ...
    def wake(self, before: int | None, at: int | None) -> None: ...


def stored_buckets(spark: SparkSession, path: str, stages: int, name: str | None = None) -> dict[str, dict[int, StoredBucket]]:
    """All that is stored, or all of one group, by the names of groups and the numbers of buckets."""
    rows: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for stage, part in product(range(stages), PARTS):
        found = state_part(spark, path, part, stage)
        for row in (found if name is None else found.filter(F.col("name") == name)).toArrow().to_pylist():
            rows.setdefault(row["name"], {}).setdefault(row["bucket"], []).append(row)
    return {group: {number: StoredBucket(own) for number, own in buckets.items()} for group, buckets in rows.items()}


@dataclass(frozen=True)
class Kept:
    """What a checkpoint holds of a query. `metas` by the names of groups; `rules` by their digests."""

    path: str
    operators: Sequence[Mapping[str, Any]]
    metas: Mapping[str, list[Meta]]
    rules: Mapping[str, tuple[Sources, tuple[int, ...]]]

    @property
    def stages(self) -> int:
        return len(self.operators)

    def division(self, group: Group) -> Division | None:
        """None: it is new."""
        found = self.metas.get(group.name)
        return None if not found else found[0].division

    def check(self, group: Group, buckets: int | None, pages: int | None) -> None:
        kept = self.division(group)
        if kept is None or group.key is None:
            return
        if pages not in (None, kept.pages):
            told = f"the checkpoint '{self.path}' keeps the state {group.name} in {kept.pages} pages, not in {pages}"
            raise CoincideError(Diagnostic(told, hint="leave `pages` out, or begin a new checkpoint"))
        if buckets is not None and buckets > kept.most:
            raise CoincideError(f"the checkpoint '{self.path}' keeps the state {group.name} in at most {kept.most} buckets")

    def moving(self, group: Group, buckets: int | None, spark: SparkSession) -> Moving | None:
        """If there are to be so many buckets and were others: what each of them has to begin with."""
        kept = self.division(group)
        if kept is None or group.key is None or buckets is None or buckets == kept.buckets:
            return None
        LOG.warning("the checkpoint '%s': the state %s moves from %d buckets to %d", self.path, group.name, kept.buckets, buckets)
        with reading_state(CHECKPOINT):
            found = moved(group.name, stored_buckets(spark, self.path, self.stages, group.name)[group.name], buckets)
        contents = {number: shipped(data, spark) for number, data in found.items()}
        return Moving(balanced_buckets(kept.buckets, group.name), contents)

    def check_timing(self, timing: Timing) -> None:
        """Spark keeps timers in a checkpoint from the first micro-batch on, or never."""
        had_timers = self.operators[0].get("timeMode", "NoTime") != "NoTime"
        if had_timers != (timing.idle is not None):
            had = "with" if had_timers else "without"
            raise CoincideError(f"the checkpoint '{self.path}' is of a query {had} `idle`: that cannot change")

    def digests(self, name: str) -> dict[str, str]:
        """The definitions of a group that have a state: digests, with their names."""
        used = {page.rules for meta in self.metas.get(name, ()) for page in meta.pages.values()}
        found: dict[str, str] = {}
        for digest in used & self.rules.keys():
            sources, members = self.rules[digest]
            with suppress(CoincideError):  # what they read beside their text may be gone
                found.update((d.digest, d.name) for d in rules_of(sources).detectors if d.order in members)
        return found


def operators_of(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    """What Spark knows of the stateful operators; none: no micro-batch has been committed."""
    try:
        found = spark.read.format("state-metadata").load(path).collect()
    except PySparkException as error:
        raise CoincideError(f"the checkpoint '{path}' cannot be read: {str(error).splitlines()[0]}") from error
    told = {row.operatorId: json.loads(row.operatorProperties or "{}") for row in found}
    return [told[number] for number in sorted(told)]


def variables(operators: Sequence[Mapping[str, Any]]) -> set[str]:
    return {variable["stateName"] for own in operators for variable in own.get("stateVariables", ())}


def read_checkpoint(spark: SparkSession, path: str) -> Kept | None:
    """None: no micro-batch has been committed there. Raises CoincideError."""
    operators = operators_of(spark, path)
    if not operators:
        return None
    if not set(PARTS) <= variables(operators):  # under a policy all is one state
        return Kept(path, operators, {}, {})
    with reading_state(CHECKPOINT):
        parts = [
            (state_part(spark, path, name, stage).collect() for name in ("meta", "rules")) for stage in range(len(operators))
        ]
        by_name: dict[str, list[Meta]] = {}
        told: dict[str, tuple[Sources, tuple[int, ...]]] = {}
        for metas, rules in parts:
            for row in metas:
                by_name.setdefault(row["name"], []).append(read_meta(bytes(row["data"])))
            told.update(map(_rules, rules))
        return Kept(path, operators, by_name, told)


def _rules(row: Any) -> tuple[str, tuple[Sources, tuple[int, ...]]]:
    (digest,) = json.loads(row["item"]).values()
    return digest, msgspec.msgpack.decode(bytes(row["data"]), type=tuple[Sources, tuple[int, ...]])


def report_changes(found: Kept, groups: Iterable[Group]) -> None:
    """A line in the log if rules are others than those of the checkpoint."""
    before = {name: found.digests(name) for name in found.metas}
    names = {name for own in before.values() for name in own.values()}
    now = {d.name: before.get(group.name, {}).get(d.digest) is not None for group in groups for d in group.detectors}
    told = {
        "start afresh, as they have changed": [name for name, same in now.items() if not same and name in names],
        "are new": [name for name in now if name not in names],
        "are gone": sorted(names - now.keys()),
    }
    if names and any(told.values()):
        words = "; ".join(f"{', '.join(some)} {what}" for what, some in told.items() if some)
        LOG.warning("rules since the checkpoint '%s': %s; %d keep their state", found.path, words, sum(now.values()))
