"""A `coincide` for shells that need not start anew each time: a process that has imported what commands need forks for each. What
a command prints does not depend on how Python came to run it, and the half second before that is most of what one takes.

    python forking.py PROGRAM      writes the program, and serves it until it is ended"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from coincide.languages.registry import MODULES

PROGRAM = """#!{python} -IS
import json, os, socket, sys
served = socket.socket(socket.AF_UNIX)
served.connect({address!r})
socket.send_fds(served, [json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
sys.exit(int(served.recv(9) or b"1"))
"""
LONGEST = 1 << 17


def serve(program: Path) -> None:
    for name in ("pyarrow.compute", "coincide.cli.main", "coincide.cli.run", "coincide.engines.choice", *MODULES.values()):
        import_module(name)
    assert threading.active_count() == 1, "other threads would not be there after a fork"
    address = f"{program}.socket"
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.bind(address)
        waiting.listen()
        program.write_text(PROGRAM.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o755)
        print("ready", flush=True)
        while True:
            asked, _ = waiting.accept()
            if os.fork() == 0:
                os._exit(answer(asked))
            asked.close()
            with suppress(ChildProcessError):  # there is none any more
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def answer(asked: socket.socket) -> int:
    from coincide.cli.main import entry

    told, given, *_ = socket.recv_fds(asked, LONGEST, 3)
    for number, file in enumerate(given):
        os.dup2(file, number)
        os.close(file)
    sys.argv, folder, environment = json.loads(told)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        entry()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        asked.sendall(b"%d" % (end.code or 0))
    return 0


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
