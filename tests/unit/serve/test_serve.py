"""`coincide serve`, as a process: events posted, detections streamed, rules changed while it runs, an end in order."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serve_support import LINES, PAIR, Served, pair, refused, rules, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(rules(tmp_path_factory.mktemp("server")), "--max-body", "100000", "--clock", "event", "--delay", "1h") as running:
        yield running


def doors(found: list[dict[str, Any]]) -> list[str]:
    return [each["detection"]["door"] for each in found]


def test_events_are_posted_and_detections_streamed_from_an_id_on(tmp_path: Path) -> None:
    with served(rules(tmp_path)) as server:
        with server.http.stream("GET", "/detections/stream", params={"attribute": "door=b"}) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            assert server.post(*pair(1), *pair(3, "b"), *pair(5, "a")).status_code == 202
            data = next(line for line in lines if line.startswith("data: "))
            assert json.loads(data.removeprefix("data: "))["door"] == "b"
        found = server.until(lambda: len(made := server.made()) == 3 and made)
        assert doors(found) == ["a", "b", "a"]
        assert doors(server.made(after=found[0]["id"])) == ["b", "a"]
        assert server.made(type="other") == server.made(rule="twice") == []
        with server.http.stream("GET", "/detections/stream", headers={"Last-Event-ID": found[1]["id"]}) as stream:
            lines = stream.iter_lines()
            assert f"id: {found[2]['id']}" in [next(lines) for _ in range(3)]
        assert server.http.get("/detections", params={"after": "nothing"}).status_code == 410
        assert server.stop() == 0


def test_rules_change_and_the_others_keep_their_state(tmp_path: Path) -> None:
    file = rules(tmp_path)
    with served(file) as server:
        server.post(pair(1)[0])
        new = PAIR + "monitor opens = repeat { push(opened) { open } }\n"
        assert server.http.put(f"/rule-files/{file}", content=new, headers={"content-type": "text/plain"}).status_code == 200
        assert file.read_text() == new
        server.post({"type": "close", "time": 2, "door": "a"}, {"type": "open", "time": 3, "door": "b"})
        found = server.until(lambda: len(made := server.made()) == 2 and made)
        assert [each["rule"] for each in found] == ["pairs", "opens"]
        listed = server.http.post("/rules/opens/disable").json()["rules"]
        assert {rule["name"]: rule["enabled"] for rule in listed} == {"pairs": True, "opens": False}
        server.post({"type": "open", "time": 4, "door": "c"}, {"type": "close", "time": 5, "door": "b"})
        assert server.until(lambda: len(made := server.made()) == 3 and made)[-1]["detection"]["door"] == "b"
        wrong = server.http.put(f"/rule-files/{file}", content="monitor (", headers={"content-type": "text/plain"})
        assert (wrong.status_code, wrong.json()["diagnostics"][0]["line"]) == (422, 1)
        assert file.read_text() == new
        assert server.http.post("/rules/opened/enable").status_code == 404


def test_files_are_watched(tmp_path: Path) -> None:
    file = rules(tmp_path)
    with served(tmp_path) as server:
        server.post(pair(1)[0])
        file.write_text("monitor (")
        server.until(lambda: any(entry["event"] == "rules refused" for entry in server.logs))
        rules(tmp_path, "detect Both = [open] ; [close]", "both.ce")
        file.write_text("# the same\n" + PAIR)
        server.until(lambda: len(server.http.get("/rules").json()["rules"]) == 2)
        server.post({"type": "close", "time": 2, "door": "a"})
        assert server.until(server.made)[0]["rule"] == "pairs"


def test_a_rule_that_others_need_runs_on_in_silence(tmp_path: Path) -> None:
    file = rules(tmp_path, PAIR + "monitor twice = repeat { push(twice) { sequential { pair, pair } } }")
    with served(file, "--checkpoint", tmp_path / "kept") as server:
        server.http.post("/rules/pairs/disable")
        server.post(*pair(1), *pair(3))
        assert [each["rule"] for each in server.until(server.made)] == ["twice"]
        server.stop()
    with served(file, "--checkpoint", tmp_path / "kept") as server:
        assert [rule["enabled"] for rule in server.http.get("/rules").json()["rules"]] == [False, True]
        assert [each["rule"] for each in server.made()] == ["twice"]


@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.matrix), signal.SIGKILL])
def test_what_was_accepted_is_dealt_with_after_whatever_end(tmp_path: Path, how: int) -> None:
    out = tmp_path / "found.jsonl"
    options = (rules(tmp_path), "--out", out, "--checkpoint", tmp_path / "kept", "--checkpoint-every", "1h")
    with served(*options) as server:
        for number in range(20):
            assert server.post(*pair(number * 2, f"d{number}")).status_code == 202
        server.post({"type": "open", "time": 100, "door": "last"})
        assert server.stop(how) in (0, -how)
    with served(*options) as server:
        server.post({"type": "close", "time": 101, "door": "last"})
        found = server.until(lambda: len(made := server.made()) >= 21 and made)
        assert doors(found) == [*(f"d{number}" for number in range(20)), "last"]
        assert server.stop() == 0
    assert len(out.read_text().splitlines()) == 21


def test_detections_start_things_and_go_to_sinks(tmp_path: Path) -> None:
    told, base = tmp_path / "told.jsonl", tmp_path / "found.db"
    actions = ["--on", "pa*", f"tee -a '{told}'", "--on-every", "1h"]
    with served(rules(tmp_path), "--out", f"sqlite:///{base}#found", *actions) as server:
        server.post(*({"type": kind, "time": n, "door": "a"} for n, kind in enumerate(["open", "close"] * 5)))
        server.until(lambda: told.exists() and told.read_text().endswith("\n"))
        assert server.stop() == 0
    with sqlite3.connect(base) as found:
        assert found.execute("SELECT count(*) FROM found").fetchone() == (5,)
    assert [json.loads(line).get("_count") for line in told.read_text().splitlines()] == [None, 4]


def test_many_publish_at_once(tmp_path: Path) -> None:
    with served(rules(tmp_path), "--clock", "event", "--delay", "1h", "--rate", "0", "--checkpoint", tmp_path / "kept") as server:

        def publish(number: int) -> None:
            for turn in range(20):
                lines = [json.dumps(event) for event in pair(turn * 10, f"d{number}-{turn}")]
                server.http.post("/events", content="\n".join(lines), headers=LINES).raise_for_status()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(publish, range(8)))
        server.post({"type": "later", "time": 10_000_000})
        found = server.until(lambda: len(made := server.made()) == 160 and made)
        assert len(set(doors(found))) == 160
        assert 'coincide_events_total{source="posted"} 321' in server.http.get("/metrics").text


def test_time_passes_when_nothing_comes(tmp_path: Path) -> None:
    with served(rules(tmp_path, "detect Left = ([open(door = ?d)], [T in {T, close(door = ?d)}]) T = 1s", "left.ce")) as server:
        server.post({"type": "open", "time": 1000, "door": "a"})
        assert server.until(server.made)[0]["rule"] == "Left"


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.matrix)])
def test_the_first_rule_with_a_policy_comes_and_goes_and_others_keep_their_state(tmp_path: Path, how: int) -> None:
    file, options = rules(tmp_path), ("--checkpoint", tmp_path / "kept", "--checkpoint-every", "20ms")
    policy = "detect Both policy best-effort = [open] ; [close]\n"
    text = {"content-type": "text/plain"}
    with served(tmp_path, *options) as server:
        server.post(pair(1)[0], pair(1, "b")[0], pair(1, "c")[0], pair(1, "d")[0])
        assert server.http.put("/rule-files/both.ce", content=policy, headers=text).status_code == 200
        server.post(pair(2)[1], {"type": "open", "time": 9, "door": "z"})
        assert server.until(server.made)[0]["detection"]["door"] == "a"
        server.stop(how)
    with served(tmp_path, *options) as server:
        server.post(pair(10, "b")[1])
        found = server.until(lambda: len(made := server.made()) >= 3 and made)
        assert sorted(each["rule"] for each in found) == ["Both", "pairs", "pairs"]
        assert server.http.put("/rule-files/both.ce", content="", headers=text).status_code == 200
        server.post(pair(20, "c")[1])
        assert server.until(lambda: len(made := server.made()) >= 4 and made)[-1]["detection"]["door"] == "c"
        server.stop(how)
    with served(file, *options) as server:
        server.post(pair(30, "d")[1])
        assert server.until(lambda: len(made := server.made()) >= 5 and made)[-1]["detection"]["door"] == "d"


def test_policies_of_rules(tmp_path: Path) -> None:
    file = rules(tmp_path, "sources s, t\ndetect Both policy guaranteed = [open] ; [close]\n", "both.ce")
    with served(file, "--checkpoint", tmp_path / "kept") as server:
        opened, closed = pair(1)
        server.post({**opened, "source": "s"}, {**closed, "source": "s"}, {"type": "later", "time": 9, "source": "s"})
        server.until(lambda: 'coincide_events_total{source="posted"} 3' in server.http.get("/metrics").text)
        file.write_text(file.read_text() + "detect Opened policy best-effort = [open]\n")
        server.until(lambda: len(server.http.get("/rules").json()["rules"]) == 2)
        assert server.made() == []
        server.post({"type": "later", "time": 9, "source": "t"})
        assert [each["rule"] for each in server.until(server.made)] == ["Both"]
        assert server.stop() == 0


def test_metrics(server: Served) -> None:
    text = server.http.get("/metrics").text
    names = {line.partition(" ")[0].partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert {"coincide_events_late_total", "coincide_latency_seconds_bucket", "coincide_state_bytes", "coincide_up"} <= names
    assert all(float(line.rpartition(" ")[2]) >= 0 for line in text.splitlines() if not line.startswith("#"))


def test_pages(server: Served) -> None:
    assert "POST /events" in server.http.get("/", follow_redirects=True).text
    assert server.http.get("/health").json() == {"status": "alive"}
    assert server.http.get("/ready").status_code == 200


@pytest.mark.parametrize(
    ("given", "headers", "status"),
    [
        (b'{"type": "open"', {"content-type": "application/json"}, 400),
        (b'{"type": "open"}', {"content-type": "application/json"}, 422),
        (b'{"type": "open", "time": 1}\n{}', LINES, 422),
        (b'{"type": "open", "time": 1}', {"content-type": "text/plain"}, 415),
        (b"x" * 100_001, LINES, 413),
        (b"[]", {"content-type": "application/json", "origin": "http://elsewhere.example"}, 403),
        (b"[]", {"content-type": "application/json", "host": "rebound.example"}, 403),
        (b"[]", {"content-type": "application/json", "origin": "null"}, 403),
    ],
)
def test_what_is_not_taken_is_told(server: Served, given: bytes, headers: dict[str, str], status: int) -> None:
    answer = server.http.post("/events", content=given, headers=headers)
    assert (answer.status_code, bool(answer.json()["error"])) == (status, True)


def test_a_body_whose_length_is_not_told_is_limited_too(server: Served) -> None:
    answer = server.http.post("/events", content=iter([b"x" * 60_000, b"x" * 60_000]), headers=LINES)
    assert answer.status_code == 413


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with (
        served(rules(tmp_path), "--timeout", "100ms") as server,
        socket.create_connection((server.http.base_url.host, server.http.base_url.port or 80)) as client,
    ):
        client.sendall(
            b"POST /events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n["
        )
        client.settimeout(180)
        assert b" 408 " in client.recv(1000).partition(b"\r\n")[0]


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with served(rules(tmp_path), "--token-file", tmp_path / "token", token="secret") as server:
        assert server.http.get("/rules").status_code == 200
        assert server.http.get("/rules", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert server.http.get("/health", headers={"authorization": ""}).status_code == 200


def test_a_client_has_its_rate(tmp_path: Path) -> None:
    with served(rules(tmp_path), "--rate", "2", environment={**os.environ, "COINCIDE_TOKEN": "t"}, token="t") as server:
        answers = [server.http.get("/rules") for _ in range(8)]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert server.http.get("/ready").status_code == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "0.0.0.0:0"], "needs a token"),
        (["--listen", "nowhere"], "is not HOST:PORT"),
        (["--listen", "192.0.2.1:0", "--token-file", "{token}"], "cannot listen at 192.0.2.1:0"),
        (["--events", "day.jsonl"], "'day.jsonl' is not a stream"),
        (["--events", "nats://127.0.0.1:1/x", "--listen", "127.0.0.1:0"], "cannot reach 'nats://127.0.0.1:1'"),
        (["--delay", "x"], "--delay: "),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "token").write_text("secret")
    given = [option.format(token=tmp_path / "token") for option in options]
    assert message in refused(rules(tmp_path), *given)
