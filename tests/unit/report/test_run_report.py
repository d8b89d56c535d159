"""Reports of runs: what they show, and that no text of an event or a rule can be more than text."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from coincide.cli.main import main
from coincide.lang.shared.about import About
from coincide.report.attack import matrix
from coincide.report.findings import EVENTS, SHOWN, Findings, Hits
from coincide.report.markup import LONGEST, Markup, element, link, visible
from coincide.rulebook import load
from coincide.source import SourceText

RULE = """\
title: {title}
id: 11111111-2222-4333-8444-555555555555
level: high
description: {description}
references: ['https://example.com/a?b=1&c=2', 'javascript:alert(1)']
tags: [attack.execution, attack.t1059.001, attack.defense_evasion, cve.2021-44228]
logsource: {{category: log}}
detection: {{selection: {{a|contains: x}}, condition: selection}}
fields: [a]
"""
HOSTILE = [
    "x<script>alert(1)</script>",
    'x"><img src=y onerror=alert(1)>',
    "x</style></title></script><svg/onload=alert(1)>",
    "x\u202egnp.exe\u0000\u200b",
    "x' autofocus onfocus='alert(1)",
    "x&lt;b&gt; <!-- ]]> ${{7*7}}",
]
TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "div",
        "b",
        "p",
        "svg",
        "line",
        "rect",
        "text",
        "table",
        "tr",
        "th",
        "td",
        "a",
        "span",
        "section",
        "header",
        "details",
        "summary",
        "label",
        "input",
        "button",
        "script",
    ]
)


class Reader(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def report(folder: Path, rules: str, events: list[dict[str, object]], name: str = "found.html", *options: str) -> str:
    (folder / "rules").mkdir(exist_ok=True)
    (folder / "rules" / "rule.yml").write_text(rules)
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    target = folder / name
    given = ["run", str(folder / "rules"), "--events", str(folder / "events.jsonl"), "--out", str(folder / "out.jsonl")]
    assert main([*given, "--report", str(target), *options]) == 0
    return target.read_text(encoding="utf-8")


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    title = json.dumps("<script>alert('title')</script>")
    rule = RULE.format(title=title, description=json.dumps("</section><script>alert(2)</script>"))
    events: list[dict[str, object]] = [
        {"type": "log", "time": n, "a": text, text: "a name", "host": text, "id": text} for n, text in enumerate(HOSTILE)
    ]
    page = report(tmp_path, rule, events, "found.html", "--report-title", "</title><script>alert(3)</script>")
    reader = read(page)
    assert {tag for tag, _ in reader.tags} <= TAGS
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert [tag for tag, _ in reader.tags].count("style") == 1
    for _, attributes in reader.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        address = attributes.get("href", "https://")
        assert address is not None
        assert address.startswith(("https://", "#rule-"))
    assert not any("src" in attributes for _, attributes in reader.tags)
    shown = "\n".join(reader.texts)
    assert all(text in shown for text in HOSTILE if text.isprintable())
    assert "\\u{202e}gnp.exe\\u{0}\\u{200b}" in shown
    assert "\u202e" not in page


def test_a_policy_lets_nothing_else_run(tmp_path: Path) -> None:
    from base64 import b64encode
    from hashlib import sha256

    page = report(tmp_path, RULE.format(title="found", description="d"), [{"type": "log", "time": 1, "a": "x"}])
    policy = next(a["content"] for tag, a in read(page).tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    script = page.partition("<script>")[2].partition("</script>")[0]
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy


def test_what_is_shown(tmp_path: Path) -> None:
    events: list[dict[str, object]] = [
        {
            "type": "log",
            "time": f"2026-03-02T08:00:{n:02}Z",
            "a": "x" if n % 2 else "y",
            "host": {"name": f"h{n % 3}"},
            "id": f"e{n}",
        }
        for n in range(12)
    ]
    page = report(tmp_path, RULE.format(title="Found It", description="Because."), events)
    shown = "\n".join(read(page).texts)
    for text in (
        "12 events, 1 rule; 2026-03-02 08:00 to 08:00 UTC",
        "Found It",
        "Because.",
        "T1059.001",
        "Defense Evasion",
        "Execution",
    ):
        assert text in shown
    assert "https://attack.mitre.org/techniques/T1059/001/" in page
    data = json.loads(report(tmp_path, RULE.format(title="Found It", description="Because."), events, "found.json"))
    (rule,) = data["rules"]
    assert (rule["title"], rule["level"], rule["detections"], rule["hosts"]) == (
        "Found It",
        "high",
        6,
        {"h1": 2, "h0": 2, "h2": 2},
    )
    assert [finding["events"][0]["id"] for finding in rule["findings"]] == ["e1", "e3", "e5", "e7", "e9", "e11"]
    assert rule["references"][0] == "https://example.com/a?b=1&c=2"


@pytest.mark.parametrize("size", [10, 30_000])
def test_many_are_counted_and_some_are_shown(tmp_path: Path, size: int) -> None:
    """Also where events are read as columns."""
    many = "title: many\ncorrelation: {type: event_count, rules: [one], timespan: 1d, condition: {gte: 25}}\n"
    one = "title: one\nname: one\nlogsource: {category: log}\ndetection: {s: {a: x}, condition: s}\n"
    alone = "title: each\nlogsource: {category: log}\ndetection: {s: {a: x}, condition: s}\n"
    events: list[dict[str, object]] = [
        {"type": "log", "time": n, "a": "x" if n % (size // 5) == 0 or n % 100 == 0 else "y", "Computer": "pc"}
        for n in range(size)
    ]
    found = sum(event["a"] == "x" for event in events)
    data = json.loads(report(tmp_path, "---\n".join([many, one, alone]), events, "found.json"))
    counts = {rule["type"]: (rule["detections"], len(rule["findings"]), rule["hosts"]) for rule in data["rules"]}
    assert counts["each"] == (found, min(found, SHOWN), {"pc": found})
    if found >= 25:
        (finding,) = next(rule["findings"] for rule in data["rules"] if rule["type"] == "many")
        assert len(finding["from"]) == 25
        assert len(finding["events"]) == EVENTS
        assert [event["id"] for event in finding["events"]] == [*finding["from"][:10], *finding["from"][-10:]]


def test_rules_of_other_languages(tmp_path: Path) -> None:
    (tmp_path / "hot.ecl").write_text("monitor hot = repeat { push(hot, v: v) { reading and v > 30 } }")
    toml = """
[rule]
name = "Much Too Hot"
rule_id = "r1"
severity = "critical"
description = "d"
language = "eql"
query = 'reading where v > 90'
references = ["https://example.com"]
author = ["a", "b"]
[[rule.threat]]
[rule.threat.tactic]
name = "Command and Control"
[[rule.threat.technique]]
id = "T1071"
[[rule.threat.technique.subtechnique]]
id = "T1071.004"
"""
    (tmp_path / "hotter.toml").write_text(toml)
    (tmp_path / "events.csv").write_text("type,time,v,room\nreading,1,20,a\nreading,2,40,b\nreading,3,99,b\n")
    target = tmp_path / "r.json"
    rules = [str(tmp_path / "hot.ecl"), str(tmp_path / "hotter.toml")]
    given = ["run", *rules, "--events", str(tmp_path / "events.csv"), "--out", str(tmp_path / "o.jsonl")]
    assert main([*given, "--report", str(target), "--host-field", "room"]) == 0
    first, second = json.loads(target.read_text())["rules"]
    assert (first["title"], first["id"], first["level"], first["author"]) == ("Much Too Hot", "r1", "critical", "a, b")
    assert first["tags"] == ["attack.command-and-control", "attack.t1071", "attack.t1071.004"]
    assert (second["type"], second["level"], second["detections"], second["hosts"]) == ("hot", None, 2, {"b": 2})


@pytest.mark.parametrize("as_columns", [False, True])
def test_events_are_found_by_their_ids_alone(as_columns: bool) -> None:
    """As where Spark has made the detections, whose times are all that they know."""
    from coincide.model.batch import EventBatch
    from coincide.model.event import detection, primitive

    book = load(SourceText("r.yml", RULE.format(title="t", description="d")))
    events = [primitive("log", n, n, f"e{n}", {"a": "x", "host": "h"}) for n in range(5)]
    batch = EventBatch(table=EventBatch(events).table) if as_columns else EventBatch(events)
    found = Findings(book, by_id=True)
    made = detection("t", (1, 3), {}, ((3, 1, 1, 0, "e1"), (3, 1, 1, 0, "e3")), (3, 0, 0, 1, 0, 0))
    list(found.making([EventBatch([made])]))
    found.look_again([batch], 0, 4)
    assert [event.id for event in found.hits[0].shown[0].events] == ["e1", "e3"]
    assert found.hits[0].hosts == {"h": 1}


def test_nothing_was_found(tmp_path: Path) -> None:
    page = report(tmp_path, RULE.format(title="t", description="d"), [{"type": "log", "time": 1, "a": "y"}])
    assert "No rule has found anything." in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--events", "e.jsonl", "--report", "r.txt"], "cannot tell the form of the report 'r.txt' by its ending"),
        (["--events", "-", "--report", "r.html"], "--report reads events twice: it is for files"),
        (["--events", "r.json", "--report", "r.json"], "--report would replace 'r.json', which is read too"),
    ],
)
def test_options(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "rules.ecl", *options]) == 2
    assert message in capsys.readouterr().err


def test_tactics_stand_in_the_order_of_an_attack() -> None:
    detector = load(SourceText("r.yml", RULE.format(title="t", description="d"))).detectors[0]
    tags = [
        ("attack.impact",),
        ("attack.initial_access", "attack.t1566"),
        ("attack.t1003",),
        ("attack.s0002", "cve.1"),
        ("attack.new",),
    ]
    found = matrix([Hits(detector, About("t", tags=some), 1) for some in tags])
    assert {tactic: [cell.technique for cell in cells] for tactic, cells in found.items()} == {
        "initial-access": ["T1566"],
        "impact": [""],
        "new": [""],
        "no tactic given": ["T1003"],
    }
    assert list(found) == ["initial-access", "impact", "new", "no tactic given"]


def test_markup() -> None:
    assert element("p", "a<b", Markup("<b>c</b>"), title='"&') == '<p title="&quot;&amp;">a&lt;b<b>c</b></p>'
    assert (
        link("HTTPS://example.com")
        == '<a href="HTTPS://example.com" target="_blank" rel="noopener noreferrer">HTTPS://example.com</a>'
    )
    assert all(link(text) == text for text in ("javascript:alert(1)", "data:text/html,x", "//x", "http://[", "https:"))
    assert visible("x" * (LONGEST + 5)).endswith("x… (5 more characters)")
