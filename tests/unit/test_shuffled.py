"""`explain --engine spark --events`: what is moved through exchanges, whole and divided."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import coincide
from coincide.cli.main import main
from coincide.distribution.divided import divided_file
from coincide.distribution.division import divide
from coincide.lang.cdl.parse import parse
from coincide.lang.cdl.print import print_file
from coincide.source import SourceText

RULES = """<cd id="seen" version="1" within="1 hour">
  <sources>
    <source class="enter" anchor="S1"><attribute name="badge" type="string"/><attribute name="gate" type="int"/></source>
    <source class="leave" anchor="S2"><attribute name="badge" type="string"/><attribute name="gate" type="int"/></source>
    <source class="alarm" anchor="S3"><attribute name="gate" type="int"/></source>
  </sources>
  <predicates>
    <predicate name="equal" anchor="P1">S1.badge, S2.badge</predicate>
    <predicate name="greater" anchor="P2">S3.gate, S1.gate</predicate>
  </predicates>
  <expressions><expression anchor="X">P1 and P2</expression></expressions>
  <events><event class="seen" trigger="X"><attribute name="badge" type="string">S1.badge</attribute></event></events>
</cd>"""


def sample(count: int) -> list[dict[str, object]]:
    random = Random(3)
    kinds = ["enter"] * 9 + ["leave"] * 9 + ["alarm"]
    return [
        {
            "type": random.choice(kinds),
            "id": f"e{n}",
            "time": n,
            "badge": f"b{random.randrange(1000)}",
            "gate": random.randrange(5),
        }
        for n in range(count)
    ]


def test_divided_less_comes_to_one_task() -> None:
    told = coincide.explain(coincide.loads(RULES, "cdl"), "spark", events=sample(300))
    whole, divided = (int(size.replace(",", "")) for size in re.findall(r"to one task [\d,]+ events, ([\d,]+) bytes", told))
    assert whole == sum(len(line) for line in map(_text, sample(300)))
    assert divided < whole / 2
    assert "divided by badge" in told


def _text(event: dict[str, object]) -> bytes:
    import msgspec

    return msgspec.json.encode(event)


def test_a_sample_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, events = tmp_path / "seen.cdl.xml", tmp_path / "events.jsonl"
    rules.write_text(RULES)
    events.write_text('{"time": 1}\n')
    assert main(["explain", str(rules), "--engine", "spark", "--events", str(events)]) == 2
    assert "each with a type" in capsys.readouterr().err
    assert main(["explain", str(rules), "--events", str(events)]) == 2
    assert "--engine spark" in capsys.readouterr().err


@pytest.mark.spark
def test_on_spark_parts_detect_what_the_whole_does(spark: object) -> None:
    from coincide.spark import detect

    file = parse(SourceText("seen.cdl.xml", RULES))
    parts = print_file(divided_file(file, divide(file.descriptions[0], {"seen"})))
    events = spark.createDataFrame(sample(300), "type string, id string, time long, badge string, gate long")  # type: ignore[attr-defined]
    found = [
        sorted((row["from"], row.badge) for row in events.transform(detect(coincide.loads(text, "cdl"))).collect())
        for text in (RULES, parts)
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 10
