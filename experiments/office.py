"""The Active Office (distribution-opera.md, section 7): how many bytes cross which links, and how late a notification comes, when
detectors stand in the network and when every PDA detects by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from random import Random
from statistics import fmean
from typing import Any

import coincide
from experiments.pictures import Pictures

Record = dict[str, Any]

SEEDS = range(12)
SUBSCRIBERS = range(1, 7)
MINUTE = 60_000
MINUTES = 8 * 60

OFFICES = tuple(f"Office FE0{number}" for number in range(1, 6))
MEETING_ROOMS = ("Meeting Room 1", "Meeting Room 2")
CORRIDOR, KITCHEN = "Corridor", "Kitchen"
RESIDENTS = ("Jean", "Peter", "Brian", "R4", "R5", "R6", "R7", "R8")
VISITORS = tuple(f"V{number}" for number in range(1, 8))
HOMES = {name: OFFICES[number % 5] for number, name in enumerate(RESIDENTS, 1)}
STAYS = {"own": 0.90, "office": (0.70, 0.60), "meeting": (0.85, 0.90), KITCHEN: (0.60, 0.60)}

RULES = """
set Seen = {Pers(location = 'Meeting Room 1')}
detect Meeting = [Board_on(location = 'Meeting Room 1') as b]
                 [[Seen as p] [Seen as p]* [Board_off(location = 'Meeting Room 1')]
                  in {Seen, Board_off(location = 'Meeting Room 1')}]
                 with who = join(p.name), board = b.board
"""
NOTIFY = """
detect Notify = ([Meeting(contains(who, 'Jean')) as m], [T1 in {T1, Login(user = 'Jean')}]) T1 = 5min
                with who = m.who, board = m.board
"""


# The world.


def walk(name: str, at: str, random: Random) -> str:
    """One Markov step of a person."""
    resident = name in HOMES
    if at == CORRIDOR:
        places, weights = zip(*_from_corridor(name).items(), strict=True)
        return str(random.choices(places, weights)[0])
    if resident and at == HOMES[name]:
        stays = 0.90
    else:
        kind = "meeting" if at in MEETING_ROOMS else at if at == KITCHEN else "office"
        stays = STAYS[kind][0 if resident else 1]  # type: ignore[index]
    return at if random.random() < stays else CORRIDOR


def _from_corridor(name: str) -> dict[str, float]:
    if name not in HOMES:
        return {**dict.fromkeys(MEETING_ROOMS, 0.30), **dict.fromkeys(OFFICES, 0.04), KITCHEN: 0.10, CORRIDOR: 0.10}
    others = {office: 0.50 if office == HOMES[name] else 0.04 for office in OFFICES}
    return {**others, **dict.fromkeys(MEETING_ROOMS, 0.09), KITCHEN: 0.08, CORRIDOR: 0.08}


def world(seed: int) -> list[Record]:
    """What the sensors of eight hours say, in order of time."""
    random = Random(seed)
    places = dict.fromkeys((*RESIDENTS, *VISITORS), CORRIDOR)
    boards = dict.fromkeys(MEETING_ROOMS, False)
    events: list[Record] = []
    for minute in range(MINUTES):
        start = minute * MINUTE
        for name, before in list(places.items()):
            places[name] = at = walk(name, before, random)
            seen = start + random.randrange(50_000)
            events.append({"type": "Pers", "time": seen, "name": name, "location": at})
            if at != before and at == HOMES.get(name) and random.random() < 0.5:
                events.append({"type": "Login", "time": seen + random.randrange(1_000, 10_001), "user": name, "location": at})
        events += _boards(start + 55_000, places, boards)
    events.sort(key=lambda event: event["time"])
    return [{"id": str(number), **event} for number, event in enumerate(events)]


def _boards(time: int, places: Mapping[str, str], boards: dict[str, bool]) -> Iterator[Record]:
    for number, room in enumerate(MEETING_ROOMS, 1):
        present = sum(at == room for at in places.values())
        if present < 3 if boards[room] else present >= 4:
            boards[room] = not boards[room]
            kind = "Board_on" if boards[room] else "Board_off"
            yield {"type": kind, "time": time, "location": room, "board": f"board {number}"}


# What crosses the links.


def wanted(event: Record) -> bool:
    """Does the subscription ask for it?"""
    if event["type"] == "Login":
        return bool(event["user"] == "Jean")
    return bool(event["location"] == "Meeting Room 1")


HEAD, ADMINISTRATION = 100, 10
"""Bytes of a message besides its text; messages that a subscription takes."""


def text(event: Record) -> str:
    return json.dumps(event, separators=(",", ":"))


@dataclass(frozen=True)
class Traffic:
    """Bytes of one seed, for so many subscribers."""

    subscribers: int
    wired: int
    wireless: int

    @property
    def total(self) -> int:
        return self.wired + self.wireless


@dataclass(frozen=True)
class Office:
    """One seed: what happened, what was detected."""

    events: Sequence[Record]
    meetings: Sequence[Record]
    notices: Sequence[Record]

    def primitive_only(self, subscribers: int) -> Traffic:
        """Every PDA gets the primitive events that pass the filters."""
        every, filtered, _, _ = self._bytes
        return Traffic(subscribers, every, subscribers * filtered)

    def composite(self, subscribers: int) -> Traffic:
        """Detectors in the network: PDAs get notices only."""
        every, filtered, meetings, notices = self._bytes
        administration = subscribers * ADMINISTRATION * (HEAD + len(text({"type": "admin", "command": "subscribe"})))
        return Traffic(subscribers, every + filtered + 2 * (meetings + notices) + administration, subscribers * notices)

    @cached_property
    def _bytes(self) -> tuple[int, int, int, int]:
        """Of all events, of those that pass the filters, of meetings and of notices, which carry their constituents."""
        sizes = {event["id"]: len(text(event)) for event in self.events}
        passing = [sizes[event["id"]] for event in self.events if wanted(event)]
        meetings, notices = (
            sum(HEAD + sum(sizes[id] for id in found["from"]) for found in some) for some in (self.meetings, self.notices)
        )
        every = sum(sizes.values()) + HEAD * len(sizes)
        return every, sum(passing) + HEAD * len(passing), meetings, notices


# Detection.


def office(seed: int) -> Office:
    """Both detectors in one engine, as on every PDA that detects by itself."""
    events = world(seed)
    found = coincide.detect(coincide.loads(RULES + NOTIFY, "opera"), events)
    return Office(events, *([d for d in found if d["type"] == type] for type in ("Meeting", "Notify")))


def in_two_places(events: Sequence[Record]) -> list[Record]:
    """The notices of a detector that hears of meetings from another one, and of logins."""
    meetings = coincide.detect(coincide.loads(RULES, "opera"), events)
    carried = {f"m{number}": meeting["from"] for number, meeting in enumerate(meetings)}
    heard = [{**{k: v for k, v in d.items() if k != "from"}, "id": id} for d, id in zip(meetings, carried, strict=True)]
    last = [{"type": "heartbeat", "time": events[-1]["time"], "id": "end"}]
    logins = [event for event in events if event["type"] == "Login"]
    notices = coincide.detect(coincide.loads(NOTIFY, "opera"), [*heard, *logins, *last])
    return [{**notice, "from": [id for part in notice["from"] for id in carried[part]]} for notice in notices]


# Delays.

WIRED, WIRELESS, INSIDE = (5, 15), (40, 120), (1, 5)
"""Milliseconds on a link, and in a server or detector."""
WAY = (INSIDE, WIRED, INSIDE, WIRED, INSIDE, WIRELESS)
"""Of a notice: its detector, to the server, the server, to the PDA's server, that server, to the PDA."""
PAPER_LIMIT = 220


def delays(notices: Sequence[Record], seed: int) -> list[tuple[int, float]]:
    """When each notice was due, and how much later it is at the PDA. A timer makes it: what came late before does not count."""
    random = Random(f"delays {seed}")
    return [(_hi(notice), sum(random.uniform(*between) for between in WAY)) for notice in notices]


def _hi(detection: Record) -> int:
    time = detection["time"]
    return int(time[1] if isinstance(time, list) else time)


def histogram(values: Iterable[float], width: int = 20) -> dict[int, int]:
    """How many lie in each bin, by where it begins."""
    bins = sorted(int(value // width) * width for value in values)
    return {start: len(list(same)) for start, same in groupby(bins)}


def trend(points: Sequence[tuple[int, float]]) -> float:
    """Milliseconds of delay that an hour adds (least squares)."""
    hours, values = [time / 3_600_000 for time, _ in points], [delay for _, delay in points]
    mean, spread = fmean(hours), sum((hour - fmean(hours)) ** 2 for hour in hours)
    return sum((hour - mean) * value for hour, value in zip(hours, values, strict=True)) / spread


# Tables.


@dataclass(frozen=True)
class Row:
    """Means over all seeds, for so many subscribers."""

    subscribers: int
    pe: tuple[float, float]  # wired, wireless
    ce: tuple[float, float]
    total: float  # CE / PE
    wireless: float


def rows(offices: Sequence[Office]) -> list[Row]:
    found = []
    for k in SUBSCRIBERS:
        both = [(one.primitive_only(k), one.composite(k)) for one in offices]
        pe, ce = zip(*both, strict=True)
        found.append(
            Row(
                k,
                (fmean(t.wired for t in pe), fmean(t.wireless for t in pe)),
                (fmean(t.wired for t in ce), fmean(t.wireless for t in ce)),
                fmean(c.total / p.total for p, c in both),
                fmean(c.wireless / p.wireless for p, c in both),
            )
        )
    return found


CAVEAT = """\
Ranges, not a confirmation: the paper gives none of its world's parameters. This one was kept, of those that were tried, because
its share of wireless traffic comes near the paper's; none met both of its figures. Single seeds vary widely."""


def report(pictures: Pictures, seeds: Sequence[int] = SEEDS) -> Iterator[str]:
    """The table of bytes, and the delays."""
    offices = [office(seed) for seed in seeds]
    table = rows(offices)
    yield "| subscribers | PE wired kB | PE wireless kB | CE wired kB | CE wireless kB | CE / PE | wireless CE / PE |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in table:
        sizes = " | ".join(f"{size / 1000:,.0f}" for size in (*row.pe, *row.ce))
        yield f"| {row.subscribers} | {sizes} | {row.total:.0%} | {row.wireless:.1%} |"
    yield "| 6, the paper | | | | | 53% | 8% |"
    yield ""
    yield CAVEAT
    points = [point for seed, one in zip(seeds, offices, strict=True) for point in delays(one.notices, seed)]
    yield ""
    yield f"{len(points)} notices, at most {max(d for _, d in points):.0f} ms late (the paper: {PAPER_LIMIT} ms);"
    yield f"an hour adds {trend(points):+.1f} ms."
    pictures.lines(
        "office-bytes", "The Active Office: kB in eight hours, mean of the seeds", "subscribers", "kB", list(SUBSCRIBERS),
        {
            "PE wired": [row.pe[0] / 1000 for row in table], "PE wireless": [row.pe[1] / 1000 for row in table],
            "CE wired": [row.ce[0] / 1000 for row in table], "CE wireless": [row.ce[1] / 1000 for row in table],
        },
    )  # fmt: skip
    bins = histogram(d for _, d in points)
    pictures.bars("office-delays", "Delay of notices, bins of 20 ms", "ms", "notices", {str(s): n for s, n in bins.items()})
