"""The regular layout of .mr.sql files: comments stay, the meaning stays, and what is laid out stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.cli.main import main
from coincide.errors import RuleError
from coincide.lang.matchrecognize import layout as layouts
from coincide.lang.matchrecognize.layout import layout
from coincide.lang.matchrecognize.parse import parse
from coincide.source import SourceText

CASES = Path(__file__).parents[2] / "conformance" / "cases"
FILES = sorted([*CASES.glob("match-recognize/*/*.mr.sql"), *CASES.glob("mixed/*/*.mr.sql")])

WILD = """-- top
create view v as select sym, top, -- highest
 bottom from tick match_recognize ( partition by sym -- each
 -- in order
 order by time asc nulls last measures START.price as top, last( DOWN.price ) as bottom,
 min(x)   as a_long_name_of_a_measure, max(x) as another_long_name_of_a_measure, count( * ) as n
 one row per match after match skip to last up
 pattern (START DOWN+ (UP|X)*?) within 5 minutes define DOWN as price<PREV(price), -- falls
   UP as price>PREV(price) /* rises */ and x in (1,2)
 ) as v where top>3; select measures from t match_recognize (measures measures as measures pattern(define) define define
 as pattern>1) -- end
-- last
"""
TAME = """-- top
CREATE VIEW v AS
SELECT
  sym,
  top,  -- highest
  bottom
FROM tick MATCH_RECOGNIZE (
  PARTITION BY sym  -- each
  -- in order
  ORDER BY time ASC NULLS LAST
  MEASURES
    START.price AS top,
    last(DOWN.price) AS bottom,
    min(x) AS a_long_name_of_a_measure,
    max(x) AS another_long_name_of_a_measure,
    count(*) AS n
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO LAST UP
  PATTERN (START DOWN+ (UP | X)*?) WITHIN 5 minutes
  DEFINE
    DOWN AS price < PREV(price),  -- falls
    UP AS price > PREV(price)  /* rises */ AND x IN (1, 2)
) AS v
WHERE top > 3;

SELECT measures
FROM t MATCH_RECOGNIZE (
  MEASURES measures AS measures
  PATTERN(define)
  DEFINE define AS pattern > 1
)  -- end
-- last
"""


def source(text: str) -> SourceText:
    return SourceText("a.mr.sql", text)


def test_layout() -> None:
    assert layout(source(WILD)) == TAME
    assert layout(source(TAME)) == TAME


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_what_is_laid_out_says_the_same(path: Path) -> None:
    given = SourceText(path.name, path.read_text(encoding="utf-8"))
    words, rest = layouts._words(given)
    made = "\n".join([*layouts._laid_out(words), *rest]) + "\n"
    assert parse(source(made)) == parse(given)
    assert layout(source(made)) == made


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.mr.sql"
    path.write_text(WILD, encoding="utf-8")
    assert main(["format", str(path)]) == 0
    assert capsys.readouterr().out == TAME
    assert main(["format", "--check", str(path)]) == 1
    assert path.read_text(encoding="utf-8") == WILD
    assert main(["format", "--write", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == TAME
    capsys.readouterr()
    assert main(["format", "--check", str(path)]) == 0
    assert capsys.readouterr().out == ""


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuleError, match="1:8"):
        layout(source("SELECT ? FROM"))
    good, bad = tmp_path / "a.mr.sql", tmp_path / "b.mr.sql"
    good.write_text(WILD, encoding="utf-8")
    bad.write_text("SELECT 'x", encoding="utf-8")
    assert main(["format", "--write", str(good), str(bad)]) == 2
    assert "text is not closed" in capsys.readouterr().err
    assert good.read_text(encoding="utf-8") == WILD
    assert main(["format", str(tmp_path / "none.mr.sql")]) == 2
    notes = tmp_path / "notes.txt"
    notes.write_text("SELECT", encoding="utf-8")
    assert main(["format", str(notes)]) == 2
    assert "not a rule file" in capsys.readouterr().err
