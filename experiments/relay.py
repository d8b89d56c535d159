"""A link with a delay, where the kernel has none to give: `python -m experiments.relay PORT HOST PORT LEAST MOST` listens on the
loopback and passes on what comes, in order, each piece after some milliseconds between the two."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from random import uniform


async def relay(port: int, host: str, target: int, least: float, most: float) -> None:
    async def connected(near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        far, forth = await asyncio.open_connection(host, target)
        await asyncio.gather(passed(near, forth), passed(far, answer))

    async def passed(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        loop, due = asyncio.get_running_loop(), 0.0
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                at, data = await pieces.get()
                await asyncio.sleep(at - loop.time())
                sink.write(data)
                await sink.drain()

        task = asyncio.create_task(deliver())
        with suppress(ConnectionError):
            while data := await source.read(65_536):
                due = max(due, loop.time() + uniform(least, most) / 1000)  # nothing overtakes
                pieces.put_nowait((due, data))
        task.cancel()
        sink.close()

    async with await asyncio.start_server(connected, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])))
