"""What a detection starts: a command, a webhook, a mail, an alert of Alertmanager."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from importlib import import_module
from threading import Condition, Thread
from typing import Any, Protocol, Self

import msgspec

from coincide.engines.choice import Duration, duration_microseconds
from coincide.errors import CoincideError, Diagnostic, nearest
from coincide.streams.base import Made, Position, Sink
from coincide.streams.grouping import Grouping, Notice
from coincide.streams.registry import missing_client

ACTIONS = {
    "http": "http.WebhookAction",
    "https": "http.WebhookAction",
    "mailto": "mail.Mail",
    "alertmanager+http": "alertmanager.Alertmanager",
    "alertmanager+https": "alertmanager.Alertmanager",
}
"""By how they begin; anything else is a command."""
WAITING = 1_000
"""Notices that may wait to be told; whoever makes more waits, too."""
PATIENCE = 5.0
"""Seconds that the end of a run which will go on waits for notices to be told."""
SECOND = 1_000_000

log = logging.getLogger("coincide.actions")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Action(Protocol):
    """Something that can be told."""

    name: str
    """For people: without what may be a secret."""

    def notify(self, key: str, record: dict[str, Any], line: bytes) -> None:
        """A detection: its key, its record, and that as JSON. Raises CoincideError if it cannot be told."""

    def close(self) -> None: ...


def open_action(target: str) -> Action:
    """A URL, or a command with its arguments."""
    scheme = target.partition(":")[0]
    module, _, name = ACTIONS.get(scheme, "command.CommandAction").rpartition(".")
    with missing_client(scheme):
        made: Action = getattr(import_module(f"coincide.streams.{module}"), name)(target)
    return made


class ActionSink(Sink):
    """Tells an action of detections whose type is like a pattern (`*` and `?` stand for anything). A thread tells them one after
    another; what cannot be told is warned of, and does not end the run. What waits to be told, or is held back, is part of the
    position; after a restart, detections since the checkpoint are told again."""

    keyed = True

    def __init__(self, pattern: str, action: Action, grouping: Grouping, name: str | None = None) -> None:
        super().__init__(name or f"on:{pattern} {action.name}")
        self._pattern, self._action, self._grouping = pattern, action, grouping
        self._waiting: deque[Notice] = deque()  # the first is being told
        self._changed = Condition()  # guards that and the grouping
        self._closed = False
        self._saved = False
        self._thread = Thread(target=self._notify_one_by_one, name=self.url, daemon=True)

    def open(self, position: Position) -> None:
        if position is not None:
            held, waiting = position
            self._grouping.restore(held, time.monotonic())
            self._waiting.extend(Notice(*each) for each in waiting)
        self._thread.start()

    def write(self, made: Sequence[Made]) -> None:
        for each in made:
            if fnmatchcase(each.type, self._pattern):
                self.add(each.key, _decode(each.line))

    def add(self, key: str, record: dict[str, Any]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < WAITING)
            self._waiting.extend(self._grouping.add(key, record, time.monotonic()))
            self._changed.notify_all()

    def commit(self) -> Position:
        with self._changed:
            self._saved = True
            return [self._grouping.state(time.monotonic()), [[*each] for each in self._waiting]]

    def close(self) -> None:
        """What is held back is told first; if it is kept to be gone on with, only what waits already is, and not for long."""
        if not self._thread.is_alive():
            return
        with self._changed:
            if not self._saved:
                self._waiting.extend(self._grouping.all())
            self._closed = True
            self._changed.notify_all()
        self._thread.join(PATIENCE if self._saved else None)
        self._action.close()

    def _notify_one_by_one(self) -> None:
        while (notice := self._next()) is not None:
            try:
                self._action.notify(notice.key, notice.record, _encode(notice.record))
            except Exception as error:  # whatever it is, the next one is told
                reason = error.diagnostics[0].message if isinstance(error, CoincideError) else error
                log.warning("a detection of '%s' was not told to %s: %s", notice.record["type"], self._action.name, reason)
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()

    def _next(self) -> Notice | None:
        """When there is one; None: there will be none."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                now = time.monotonic()
                self._waiting.extend(self._grouping.due(now))
                if not self._waiting:
                    wakes = self._grouping.wakes_at()
                    self._changed.wait(None if wakes is None else wakes - now)
            return self._waiting[0]


def action_sinks(asked: Sequence[tuple[str, str]], every: float, by: Sequence[str], made: Sequence[str]) -> list[Sink]:
    """For pairs of a pattern of types and an action. `made` are the types that rules make: a pattern must be like one."""
    for pattern, _ in asked:
        if not any(fnmatchcase(name, pattern) for name in made):
            hint = nearest(pattern, made) or f"they make: {', '.join(sorted(made))}"
            raise CoincideError(Diagnostic(f"no rule makes detections of the type '{pattern}'", hint=hint))
    return [
        ActionSink(pattern, open_action(target), Grouping(every, by), f"on:{number}:{pattern} {target}")
        for number, (pattern, target) in enumerate(asked)
    ]


class action:
    """An action as a callback of an engine, `engine.on("alarm", coincide.action("mailto:ops@example.org", every="5 min"))`: a
    URL (`http(s)://…`, `mailto:…`, `alertmanager+http(s)://…`), or a command with its arguments, which gets the detection as
    JSON on its standard input. After one, further detections of the type (and of equal values of the attributes `by`) are
    told as one, `every` so often. Detections are told by a thread; `close`, or the end of a `with`, waits for it."""

    def __init__(self, target: str, *, every: Duration = 0, by: Sequence[str] = ()) -> None:
        self._sink = ActionSink("*", open_action(target), Grouping(duration_microseconds(every) / SECOND, by))
        self._sink.open(None)

    def __call__(self, detection: dict[str, Any]) -> None:
        key = detection.get("_key") or blake2b(_encode(detection), digest_size=8).hexdigest()
        self._sink.add(str(key), detection)

    def close(self) -> None:
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
