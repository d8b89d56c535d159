"""Events by the address of where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coincide.errors import CoincideError
from coincide.spark import events

pytestmark = pytest.mark.spark


def test_files_by_their_endings(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"type": "a", "time": 1}\n{"type": "b", "time": 2}\n', encoding="utf-8")
    (tmp_path / "e.csv").write_text("a,1\n", encoding="utf-8")
    assert events(spark, str(tmp_path / "e.jsonl")).columns == ["time", "type"]
    assert events(spark, str(tmp_path / "e.csv"), "type string, time long").collect() == [("a", 1)]
    events(spark, str(tmp_path / "e.jsonl")).write.parquet(str(tmp_path / "folder"))
    assert events(spark, str(tmp_path / "folder"), streaming=True).isStreaming


def test_messages_need_a_schema(spark: Any) -> None:
    with pytest.raises(CoincideError, match="a schema says which fields are wanted"):
        events(spark, "nats://localhost/x?stream=X")
