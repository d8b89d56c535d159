"""A day of a small company, the same one every time: people, doors, servers, and a few things that should not happen."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]

DAY = 1_772_409_600_000  # 2026-03-02T00:00Z, a Monday
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
PEOPLE = [
    "ada", "ben", "cleo", "dan", "eve", "finn", "gil", "hana", "ian", "june", "kofi", "lena", "mia", "nils", "olga",
    "paul", "quinn", "rosa", "sam", "tara", "uma", "vic", "wen", "xenia", "yuri", "zoe", "amir", "bo", "carla", "dev",
]  # fmt: skip
SERVERS = ["db1", "db2", "files", "mail", "web1", "web2"]
DOORS = ["main", "yard", "lab", "server-room"]


def at(hour: float) -> int:
    """The hour of the day as an instant."""
    return DAY + round(hour * HOUR)


def event(kind: str, time: float, **attributes: object) -> Record:
    return {"type": kind, "time": int(time), **attributes}


def generate(seed: int = 7) -> list[Record]:
    """All events of the day in order of time, with ids."""
    dice = random.Random(seed)
    made = [*_office(dice), *_machines(dice, silent="web2"), *_backups(dice, missing="files"), *_incidents(dice)]
    made.sort(key=lambda record: record["time"])
    return [{"id": f"e{number}", **record} for number, record in enumerate(made, 1)]


def _office(dice: random.Random) -> Iterator[Record]:
    for user in PEOPLE:
        come, go = at(dice.gauss(8.4, 0.5)), at(dice.gauss(17.2, 0.7))
        lunch = at(dice.gauss(12.3, 0.3))
        out = lunch + dice.uniform(25, 50) * MINUTE
        for time, direction in ((come, "in"), (lunch, "out"), (out, "in"), (go, "out")):
            yield from _through(dice, user, time, direction, dice.choice(DOORS[:2]))
        for begin, end in ((come, lunch), (out, go)):
            yield from _desk(dice, user, begin + 5 * MINUTE, end - 5 * MINUTE)
        if dice.random() < 0.4:
            yield from _evening(dice, user, go)


def _through(dice: random.Random, user: str, time: float, direction: str, door: str) -> Iterator[Record]:
    yield event("badge", time, user=user, door=door, direction=direction)
    yield event("door-state", time + 1 * SECOND, door=door, open=True)
    yield event("passed", time + 2 * SECOND, door=door)
    yield event("door-state", time + dice.uniform(4, 9) * SECOND, door=door, open=False)


def _desk(dice: random.Random, user: str, begin: float, end: float) -> Iterator[Record]:
    time = begin
    while time < end:
        host = dice.choice(SERVERS)
        for _ in range(dice.choice((0, 0, 0, 0, 0, 1, 1, 2))):  # fingers slip
            yield event("login", time, user=user, host=host, ok=False, place="office")
            time += dice.uniform(3, 15) * SECOND
        yield event("login", time, user=user, host=host, ok=True, place="office")
        for _ in range(dice.randrange(6)):
            megabytes = round(dice.lognormvariate(1.5, 1.4), 1)
            yield event("transfer", time + dice.uniform(0, 20) * MINUTE, user=user, host=host, megabytes=min(megabytes, 480.0))
        time += dice.uniform(6, 28) * MINUTE


def _evening(dice: random.Random, user: str, go: float) -> Iterator[Record]:
    """From home, which is allowed."""
    for _ in range(dice.randrange(1, 4)):
        time = min(go + dice.uniform(1, 4) * HOUR, at(23.9))
        yield event("login", time, user=user, host=dice.choice(SERVERS), ok=True, place="home")


def _machines(dice: random.Random, silent: str) -> Iterator[Record]:
    for server in SERVERS:
        time = DAY + dice.uniform(0, 5) * MINUTE
        while time < DAY + 24 * HOUR:
            load = 15 + 40 * (8 * HOUR < time - DAY < 18 * HOUR) + dice.gauss(0, 6)
            if not (server == silent and at(14.2) < time < at(15.1)):
                yield event("reading", time, server=server, load=round(max(load, 1.0), 1))
            time += dice.uniform(3, 5) * MINUTE


def _backups(dice: random.Random, missing: str) -> Iterator[Record]:
    for number, server in enumerate(SERVERS):
        begin = at(1.0 + 0.35 * number)
        steps = ["dumped", "verified", "uploaded"]
        dice.shuffle(steps)
        if server == missing:
            steps.remove("verified")
        for n, step in enumerate(steps):
            yield event(step, begin + (n + dice.random()) * 5 * MINUTE, server=server)
        yield event("backup-closed", begin + 18 * MINUTE, server=server)


def _incidents(dice: random.Random) -> Iterator[Record]:
    yield from _guessing(dice, "eve", "db1", at(3.2), tries=9)
    yield event("transfer", at(3.2) + 7 * MINUTE, user="eve", host="db1", megabytes=2140.5)
    yield from _guessing(dice, "sam", "mail", at(20.9), tries=6)
    yield event("login", at(21.4), user="hana", host="files", ok=True, place="office")  # her badge left at five
    for n in range(7):
        yield event("door-state", at(10.6) + 2 * n * MINUTE, door="lab", open=True)
    yield event("door-state", at(10.6) + 14 * MINUTE, door="lab", open=False)
    yield event("badge", at(19.5), user="dev", door="server-room", direction="in")
    yield event("passed", at(19.5) + 2 * SECOND, door="server-room")
    yield event("passed", at(19.5) + 4 * SECOND, door="server-room")


def _guessing(dice: random.Random, user: str, host: str, begin: float, tries: int) -> Iterator[Record]:
    time = begin
    for _ in range(tries):
        yield event("login", time, user=user, host=host, ok=False, place="outside")
        time += dice.uniform(1, 6) * SECOND
    yield event("login", time, user=user, host=host, ok=True, place="outside")
