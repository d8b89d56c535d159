"""EQL on Spark: filters before the shuffle, spread by the keys of rules, and the same detections as elsewhere."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide import spark as on_spark
from coincide.engines.spark.description import explain_spark
from coincide.engines.spark.groups import groups
from coincide.rulebook import loads

TESTS = (
    "true", 'process.name : "*CMD*"', 'process.name like~ ("k*.exe", "a?b")', 'process.name like "C*x"', "event.code == 4624",
    'event.code == "4624"', "event.code in (4625, 1)", 'user.name in~ ("ANN", "bob")', "n > 2 and n <= 5", 'tags == "t"',
    'not process.name : "*cmd*"', 'process.name != "x"', "tags : \"t*\" or n < 1", 'length(user.name) > 2 and user.name : "*ın"',
)  # fmt: skip
SEQUENCES = (
    "sequence by user.name with maxspan=4s [process where n > 1] [any where event.code == 4624] until [network where n == 3]",
    "sequence by user.name, n [process where true] with runs=2 [network where true]",
    "sequence by ?user.name with maxspan=2s [process where true] ![network where true] [process where n > 2]",
    "sequence by user.name with maxspan=3s [process where n < 3] ![network where true]",
    "sequence by tags with maxspan=9s [process where true] [network where true]",
    "sequence [process where true] by n [network where true] by event.code",
    "sample by user.name [process where n == 1] [network where n == 2]",
    "join by user.name [process where n == 1] [network where n == 2]",
    "sequence by user.name [process where true] [network where true] | head 3",
)


def records(count: int) -> list[dict[str, Any]]:
    source = random.Random(5)
    made = []
    for number in range(count):
        category = source.choice(["process", ["process", "odd"], ["network"], "network", []])
        names = ["cmd.exe", "C:\\x\\CMD.EXE", "\u212aey.exe", "KEY.EXE", "axb", "a\nb", "Cx", None]
        record: dict[str, Any] = {
            "@timestamp": f"2026-01-01T00:00:{number // 4:02d}Z",
            "id": str(number),
            "event": {
                "category": category if isinstance(category, list) else [category],
                "code": source.choice(["4624", "4625", "1", None]),
            },
            "user": {"name": source.choice(["ann", "Bob", "Erın", None])},
            "n": source.choice([0, 1, 2, 3, 4, 5.5, None]),
            "tags": source.choice([["t"], ["t", "u"], ["v"], [], None]),
            "process": {"name": source.choice(names)},
        }
        made.append(record)
    return made


def rules() -> str:
    filters = [f"// @name f{n}\nprocess where {test}" for n, test in enumerate(TESTS)]
    return ";\n".join([*filters, *(f"// @name s{n}\n// @fields n, tags\n{query}" for n, query in enumerate(SEQUENCES))])


@pytest.mark.spark
def test_frames_of_nested_records(spark: Any, tmp_path: Path) -> None:
    raw, text = records(220), rules()
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(map(json.dumps, raw)), encoding="utf-8")
    frame = spark.read.json(str(file)).repartition(3)
    book = loads(text, "eql")
    expected = list(coincide.run(book, raw, until="2026-01-01T01:00:00Z", tier="interpreter"))
    found = on_spark.detect(book, frame, until="2026-01-01T01:00:00Z").collect()
    for name in sorted({d.name for d in book.detectors}):
        wanted = sorted([*d["from"]] for d in expected if d["type"] == name)
        assert sorted([*row["from"]] for row in found if row["type"] == name) == wanted, name
        assert wanted or name in ("f13", "s5")  # no number equals a text as a key


def test_rules_are_spread_by_what_their_items_share() -> None:
    def key(query: str, several: frozenset[str] = frozenset()) -> tuple[str, ...] | None:
        (group,) = groups(loads(query, "eql"), several)
        return group.key

    assert key("sequence by host.id [a where true] by x [b where true] by y") == ("host.id",)
    assert key("sequence by host.id, ?u [a where true] [b where true]") == ("host.id", "u")
    assert key("sequence [a where true] by k [b where true] by l") is None
    assert key("sequence by k [a where true] [b where true] | head 3") is None
    assert key("sequence by k [a where true] [b where true]", frozenset({"k"})) is None
    assert key("sample by k [a where true] [b where true]") == ("k",)
    assert key("a where true") == ()


def test_filters_are_told() -> None:
    text = explain_spark(loads('sequence by k [a where x == "1" and n > 2] [any where s : "*b*"]', "eql")).text()
    assert "filter: (type = 'a' or event.category has one of ('a')) and (x has one of ('1', 1) and n > 2) or s resembles" in text
    assert "partitioned by: k" in text
    assert "filter: none" in explain_spark(loads("any where not x == 1", "eql")).text()
