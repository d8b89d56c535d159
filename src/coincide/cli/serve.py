"""`coincide serve`: rules that run for as long as the machine does, with HTTP at their side."""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coincide.cli.actions import action_arguments, open_actions
from coincide.cli.command import (
    Command,
    Given,
    field_arguments,
    field_mapping,
    loading_options,
    part_rules_from_events,
    rules_argument,
)
from coincide.cli.live import (
    APART,
    SECOND,
    LateFile,
    ahead_argument,
    check_ahead,
    check_durations,
    live_sources,
    open_named_sink,
    pace_of,
)

if TYPE_CHECKING:
    from coincide.serve.server import Listening
    from coincide.serve.service import Setup
    from coincide.streams.run import LiveRun

DESCRIPTION = """\
Run rules for as long as the machine does: events in, detections out, over HTTP and from anywhere.

Events are posted to /events, and come from the sources that --events names; detections are streamed from
/detections/stream, and go to the sinks that --out names. Rules may be changed while it runs: over HTTP, or by
editing their files. /docs says what else there is. Listening beyond this machine needs a token, in the environment
as COINCIDE_TOKEN, or in a file.

example:
  coincide serve theft.ecl --checkpoint /var/lib/coincide
  coincide serve rules/ --events 'nats://broker/logs?stream=LOGS' --out found.jsonl --listen 0.0.0.0:8080 --token-file token
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser, nargs="*")
    many: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "URL"}
    parser.add_argument("--events", "-e", help="sources beside HTTP: nats://…, kafka://…, tail:FILE and others", **many)
    parser.add_argument("--out", "-o", help="sinks beside HTTP: -, FILE.jsonl, nats://…, kafka://… and others", **many)
    parser.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:8080", help="(default: 127.0.0.1:8080)")
    parser.add_argument("--keys", action="store_true", help="write the key of each detection, the same in every run, as _key")
    parser.add_argument("--tier", default="auto", metavar="NAME", help="auto (default), interpreter or kernel (compiled)")
    group = parser.add_argument_group("order, time and state")
    group.add_argument("--delay", metavar="TIME", default="0", help="events may come so much later than later ones, as in 5s")
    group.add_argument("--clock", metavar="NAME", default="wall", help="wall (default): time goes on when nothing comes; event")
    ahead_argument(group)
    group.add_argument("--latency", metavar="TIME", default="5ms", help="wait so long for more events (default: 5ms)")
    text = "keep state, positions and posted events in DIR, and go on from there after whatever ended the process"
    group.add_argument("--checkpoint", metavar="DIR", type=Path, help=text)
    group.add_argument("--checkpoint-every", metavar="TIME", default="2s", help="so often (default: 2s)")
    group.add_argument("--late", metavar="FILE", type=Path, help="keep events that came too late in FILE, as JSON Lines")
    group.add_argument("--history", metavar="N", type=int, default=10_000, help="detections that can be asked for again")
    group = parser.add_argument_group("who may ask, and how much")
    group.add_argument("--token-file", metavar="FILE", type=Path, help="the bearer token (default: COINCIDE_TOKEN)")
    group.add_argument("--max-body", metavar="BYTES", type=int, default=10 << 20, help="of a request (default: 10 MiB)")
    group.add_argument("--rate", metavar="N", type=float, default=1_000, help="requests a second of one client, 0: any (1000)")
    group.add_argument("--timeout", metavar="TIME", default="30s", help="in which a request's body has to come (default: 30s)")
    group.add_argument("--tls-cert", metavar="FILE", help="a certificate: HTTPS")
    group.add_argument("--tls-key", metavar="FILE", help="its key")
    action_arguments(parser)
    field_arguments(parser)


def serve(given: Given) -> int:
    from coincide.engines.choice import TIERS, check_name
    from coincide.errors import CoincideError
    from coincide.streams.loop import CLOCKS

    part_rules_from_events(given)
    if not given.rules:
        raise CoincideError("no rule files are given: coincide serve RULES")
    check_name("tier", given.tier, TIERS)
    check_name("clock", given.clock, CLOCKS)
    check_durations(given, "delay", "latency", "checkpoint_every", "timeout", "on_every")
    check_ahead(given)
    need_packages()
    from coincide.serve.server import bound
    from coincide.serve.server import serve as serve_until_the_end
    from coincide.serve.service import Service
    from coincide.streams.process import prepare

    prepare()
    listening = _listening(given)
    listening.check()
    with ExitStack() as stack:
        at = stack.enter_context(bound(listening))
        service = Service(_setup(given, stack))
        service.setup.late(service.run)  # opens the file
        serve_until_the_end(service, listening, at)
    return 0


def need_packages() -> None:
    from importlib.util import find_spec

    from coincide.errors import CoincideError, Diagnostic

    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise CoincideError(Diagnostic(f"'{missing[0]}' is not installed", hint="pip install 'coincide[serve]'"))


def _listening(given: Given) -> Listening:
    from coincide.errors import CoincideError
    from coincide.serve.guard import Limits
    from coincide.serve.server import Listening

    host, colon, port = given.listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise CoincideError(f"--listen: '{given.listen}' is not HOST:PORT")
    if (given.tls_cert is None) != (given.tls_key is None):
        raise CoincideError("--tls-cert and --tls-key belong together")
    limits = Limits(given.max_body, given.rate, given.timeout / SECOND)
    return Listening(host.strip("[]") or "0.0.0.0", int(port), _token(given), limits, given.tls_cert, given.tls_key)


def _token(given: Given) -> str | None:
    from coincide.adapters.files import readable
    from coincide.errors import CoincideError

    if given.token_file is None:
        return os.environ.get("COINCIDE_TOKEN") or None
    with readable(str(given.token_file)):
        token = given.token_file.read_text(encoding="utf-8").strip()
    if not token:
        raise CoincideError(f"'{given.token_file}' holds no token")
    return str(token)


def _setup(given: Given, stack: ExitStack) -> Setup:
    from coincide.adapters.report import Intake
    from coincide.serve.rules import RuleFiles
    from coincide.serve.service import Setup
    from coincide.streams.base import Reading

    options = {**loading_options(given), "allow_paths": given.allow_path, "allow_db": given.allow_db}
    if given.checkpoint is not None:
        given.checkpoint.mkdir(parents=True, exist_ok=True)
    files = RuleFiles(given.rules, options, given.checkpoint)
    mapping = files.rules.running.fields(field_mapping(given))
    sources = live_sources(given.events, mapping)
    spool = given.checkpoint / "posted" if given.checkpoint is not None else Path(stack.enter_context(_folder()))
    late: list[LateFile] = []

    def keep_late(run: LiveRun) -> None:
        if not late:
            late.append(stack.enter_context(LateFile(given.late, "ms", run)))
        late[0].keep()

    return Setup(
        files,
        Reading(mapping, Intake(before=len(sources) * APART)),
        sources,
        [*(open_named_sink(name, given.keys) for name in given.out), *open_actions(files.rules.running, given)],
        pace_of(given),
        given.delay,
        given.checkpoint,
        spool,
        given.keys,
        given.history,
        given.tier,
        keep_late,
    )


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="coincide-")


SERVE = Command("serve", DESCRIPTION, _arguments, serve)
