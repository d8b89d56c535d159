"""`coincide studio`: write rules, run them and look at what they find, on a page in a browser."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.cli.command import (
    Command,
    Given,
    field_arguments,
    field_mapping,
    loading_options,
    part_rules_from_events,
    rules_argument,
)

if TYPE_CHECKING:
    from coincide.serve.server import Listening
    from coincide.studio.session import Session

DESCRIPTION = """\
Write rules, run them and look at what they find, on a page in a browser of this machine.

Rules of every language are edited with their errors in place, and drawn beside the text; events stand on a line of
time that stays smooth with a million of them. A click on a detection shows what led to it. A run can be gone through
step by step, forwards and back; what was found and accepted becomes a case for `coincide test`. With the URL of a broker
the run is live.

The link has a token: nobody without it is answered. Nothing is asked of, or sent to, any other machine. Files are read and
written only below the folder of the rules (without RULES: this one), events wherever --events says.

example:
  coincide studio
  coincide studio guessing.say --events logins.jsonl
  coincide studio rules/ --events 'nats://127.0.0.1/logs' --port 8100 --no-browser
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser, nargs="*")
    text = "files of events (.jsonl, .csv, .parquet …), or the URL of a source: nats://…, kafka://…, tail:FILE"
    parser.add_argument("--events", "-e", nargs="+", action="extend", default=[], metavar="FILE|URL", help=text)
    parser.add_argument("--format", metavar="NAME", help="of the events, whatever their file is called")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="(default: one that is free)")
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    group = parser.add_argument_group("live events")
    group.add_argument("--delay", metavar="TIME", default="0", help="events may come so much later than later ones, as in 5s")
    group.add_argument(
        "--clock", metavar="NAME", help="does time go on when nothing comes? wall (default of brokers): yes; event: no"
    )
    field_arguments(parser)


def studio(given: Given) -> int:
    from coincide.cli.live import check_durations
    from coincide.cli.serve import need_packages
    from coincide.engines.choice import check_name
    from coincide.streams.loop import CLOCKS

    part_rules_from_events(given)
    check_durations(given, "delay")
    if given.clock is not None:
        check_name("clock", given.clock, CLOCKS)
    need_packages()
    from coincide.serve.server import bound
    from coincide.studio.server import link, serve

    listening = _listening(given)
    session = _session(given)
    with bound(listening) as at:
        address = link(listening, at)
        print(f"coincide studio: {address}", flush=True)
        print("Ctrl-C ends it.", flush=True)
        serve(session, listening, at, lambda: None if given.no_browser else _show(address))
    return 0


def _listening(given: Given) -> Listening:
    import secrets

    from coincide.errors import CoincideError
    from coincide.serve.server import Listening

    if not 0 <= given.port <= 65_535:
        raise CoincideError(f"--port: {given.port} is not a port")
    return Listening(port=given.port, token=os.environ.get("COINCIDE_TOKEN") or secrets.token_urlsafe(24))


def _session(given: Given) -> Session:
    from coincide.errors import InputError
    from coincide.streams.registry import scheme_of
    from coincide.studio.files import Files
    from coincide.studio.session import Session

    options = {**loading_options(given), "allow_paths": given.allow_path, "allow_db": given.allow_db}
    for name in given.rules:
        if not Path(name).exists():
            raise InputError(f"{name}: No such file or directory")
    session = Session(Files(given.rules, options["sigma_mapping"]), options, field_mapping(given), given.format)
    live = [name for name in given.events if scheme_of(name) is not None]
    if live and len(live) < len(given.events):
        raise InputError("--events: files and live sources cannot be mixed here")
    if live:
        session.listen(live, given.delay, given.clock)
    elif given.events:
        session.open(given.events)
    return session


def _show(address: str) -> None:
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


STUDIO = Command("studio", DESCRIPTION, _arguments, studio)
