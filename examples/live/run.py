"""Live detection: a broker, a generator of events, rules that run for a while, and detections as they happen.

python examples/live/run.py [SECONDS]"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats

RULES = [Path(__file__).with_name(name) for name in ("guessing.say", "silence.ce")]
COINCIDE = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
RATE = 2_000
"""Events a second."""


async def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        server = [str(Path(sys.executable).parent / "nats-server"), "--addr", "127.0.0.1", "--port", str(port)]
        broker = subprocess.Popen(
            [*server, "--jetstream", "--store_dir", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            await _run(f"127.0.0.1:{port}", Path(folder), seconds)
        finally:
            broker.kill()
            broker.wait()


async def _run(address: str, folder: Path, seconds: float) -> None:
    client = await nats.connect(f"nats://{address}", max_reconnect_attempts=100, reconnect_time_wait=0.05, error_cb=_not_yet)
    stream = client.jetstream()
    await stream.add_stream(name="EVENTS", subjects=["events"])
    events = f"nats://{address}/events?stream=EVENTS"
    print(f"A broker at {address}, about {RATE:,} events a second for {seconds:g} seconds, and")
    print(f"\n    coincide run guessing.say silence.ce --events '{events}' --delay 250ms\n")
    command = ["run", *map(str, RULES), "--events", events, "--delay", "250ms", "--checkpoint", str(folder / "kept")]
    process = await asyncio.create_subprocess_exec(*COINCIDE, *command, stdout=asyncio.subprocess.PIPE)
    shown = asyncio.create_task(_show(process))
    published = await _generate(client, seconds)
    await asyncio.sleep(0.3)
    process.terminate()
    await process.wait()
    print(f"\n{published:,} events published, {await shown:,} situations detected while they came")
    await client.close()


async def _not_yet(error: Exception) -> None:
    """The broker is still starting: the client tries again."""


async def _generate(client: Any, seconds: float) -> int:
    """Logins of many users, of whom some guess; readings of sensors, of which some fall silent for a while."""
    dice, count, begun, number = random.Random(), 0, time.time(), 0
    silent_until = dict.fromkeys(range(20), 0.0)
    while (now := time.time()) < begun + seconds:
        events = [
            {"type": "login" if dice.random() < 0.97 else "failed", "user": f"user{dice.randrange(5_000)}"} for _ in range(80)
        ]
        if dice.random() < 0.06:
            user = f"user{dice.randrange(5_000)}"
            events += [{"type": "failed", "user": user}] * 3 + [{"type": "login", "user": user}]
        if dice.random() < 0.02:
            silent_until[dice.randrange(20)] = now + 2.5
        events += [{"type": "reading", "sensor": f"sensor{n}"} for n, until in silent_until.items() if now > until]
        for event in events:
            count += 1
            record = {**event, "id": f"e{count}", "time": round(time.time() * 1000, 3)}
            await client.publish("events", json.dumps(record).encode())
        number += 1
        await asyncio.sleep(max(0.0, begun + number * 100 / RATE - time.time()))
    await client.flush()
    return count


async def _show(process: asyncio.subprocess.Process) -> int:
    count = 0
    assert process.stdout is not None
    async for line in process.stdout:
        count += 1
        found = json.loads(line)
        end = found["time"][1] if isinstance(found["time"], list) else found["time"]
        who = found.get("user") or found.get("sensor")
        after = max(0, time.time() * 1000 - end)
        print(f"{time.strftime('%H:%M:%S')}  {found['type']:8}  {who:10}  {after:5.0f} ms after it was due", flush=True)
    return count


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0))
