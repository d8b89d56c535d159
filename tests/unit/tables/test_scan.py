"""A table that comes bit by bit, with its state written and read in between, gives what the whole gives."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from coincide.detection.snapshots import Damaged
from coincide.lang.matchrecognize.parse import parse_clause
from coincide.source import SourceText
from coincide.tables.query import TableQuery
from coincide.tables.scan import TableScan

CLAUSES = {
    "look back, numbers": """PARTITION BY k ORDER BY t, v MEASURES COUNT(*) AS n, MATCH_NUMBER() AS m
        PATTERN (A+ B) DEFINE A AS v > PREV(v)""",
    "registers, look ahead, timed out": """PARTITION BY k ORDER BY t, v
        MEASURES SUM(v) AS s, FIRST(t) AS f, TIMED_OUT() AS o, NEXT(LAST(v)) AS nx ONE ROW PER MATCH WITH TIMED OUT MATCHES
        PATTERN (A B+ C) WITHIN 4 ms DEFINE A AS v > 2, B AS v < FIRST(v), C AS v = LAST(A.v)""",
    "no key, anchors, unmatched": """ORDER BY t, v MEASURES SUM(v) AS s, FIRST(t) AS f ALL ROWS PER MATCH WITH UNMATCHED ROWS
        PATTERN (^ A | A B* C) WITHIN 4 ms DEFINE A AS v > 2, C AS v = 2""",
}
RNG = random.Random(3)
ROWS = [{"k": RNG.choice(["a", "b", None]), "t": n // 2, "v": RNG.randrange(5)} for n in range(200)]
TABLE = pa.Table.from_pylist(ROWS)


def scan_of(clause: str) -> TableScan:
    return TableScan(TableQuery(parse_clause(SourceText("clause", clause)), TABLE.schema))


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=CLAUSES)
@pytest.mark.parametrize("seed", range(4))
def test_cut_anywhere(clause: str, seed: int) -> None:
    scan = scan_of(clause)
    rng, state, made, low = random.Random(seed), scan.initial(), [], 0
    for high in [*sorted(rng.sample(range(100), 4)), 100]:
        part = TABLE.filter(pa.array([low <= row["t"] < high for row in ROWS]))
        made += scan.advance(state, part, high * 1000).to_pylist()
        state, low = scan.decode(scan.encode(state)), high
    before = len(made)
    made += scan.finish(state).to_pylist()
    whole = scan.query.run(TABLE).to_pylist()
    assert sorted(map(repr, made)) == sorted(map(repr, whole))
    assert before > len(whole) - 10  # most is made as soon as it is decided


def test_time_alone_decides() -> None:
    scan = scan_of(CLAUSES["registers, look ahead, timed out"].replace(", NEXT(LAST(v)) AS nx", ""))
    state = scan.initial()
    row = pa.Table.from_pylist([{"k": "a", "t": 1, "v": 3}], TABLE.schema)
    assert scan.advance(state, row, 2000).num_rows == 0
    assert scan.due(state) == 5000
    assert scan.advance(state, TABLE.schema.empty_table(), 5000).num_rows == 0
    assert scan.advance(state, TABLE.schema.empty_table(), 5001).to_pylist() == [{"k": "a", "s": 3, "f": 1, "o": True}]
    assert (len(state.keys), len(state.rows), scan.due(state)) == (0, 0, None)  # forgotten


def test_state_of_another_query_is_none_of_ours() -> None:
    one, other = (scan_of(clause) for clause in list(CLAUSES.values())[:2])
    state = one.initial()
    one.advance(state, TABLE)
    data = one.encode(state)
    assert len(other.decode(data).rows) == 0 < len(one.decode(data).rows)
    with pytest.raises(Damaged, match="not complete"):
        one.decode(data[:-1])
