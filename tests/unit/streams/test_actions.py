"""What detections start: commands, webhooks, mail, alerts; and storms of them."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from jsonschema import validate
from servers import Server, Site, free_port, until

import coincide
from coincide.errors import CoincideError
from coincide.streams.actions import ActionSink, open_action
from coincide.streams.base import Made
from coincide.streams.grouping import GROUPS, Grouping

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
PAIR = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }"
KEEP = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"


def keeping(file: Path, *more: str) -> str:
    """A command that adds its standard input to a file."""
    return " ".join([f"'{sys.executable}'", "-c", f'"{KEEP}"', f"'{file}'", *more])


def made(time: int, type: str = "alarm", **attributes: object) -> Made:
    return Made(f"k{time}", type, json.dumps({"type": type, "time": time, **attributes}).encode() + b"\n")


def told(target: str, *detections: Made, every: float = 0.0) -> None:
    sink = ActionSink("al*", open_action(target), Grouping(every))
    sink.open(None)
    sink.write(detections)
    sink.close()


def kept(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_command_gets_the_detection_as_its_standard_input_and_no_shell_reads_it(tmp_path: Path) -> None:
    file, other = tmp_path / "got.jsonl", tmp_path / "other"
    told(keeping(file, ";", "touch", str(other), "$(touch", f"{other})"), made(1, door="$(touch x)"), made(2, "quiet"), made(3))
    assert kept(file) == [{"type": "alarm", "time": 1, "door": "$(touch x)"}, {"type": "alarm", "time": 3}]
    assert not other.exists()


def test_what_fails_is_told_and_the_next_one_started(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "got.jsonl"
    fails = keeping(file).replace("write(sys.stdin.buffer.read())", "write(sys.stdin.buffer.read()); print('x'); sys.exit('no')")
    with caplog.at_level(logging.WARNING):
        told(fails, made(1), made(2))
    assert [record["time"] for record in kept(file)] == [1, 2]
    assert caplog.messages == [f"a detection of 'alarm' was not told to '{sys.executable}': it ended with 1 (no)"] * 2


def test_a_webhook_is_called_again_and_given_up_in_the_end(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.answers = [500, 502, 204, *[503] * 6, 503, 204, 400]
    with caplog.at_level(logging.WARNING, "coincide.actions"):
        told(f"{site.url}/hook/SECRET", *map(made, range(1, 7)))
    assert [headers["webhook-id"] for headers, _ in site.posted] == ["k1", "k4", "k6"]  # the third was tried once
    failed = [record.getMessage().rpartition(": ")[2] for record in caplog.records if record.name == "coincide.actions"]
    assert failed == ["it answers 503", "it answers 503", "it answers 400"]
    assert "SECRET" not in caplog.text


ALERTS = {  # postableAlerts of Alertmanager's openapi.yaml
    "type": "array",
    "items": {
        "type": "object",
        "required": ["labels"],
        "properties": {
            "labels": {"$ref": "#/$defs/labelSet"},
            "annotations": {"$ref": "#/$defs/labelSet"},
            "generatorURL": {"type": "string", "format": "uri"},
        },
    },
    "$defs": {"labelSet": {"type": "object", "additionalProperties": {"type": "string"}}},
}


def test_alerts_have_the_form_of_alertmanager(site: Site) -> None:
    told(f"alertmanager+{site.url}/", made(1, **{"door": "north", "open": True, "heat": 21.5, "host.name": "h", "2nd": "x"}))
    assert site.paths == ["/api/v2/alerts"]
    (_, body), *_ = site.posted
    alerts = json.loads(body)
    validate(alerts, ALERTS)
    assert alerts[0]["labels"] == {"alertname": "alarm", "door": "north", "open": "true", "host_name": "h", "_2nd": "x"}
    assert json.loads(alerts[0]["annotations"]["detection"])["heat"] == 21.5


@pytest.mark.skipif(shutil.which("prometheus-alertmanager") is None, reason="Alertmanager is not installed")
def test_alertmanager_takes_alerts(tmp_path: Path) -> None:
    (tmp_path / "conf.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    port = free_port()
    options = {"config.file": tmp_path / "conf.yml", "storage.path": tmp_path, "web.listen-address": f"127.0.0.1:{port}"}
    program = ["prometheus-alertmanager", *(f"--{name}={value}" for name, value in options.items()), "--cluster.listen-address="]
    server = Server(program, port)
    try:
        told(f"alertmanager+http://127.0.0.1:{port}", made(1, door="north"), made(2, door="south"))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/alerts", timeout=180) as answer:
            assert {alert["labels"]["door"] for alert in json.load(answer)} == {"north", "south"}
    finally:
        server.stop()


class Post:
    """A server of mail that keeps what it gets. It wants a password, and may be busy at first."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.busy = 0
        self.asked: list[tuple[bytes, bytes]] = []
        post = self

        class Keep(Message):
            def handle_message(self, message: Any) -> None:
                post.mails.append(message)

            async def handle_MAIL(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
                if post.busy:
                    post.busy -= 1
                    return "451 busy"
                envelope.mail_from = address
                return "250 OK"

        def known(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> Any:
            from aiosmtpd.smtp import AuthResult

            self.asked.append((data.login, data.password))
            return AuthResult(success=True)

        told: dict[str, Any] = {"authenticator": known, "auth_require_tls": False, "auth_exclude_mechanism": ["LOGIN"]}
        self.controller = Controller(Keep(), hostname="127.0.0.1", port=free_port(), **told)
        self.controller.start()
        self.url = f"smtp://127.0.0.1:{self.controller.port}"


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    made = Post()
    monkeypatch.setenv("SMTP_URL", made.url)
    monkeypatch.setenv("SMTP_FROM", "coincide@example.org")
    yield made
    made.controller.stop(no_assert=True)


def test_a_mail_is_sent_also_if_the_server_is_busy_at_first(post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("secret\n")
    monkeypatch.setenv("SMTP_USER", "me")
    monkeypatch.setenv("SMTP_PASSWORD_FILE", str(tmp_path / "password"))
    post.busy = 1
    told("mailto:ops@example.org,boss@example.org", made(7, door="Tür"))
    (mail,) = post.mails
    assert (mail["Subject"], mail["To"], mail["Message-ID"]) == (
        "coincide: alarm",
        "ops@example.org, boss@example.org",
        "<k7@coincide>",
    )
    assert json.loads(mail.get_payload(decode=True))["door"] == "Tür"
    assert post.asked[-1] == (b"me", b"secret")


def test_a_storm_is_one_mail(post: Post) -> None:
    told("mailto:ops@example.org?subject=Doors", *(made(time) for time in range(1, 1001)), every=60)
    first, rest = post.mails
    assert (first["Subject"], rest["Subject"]) == ("Doors", "Doors (999 times)")
    assert json.loads(rest.get_payload(decode=True)) == {"type": "alarm", "time": 1000, "_count": 999, "_since": 2}


def test_groups_are_told_apart_and_held_back_for_a_while() -> None:
    grouping = Grouping(10, ["door"])

    def add(time: int, door: str, now: float) -> list[tuple[object, ...]]:
        return shown(grouping.add(f"k{time}", {"type": "alarm", "time": time, "door": door}, now))

    def shown(notices: list[Any]) -> list[tuple[object, ...]]:
        return [(n.key, n.record["door"], n.record.get("_count"), n.record.get("_since")) for n in notices]

    assert add(1, "a", 0.0) == [("k1", "a", None, None)]
    assert add(2, "b", 1.0) == [("k2", "b", None, None)]
    assert add(3, "a", 2.0) == add(4, "a", 3.0) == add(5, "b", 9.0) == []
    assert grouping.wakes_at() == 10.0
    later = Grouping(10, ["door"])
    later.restore(json.loads(json.dumps(grouping.state(9.5))), 100.0)  # a restart: the while goes on
    assert shown(later.due(100.4)) == []
    assert shown(later.due(100.5)) == [("k4", "a", 2, 3)]
    assert shown(later.due(101.5)) == [("k5", "b", None, None)]
    assert shown(grouping.due(10.0)) == [("k4", "a", 2, 3)]
    assert add(6, "a", 12.0) == [("k5", "b", None, None)]  # it is told again when the while after the last notice is over
    assert shown(grouping.due(20.0)) == [("k6", "a", None, None)]
    assert shown(grouping.due(40.0)) == []
    assert grouping.wakes_at() is None


def test_groups_are_bounded() -> None:
    grouping = Grouping(10, ["user"])
    count = sum(len(grouping.add("k", {"type": "a", "time": n, "user": n}, 0.0)) for n in range(GROUPS + 10))
    assert count == GROUPS + 10
    assert len(grouping.state(0.0)) == GROUPS


def test_what_is_held_back_is_told_in_time_while_nothing_comes(tmp_path: Path) -> None:
    file = tmp_path / "got.jsonl"
    sink = ActionSink("*", open_action(keeping(file)), Grouping(0.2))
    sink.open(None)
    sink.write([made(1), made(2), made(3)])
    until(lambda: file.exists() and len(file.read_text().splitlines()) == 2)
    assert [record.get("_count") for record in kept(file)] == [None, 2]
    sink.close()


def test_what_is_held_back_at_a_checkpoint_is_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "got.jsonl"
    sink = ActionSink("*", open_action(keeping(file)), Grouping(0.3))
    sink.open(None)
    sink.write([made(1), made(2)])
    until(lambda: sink.commit()[1] == [])  # the first is told, the second held back
    position = json.loads(json.dumps(sink.commit()))
    assert len(kept(file)) == 1
    sink.close()
    later = ActionSink("*", open_action(keeping(file)), Grouping(0.3))
    later.open(position)
    until(lambda: len(kept(file)) == 2)
    later.close()
    assert [record["time"] for record in kept(file)] == [1, 2]


def test_a_checkpoint_does_not_wait_for_what_is_slow(tmp_path: Path) -> None:
    file, done = tmp_path / "got.jsonl", tmp_path / "done"
    wait = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    sink = ActionSink("*", open_action(f"'{sys.executable}' -c '{wait}' '{done}'"), Grouping())
    sink.open(None)
    sink.write([made(1), made(2)])
    position = json.loads(json.dumps(sink.commit()))
    later = ActionSink("*", open_action(keeping(file)), Grouping())
    later.open(position)
    later.close()
    assert [record["time"] for record in kept(file)] == [1, 2]
    done.touch()
    sink.close()


@pytest.mark.parametrize("source", ["file", "-"])
def test_the_command_line_starts_things(tmp_path: Path, source: str) -> None:
    rules, events, file = tmp_path / "pair.ecl", tmp_path / "doors.jsonl", tmp_path / "got.jsonl"
    rules.write_text(PAIR)
    events.write_text(
        "".join(f'{{"type": "{kind}", "time": {n}, "door": "a"}}\n' for n, kind in enumerate(["open", "close"] * 5))
    )
    command = [*RUN, "run", str(rules), "--events", str(events) if source == "file" else "-", "--on-every", "1h"]
    with events.open("rb") as lines:
        done = subprocess.run([*command, "--on", "pair", keeping(file)], stdin=lines, capture_output=True, check=True, timeout=99)
    assert done.stdout.count(b'"pair"') == 5
    assert [record.get("_count") for record in kept(file)] == [None, 4]
    if source == "file":
        subprocess.run([*command, "--out", f"sqlite:///{tmp_path}/found.db#found"], check=True, timeout=180)
        with sqlite3.connect(tmp_path / "found.db") as found:
            assert found.execute("SELECT count(*) FROM found").fetchone() == (5,)
    wrong = subprocess.run([*command, "--on", "pear", "cat"], capture_output=True, check=False, timeout=180)
    assert wrong.returncode == 2
    assert b"no rule makes detections of the type 'pear'" in wrong.stderr


def test_an_engine_starts_things(site: Site) -> None:
    engine = coincide.Engine(coincide.loads(PAIR))
    with coincide.action(f"{site.url}/hook", every="1h") as webhook:
        engine.on("pair", webhook)
        for time in range(0, 40, 2):
            engine.process([{"type": "open", "time": time, "door": "a"}, {"type": "close", "time": time + 1, "door": "a"}])
    assert [json.loads(body).get("_count") for _, body in site.posted] == [None, 19]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no-such-program --x", "there is no command 'no-such-program'"),
        ("", "the command is empty"),
        ("sh 'x", "no closing quotation"),
        ("mailto:nobody", "mailto:NAME@HOST"),
        ("https://me:secret@host/", "credentials belong in WEBHOOK_TOKEN"),
    ],
)
def test_what_is_wrong_is_told(target: str, message: str) -> None:
    with pytest.raises(CoincideError, match=message):
        open_action(target)
