"""The Active Office with real processes: sensors, two servers, two detectors and PDAs, each in a network namespace of its own,
and the bytes that cross their interfaces. Needs root and `ip` (iproute2); `make office` runs it.

The world of eight hours is played faster (timers too); the delays of links are as they are. They come from relays (relay.py), one
at the client's end of each link: `tc netem` is not in every kernel. A server is a broker of NATS; the second one is a leaf node
of the first, so what several PDAs want comes to it once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

import coincide
from experiments import office
from experiments.office import INSIDE, NOTIFY, RULES, WIRED, WIRELESS, Record
from experiments.pictures import Pictures

SPEED = 480
"""Times faster than the office lives: eight hours are a minute."""
IDLE = 10.0
"""Seconds in which nothing happens, so that one can see what that costs."""
AFTER = 3.0
BEAT = "0.1"
"""Seconds between two words of a node: twice as often it tells the clock by which timers go."""
PORT, LEAVES, NEAR = 4222, 7422, 9000
SERVER = str(Path(sys.executable).parent / "nats-server")
PROGRAM = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
FAST_NOTIFY = NOTIFY.replace("5min", f"{5 * 60_000 // SPEED}ms")
DETECTOR = f"coincide.detector.ce-{crc32(FAST_NOTIFY.encode()):08x}"
FILTERS = [f"office.{type}.Meeting_Room_1" for type in ("Pers", "Board_on", "Board_off")] + ["office.Login.Jean"]


def played(world: Sequence[Record], start: float) -> list[Record]:
    """The office's events, with the times (ms) at which they are published."""
    return [{**event, "time": round(start * 1000 + event["time"] / SPEED, 3)} for event in world]


# Namespaces and links.


@dataclass
class Machines:
    """Namespaces with links between them; what was made or started ends with it."""

    name: str
    folder: Path
    _made: list[str] = field(default_factory=list)
    _links: dict[str, tuple[str, str]] = field(default_factory=dict)  # by client: its namespace and interface
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def machine(self, name: str) -> str:
        space = f"{self.name}-{name}"
        _ip("netns", "add", space)
        self._made.append(space)
        _ip("-n", space, "link", "set", "lo", "up")
        return space

    def link(self, client: str, server: str, port: int, delay: tuple[float, float]) -> None:
        """From a client to a server, which the client finds at NEAR on its loopback."""
        number = len(self._links) + 1
        near, far = f"n{number}", f"f{number}"
        here, there = f"{self.name}-{client}", f"{self.name}-{server}"
        _ip("link", "add", near, "netns", here, "type", "veth", "peer", "name", far, "netns", there)
        for space, device, address in ((here, near, f"10.77.{number}.2/30"), (there, far, f"10.77.{number}.1/30")):
            _ip("-n", space, "addr", "add", address, "dev", device)
            _ip("-n", space, "link", "set", device, "up")
        self._links[client] = (here, near)
        least, most = map(str, delay)
        self.start(client, sys.executable, "-m", "experiments.relay", str(NEAR), f"10.77.{number}.1", str(port), least, most)

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            whole = ["ip", "netns", "exec", f"{self.name}-{name}", *command]
            made = subprocess.Popen(whole, stdout=log, stderr=log, cwd=self.folder, env=_environment())
        self._processes.append(made)
        return made

    def python(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start(name, sys.executable, "-m", "experiments.namespaces", *arguments)

    def bytes(self) -> dict[str, int]:
        """That have crossed each link, in both directions."""
        found = {}
        for client, (space, device) in self._links.items():
            shown = subprocess.check_output(["ip", "-n", space, "-s", "-j", "link", "show", "dev", device])
            counted = json.loads(shown)[0]["stats64"]
            found[client] = counted["rx"]["bytes"] + counted["tx"]["bytes"]
        return found

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        for space in self._made:
            _ip("netns", "del", space)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _environment() -> dict[str, str]:
    """Of this program, found from anywhere."""
    roots = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots))}


# One run.


@dataclass(frozen=True)
class Run:
    """Bytes on wires and in the air, and those of them that would have been there if nothing had happened; what each PDA got."""

    wired: int
    wireless: int
    idle: tuple[float, float]
    received: list[list[Record]]
    seconds: float


def run(way: str, seed: int, subscribers: int) -> Run:
    """`way`: `pe` or `ce`."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        machines = Machines(f"{way}{seed}{subscribers}{os.getpid() % 10_000}", Path(folder))
        ending.callback(machines.close)
        pdas = [f"pda{number}" for number in range(1, subscribers + 1)]
        _servers(machines)
        for name in ("sensors", *(("ced1", "ced2") if way == "ce" else ()), *pdas):
            machines.machine(name)
        machines.link("sensors", "jms2", PORT, WIRED)
        if way == "ce":
            _detectors(machines)
        for name in pdas:
            machines.link(name, "jms1", PORT, WIRELESS)
        time.sleep(1.0)
        for name in pdas:
            machines.python(name, "pda", way, name, folder)
        sensors = machines.python("sensors", "sensors", way, str(seed), folder)
        _until(lambda: all((Path(folder) / f"{name}.ready").exists() for name in (*pdas, "sensors")))
        time.sleep(1.0)
        before = machines.bytes()
        time.sleep(IDLE)
        begun = machines.bytes()
        began = time.time()
        (Path(folder) / "start").write_text(str(round(began + 1.0)))  # fractions would round times another way in each run
        sensors.wait()
        time.sleep(AFTER)
        seconds = time.time() - began
        moved, idle = _less(machines.bytes(), begun), _less(begun, before)
        received = [_lines(Path(folder) / f"{name}.jsonl") for name in pdas]
    air = {name for name in moved if name.startswith("pda")}
    parts = [
        (sum(v for n, v in some.items() if n not in air), sum(v for n, v in some.items() if n in air)) for some in (moved, idle)
    ]
    per = seconds / IDLE
    return Run(*parts[0], (parts[1][0] * per, parts[1][1] * per), received, seconds)


def _servers(machines: Machines) -> None:
    for name in ("jms2", "jms1"):
        machines.machine(name)
    hub, leaf = machines.folder / "hub.conf", machines.folder / "leaf.conf"
    store = f'jetstream {{ store_dir: "{machines.folder}/store", domain: "hub" }}'
    hub.write_text(f'listen: "0.0.0.0:{PORT}"\n{store}\nleafnodes {{ listen: "0.0.0.0:{LEAVES}" }}\n')
    leaf.write_text(f'listen: "0.0.0.0:{PORT}"\nleafnodes {{ remotes: [ {{ url: "nats-leaf://127.0.0.1:{NEAR}" }} ] }}\n')
    machines.start("jms2", SERVER, "-c", str(hub))
    machines.link("jms1", "jms2", LEAVES, WIRED)
    time.sleep(1.0)
    machines.start("jms1", SERVER, "-c", str(leaf))


def _detectors(machines: Machines) -> None:
    machines.link("ced2", "jms2", PORT, INSIDE)
    machines.link("ced1", "jms1", PORT, INSIDE)
    time.sleep(1.0)
    for name, more in (("ced2", ()), ("ced1", ("--domain", "hub"))):
        machines.start(name, *PROGRAM, "node", "--broker", f"nats://127.0.0.1:{NEAR}", "--name", name, "--beat", BEAT, *more)
    if machines.python("ced2", "subscribe").wait(120):
        raise SystemExit((machines.folder / "ced2.log").read_text())


def _until(done: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise SystemExit("a process does not start")
        time.sleep(0.05)


def _less(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: value - before[name] for name, value in after.items()}


def _lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# What PDAs know in the end.


def notices(way: str, received: Sequence[Record]) -> list[tuple[list[str], float]]:
    """Of each notice what it was made of, and how late (ms) the PDA had it. Of primitive events: those that follow from all of
    them in order of time, the truth that the network is held against."""
    if way == "ce":
        told = [(line["data"], line["arrival"]) for line in received]
        return sorted((data["from"], arrival - _hi(data)) for data, arrival in told)
    made = coincide.detect(coincide.loads(RULES + FAST_NOTIFY, "opera"), [line["data"] for line in received], "inf")
    return sorted((notice["from"], 0.0) for notice in made if notice["type"] == "Notify")


def _hi(notice: Record) -> float:
    return float(notice["time"][1] if isinstance(notice["time"], list) else notice["time"])


# Roles in namespaces.


def sensors(way: str, seed: str, folder: str) -> None:
    (_sensors_of_a_network if way == "ce" else _sensors)(int(seed), Path(folder))


def _begun(seed: int, folder: Path) -> list[Record]:
    """Once all others are there."""
    world = office.world(seed)
    (folder / "sensors.ready").touch()
    _until(lambda: (folder / "start").exists() and (folder / "start").read_text())
    return played(world, float((folder / "start").read_text()))


def _sensors_of_a_network(seed: int, folder: Path) -> None:
    from coincide.network.client import Network

    with Network(f"nats://127.0.0.1:{NEAR}") as network:
        publisher = network.publisher("office", "ced2")
        publisher.announce("Pers", "Login", "Board_on", "Board_off")
        for event in _begun(seed, folder):
            time.sleep(max(0.0, event["time"] / 1000 - time.time()))
            publisher.publish(event)


def _sensors(seed: int, folder: Path) -> None:
    """A subject for each kind of event in each place: the server's own filter."""
    from coincide.streams.nats import Subject, wired

    wire = wired(Subject(f"nats://127.0.0.1:{NEAR}/office"))
    for event in _begun(seed, folder):
        time.sleep(max(0.0, event["time"] / 1000 - time.time()))
        kind = event["user"] if event["type"] == "Login" else event["location"].replace(" ", "_")
        wire.publish(f"office.{event['type']}.{kind}", office.text(event).encode())
    wire.flush(10.0)


def pda(way: str, name: str, folder: str) -> None:
    """Subscribes, and writes down what comes and when."""
    import asyncio

    import nats

    async def listen() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{NEAR}")
        with (Path(folder) / f"{name}.jsonl").open("w") as file:

            async def receive(message: Any) -> None:
                arrival = time.time() * 1000
                file.write(json.dumps({"arrival": arrival, "data": json.loads(message.data)}) + "\n")
                file.flush()

            for subject in FILTERS if way == "pe" else [DETECTOR]:
                await client.subscribe(subject, cb=receive)
            if way == "ce":
                await client.publish("coincide.admin", json.dumps(_subscription(name)).encode())
            await client.flush()
            (Path(folder) / f"{name}.ready").touch()
            await asyncio.Event().wait()

    asyncio.run(listen())


def _subscription(name: str) -> dict[str, str]:
    what = {"rules": FAST_NOTIFY, "ending": "opera", "node": "ced1"}
    return {"type": "admin", "command": "subscribe", "value": "minimum-latency", "from": name, **what}


def subscribe() -> None:
    """Meetings are detected next to the sensors' server, before a PDA comes."""
    from coincide.network.client import Network

    with Network(f"nats://127.0.0.1:{NEAR}") as network:
        _until(lambda: sum(member.alive for member in network.status().members.values()) == 2)
        network.subscribe(rules=RULES, ending="opera", node="ced2", name="meetings")
        network.subscribe(rules=FAST_NOTIFY, ending="opera", node="ced1", name="notices")
        _until(lambda: all(detector.ready for detector in network.status().detectors.values()))


# The report.


@dataclass(frozen=True)
class Pair:
    seed: int
    subscribers: int
    pe: Run
    ce: Run

    @property
    def agree(self) -> bool:
        """Has every PDA the same notices in both ways?"""
        wanted = [made for made, _ in notices("pe", self.pe.received[0])]
        every = [("pe", received) for received in self.pe.received] + [("ce", received) for received in self.ce.received]
        return all([made for made, _ in notices(way, received)] == wanted for way, received in every)

    @property
    def delays(self) -> list[float]:
        return [late for received in self.ce.received for _, late in notices("ce", received)]


def pair(seed: int, subscribers: int) -> Pair:
    with ThreadPoolExecutor(2) as both:
        pe, ce = both.map(lambda way: run(way, seed, subscribers), ("pe", "ce"))
    return Pair(seed, subscribers, pe, ce)


def report(pictures: Pictures, seeds: Sequence[int] | None = None) -> Iterator[str]:
    """All seeds with six subscribers, and the first with one to five."""
    seeds = seeds or range(int(os.environ.get("COINCIDE_SEEDS", len(office.SEEDS))))
    wanted = [(seeds[0], k) for k in range(1, 6)] + [(seed, 6) for seed in seeds]
    found = []
    yield "| seed | subscribers | PE wired kB | PE wireless kB | CE wired kB | CE wireless kB | CE idle kB | notices |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for seed, k in wanted:
        one = pair(seed, k)
        found.append(one)
        sizes = (one.pe.wired, one.pe.wireless, one.ce.wired, one.ce.wireless)
        idle = ", ".join(f"{size / 1000:,.0f}" for size in one.ce.idle)
        made = f"{len(one.delays)}, {'equal' if one.agree else 'NOT EQUAL'}"
        yield f"| {seed} | {k} | {' | '.join(f'{size / 1000:,.0f}' for size in sizes)} | {idle} | {made} |"
    yield ""
    yield from _summary([one for one in found if one.subscribers == 6])
    delays = [late for one in found for late in one.delays]
    yield f"{len(delays)} notices at PDAs, {max(delays, default=0):.0f} ms late at most, {_middle(delays):.0f} ms in the middle."
    _draw(pictures, found, delays)


def _summary(six: Sequence[Pair]) -> Iterator[str]:
    own = [(one.ce.wired - one.ce.idle[0], one.ce.wireless - one.ce.idle[1]) for one in six]
    other = [(one.pe.wired - one.pe.idle[0], one.pe.wireless - one.pe.idle[1]) for one in six]
    all_bytes = fmean((o.ce.wired + o.ce.wireless) / (o.pe.wired + o.pe.wireless) for o in six)
    in_air = fmean(o.ce.wireless / o.pe.wireless for o in six)
    less = fmean(sum(mine) / sum(theirs) for mine, theirs in zip(own, other, strict=True))
    air = fmean(mine[1] / theirs[1] for mine, theirs in zip(own, other, strict=True))
    yield f"Six subscribers, mean of {len(six)} seeds: CE / PE {all_bytes:.0%} of all bytes, {in_air:.1%} of the wireless ones;"
    yield f"without what is there when nothing happens {less:.0%} and {air:.1%}."


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def _draw(pictures: Pictures, found: Sequence[Pair], delays: Sequence[float]) -> None:
    first = sorted((one for one in found if one.seed == found[0].seed), key=lambda one: one.subscribers)
    pictures.lines(
        "office-real-bytes", f"Real links: kB, seed {found[0].seed}", "subscribers", "kB", [one.subscribers for one in first],
        {
            "PE wired": [one.pe.wired / 1000 for one in first], "PE wireless": [one.pe.wireless / 1000 for one in first],
            "CE wired": [one.ce.wired / 1000 for one in first], "CE wireless": [one.ce.wireless / 1000 for one in first],
        },
    )  # fmt: skip
    bins = office.histogram(delays)
    pictures.bars(
        "office-real-delays",
        "Delay of notices on real links, bins of 20 ms",
        "ms",
        "notices",
        {str(s): n for s, n in bins.items()},
    )


ROLES = {"sensors": sensors, "pda": pda, "subscribe": subscribe}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
