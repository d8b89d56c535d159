"""Findings as one HTML file: it loads nothing, and no text that it shows can be markup or run as a script.

A content security policy names the one style sheet and the one script by their digests, so that even a mistake in escaping
would run nothing."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from coincide.draw.scale import CALENDAR, Scale
from coincide.expr.quantities import counted
from coincide.lang.shared.about import LEVELS
from coincide.model.event import Event, record
from coincide.model.stamp import MILLISECOND, iso_instant
from coincide.report.attack import Cell, matrix, tactic_name
from coincide.report.findings import BINS, EVENTS, Finding, Findings, Hits
from coincide.report.markup import Markup, Part, element, joined, link

WIDTH, HEIGHT, FOOT = 1280, 170, 22
HOSTS = 12
"""Hosts that have a column of their own: those with most detections."""
HEATS = 5
OF_NO_LEVEL = "none"
WORST_FIRST = (*reversed(LEVELS), OF_NO_LEVEL)


def page(findings: Findings, title: str = "Findings") -> str:
    """The text of the file."""
    style, script = (files("coincide.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style)),
    )
    body = element("body", *_sections(findings, title), element("script", Markup(script)))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _sections(findings: Findings, title: str) -> list[Part]:
    scale = Scale(findings.first or 0.0, findings.last or 0.0)
    parts: list[Part] = [_head(findings, title, scale), _tiles(findings)]
    if not findings.hits:
        return [*parts, element("p", "No rule has found anything.", class_="faint")]
    parts += [element("h2", "Time line"), _time_line(findings, scale)]
    if tactics := matrix(findings.rules):
        parts += [element("h2", "MITRE ATT&CK"), _matrix(tactics)]
    return [*parts, element("h2", "Rules and hosts"), _counts(findings, scale), element("h2", "Findings"), *_findings(findings)]


# Head.


def _head(findings: Findings, title: str, scale: Scale) -> Markup:
    period = f"; {scale.caption}" if findings.first is not None else ""
    read = f"{counted(findings.read, 'event')}, {counted(len(findings.rules), 'rule')}{period}"
    return joined(element("h1", title), element("div", read, class_="faint"))


def _tiles(findings: Findings) -> Markup:
    hosts = {host for hits in findings.rules for host in hits.hosts}
    totals = [("detections", findings.count), ("rules that found something", len(findings.hits)), ("hosts", len(hosts))]
    tiles = [element("div", element("b", f"{count:,}"), name, class_="tile") for name, count in totals]
    by_level: Counter[str] = Counter()
    for hits in findings.hits:
        by_level[level_of(hits)] += hits.count
    named = [level for level in WORST_FIRST if by_level[level] and level != OF_NO_LEVEL]
    tiles += [element("div", element("b", f"{by_level[level]:,}"), level, class_=f"tile {level}") for level in named]
    return element("div", *tiles, class_="tiles")


def level_of(hits: Hits) -> str:
    return hits.about.level if hits.about.level in LEVELS and hits.about.level is not None else OF_NO_LEVEL


# Time line: how many events when, and detections by level.


def _time_line(findings: Findings, scale: Scale) -> Markup:
    bins: list[Counter[str]] = [Counter() for _ in range(BINS)]
    for hits in findings.hits:
        for time in hits.times:
            bins[min(int(scale.place(time) * BINS), BINS - 1)][level_of(hits)] += 1
    most = max(part.total() for part in bins)
    parts = [_tick(scale.place(time) * WIDTH, words) for time, words in scale.ticks]
    parts += _strip_of_events(findings.bins)
    for number, counts in enumerate(bins):
        parts += _stack(number, counts, most, scale)
    parts.append(element("line", class_="base", x1=0, x2=WIDTH, y1=HEIGHT, y2=HEIGHT))
    parts.append(element("text", f"{most:,} at most in one bar; grey: all events", x=0, y=10))
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT + FOOT}", role="img")


def _tick(x: float, words: str) -> Markup:
    anchor = "start" if x < 40 else "end" if x > WIDTH - 40 else "middle"
    line = element("line", class_="tick", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=0, y2=HEIGHT)
    return joined(line, element("text", words, x=f"{x:.1f}", y=HEIGHT + 16, text_anchor=anchor))


def _strip_of_events(bins: Sequence[int]) -> list[Markup]:
    most = max(bins, default=0)
    return [_bar("events", n, 0, HEIGHT * 0.9 * count / most) for n, count in enumerate(bins) if count]


def _stack(number: int, counts: Counter[str], most: int, scale: Scale) -> list[Markup]:
    drawn, below = [], 0.0
    for level in WORST_FIRST:
        if count := counts[level]:
            high = max(2.0, HEIGHT * 0.86 * count / most)
            begin = scale.first + (scale.last - scale.first) * number / BINS
            tip = (
                f"{time_text(begin)}: {count:,} {'' if level == OF_NO_LEVEL else level + ' '}detection{'s' if count > 1 else ''}"
            )
            drawn.append(_bar(level, number, below, high, tip))
            below += high
    return drawn


def _bar(css: str, number: int, below: float, high: float, tip: str | None = None) -> Markup:
    wide = WIDTH / BINS
    inner = None if tip is None else element("title", tip)
    x, y = f"{number * wide + 0.5:.1f}", f"{HEIGHT - below - high:.1f}"
    return element("rect", inner, class_=css, x=x, y=y, width=f"{wide - 1:.1f}", height=f"{high:.1f}")


# ATT&CK: a column a tactic, a cell a technique.


def _matrix(tactics: dict[str, list[Cell]]) -> Markup:
    most = max(cell.count for cells in tactics.values() for cell in cells)
    return element(
        "div", element("div", *(_tactic(t, cells, most) for t, cells in tactics.items()), class_="matrix"), class_="wide"
    )


def _tactic(tactic: str, cells: Sequence[Cell], most: int) -> Markup:
    found, silent = [cell for cell in cells if cell.count], [cell for cell in cells if not cell.count]
    parts: list[Part] = [element("b", tactic_name(tactic)), *(_cell(cell, most) for cell in found)]
    if silent:
        names = ", ".join(cell.technique or "no technique given" for cell in silent)
        parts.append(element("div", f"looked for, not found: {names}", class_="silent"))
    return element("div", *parts, class_="tactic")


def _cell(cell: Cell, most: int) -> Markup:
    name = element("b", link(cell.address, cell.technique)) if cell.address else element("b", "–")
    rules = [element("div", _to(hits, hits.about.title)) for hits in cell.rules if hits.count]
    return element(
        "div", element("span", f"{cell.count:,}", class_="count"), name, *rules, class_=f"cell {_heat(cell.count, most)}"
    )


def _heat(count: int, most: int) -> str:
    return f"heat{max(1, round(HEATS * (count / most) ** 0.5))}"


def _to(hits: Hits, text: str) -> Markup:
    return element("a", text, href=f"#rule-{hits.detector.order}")


# Rules and hosts.


def _counts(findings: Findings, scale: Scale) -> Markup:
    total: Counter[str] = Counter()
    for hits in findings.hits:
        total.update(hits.hosts)
    hosts = [host for host, _ in sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))]
    shown, others = hosts[:HOSTS], hosts[HOSTS:]
    most = max((hits.hosts[host] for hits in findings.hits for host in shown), default=1)
    heads = [element("th", text) for text in ("Level", "Rule", "When")] + [element("th", "Detections", class_="number")]
    heads += [element("th", host, class_="host") for host in shown]
    heads += [element("th", f"{len(others):,} other hosts", class_="host")] if others else []
    rows = [_row(hits, shown, bool(others), most, scale) for hits in findings.hits]
    return element("div", element("table", element("tr", *heads), *rows, class_="counts"), class_="wide")


def _row(hits: Hits, shown: Sequence[str], others: bool, most: int, scale: Scale) -> Markup:
    counts = [hits.hosts[host] for host in shown]
    cells = [
        element(
            "td", element("span", level_of(hits), class_=f"badge {level_of(hits)}") if level_of(hits) != OF_NO_LEVEL else None
        ),
        element("td", _to(hits, hits.about.title)),
        element("td", _lane(hits, scale)),
        element("td", f"{hits.count:,}", class_="number"),
        *(
            element("td", f"{count:,}" if count else None, class_=f"host {_heat(count, most) if count else ''}")
            for count in counts
        ),
    ]
    rest = hits.hosts.total() - sum(counts)
    return element("tr", *cells, element("td", f"{rest:,}" if rest else None, class_="host") if others else None)


def _lane(hits: Hits, scale: Scale) -> Markup:
    places = sorted({round(scale.place(time) * 216) for time in hits.times})
    marks = [element("rect", class_=level_of(hits), x=place + 1, y=3, width=3, height=12) for place in places]
    back = element("rect", class_="back", x=0, y=0, width=220, height=18)
    return element("svg", back, *marks, class_="lane", viewBox="0 0 220 18")


# Findings: rule by rule, the worst first.


def _findings(findings: Findings) -> list[Part]:
    levels = [level for level in WORST_FIRST if any(level_of(hits) == level for hits in findings.hits)]
    boxes = [element("label", Markup(f'<input type="checkbox" value="{level}" checked> '), level) for level in levels]
    search = Markup('<input type="search" id="search" placeholder="Search rules and findings" aria-label="Search">')
    fold = element("button", "Unfold all", type="button", id="unfold")
    controls = element(
        "div", search, *boxes, fold, element("span", id="left", class_="faint"), class_="controls", hidden="hidden"
    )
    return [controls, *(_rule(hits) for hits in findings.hits)]


def _rule(hits: Hits) -> Markup:
    level = level_of(hits)
    about = hits.about
    badge = element("span", level, class_=f"badge {level}") if level != OF_NO_LEVEL else None
    count = element("span", counted(hits.count, "detection"), class_="count faint")
    more = hits.count - len(hits.shown)
    return element(
        "section",
        element("header", badge, element("h3", about.title), count),
        _about(hits),
        *(_finding(finding) for finding in hits.shown),
        element("p", f"and {more:,} more, which are counted above", class_="faint") if more else None,
        class_=f"rule {level}",
        id=f"rule-{hits.detector.order}",
        data_level=level,
    )


def _about(hits: Hits) -> Markup:
    about, span = hits.about, hits.detector.span
    known = [f"type {hits.detector.name}", f"id {about.id}" if about.id else None, f"by {about.author}" if about.author else None]
    known += [f"{span.file}:{span.line}" if span is not None else None]
    parts: list[Part] = [element("p", " · ".join(text for text in known if text), class_="faint small")]
    parts += [element("p", about.description)] if about.description else []
    parts += [element("div", *(element("span", tag, class_="tag") for tag in about.tags))] if about.tags else []
    parts += [element("p", "Known false positives: ", "; ".join(about.false_positives))] if about.false_positives else []
    parts += [element("div", link(address), class_="small") for address in about.references]
    return element("div", *parts, class_="about")


def _finding(finding: Finding) -> Markup:
    shown = {k: v for k, v in finding.record.items() if k not in ("type", "time", "from", "rule_id", "level", "id")}
    what = "  ".join(f"{name}={_text(value)}" for name, value in shown.items())
    summary = element("summary", element("span", _span_text(finding.detection), class_="mono"), "  ", what)
    of = counted(finding.of, "event")
    left = finding.of - len(finding.events)
    cut = f" ({EVENTS} are shown: the first and the last)" if finding.of > EVENTS else " (not in these files)" if left else ""
    note = element("div", f"made of {of}{cut}", class_="faint small")
    return element("details", summary, note, *map(_event, finding.events))


def _event(event: Event) -> Markup:
    values = record(event)
    rows = [
        element("tr", element("td", name, class_="name"), element("td", _text(value), class_="value"))
        for name, value in values.items()
    ]
    head = element(
        "summary",
        element("span", _span_text(event), class_="mono"),
        f"  {event.type}  ",
        element("span", f"id {event.id}", class_="faint"),
    )
    return element("details", head, element("table", *rows), class_="event")


def _span_text(event: Event) -> str:
    lo, hi = time_text(event.lo / MILLISECOND), time_text(event.hi / MILLISECOND)
    return hi if lo == hi else f"{lo} – {hi}"


def time_text(time: float) -> str:
    """Of milliseconds; early ones are counters, not dates."""
    return f"{time:g}" if time < CALENDAR else iso_instant(round(time * MILLISECOND)).replace("T", " ").replace("Z", "")


def _text(value: Any) -> str:
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
