"""What the server of a studio answers, and to whom."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from studio_support import client, running, write_folder

from coincide.studio.lanes import BUCKETS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("studio")
    (top / "secret.say").write_text("Report secret when a.")
    made = write_folder(top / "work")
    (made / "link.say").symlink_to(top / "secret.say")
    return made


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[httpx.Client]:
    with running(folder, "guessing.say", "--events", "logins.jsonl") as link, client(link) as made:
        yield made


def run(studio: httpx.Client) -> dict[str, Any]:
    studio.post("/api/run", json={}).raise_for_status()
    end = time.monotonic() + 180
    while time.monotonic() < end:
        told: dict[str, Any] = studio.get("/api/run").json()
        if told["ended"]:
            return told
        time.sleep(0.05)
    raise AssertionError("the run does not end")


def test_nobody_without_the_token_is_answered(studio: httpx.Client) -> None:
    for path in ("/api/session", "/api/run", "/api/file?name=guessing.say"):
        assert httpx.get(f"{studio.base_url}{path}").status_code == 401
    other = httpx.get(f"{studio.base_url}/api/session", headers={"Authorization": "Bearer wrong"})
    assert other.status_code == 401
    assert studio.get("/api/session", headers={"Origin": "http://elsewhere.example"}).status_code == 403


def test_the_page_loads_nothing_from_elsewhere(studio: httpx.Client) -> None:
    page = httpx.get(str(studio.base_url))
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert f'content="{nonce}"' in page.text
    assert "@nonce@" not in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert httpx.get(str(studio.base_url)).headers["content-security-policy"] != policy


@pytest.mark.parametrize(
    "name", ["../secret.say", "/etc/passwd", "link.say", "..", "", "a\0b.say", ".hidden.say", "logins.jsonl"]
)
def test_only_rules_below_the_folder_are_read_and_written(studio: httpx.Client, folder: Path, name: str) -> None:
    assert studio.get("/api/file", params={"name": name}).status_code == 422
    assert studio.post("/api/change", json={"name": name, "text": "x"}).status_code == 422
    assert studio.post("/api/new", json={"name": name}).status_code == 422
    assert (folder.parent / "secret.say").read_text() == "Report secret when a."


def test_errors_stand_at_their_places(studio: httpx.Client) -> None:
    text = studio.get("/api/file", params={"name": "guessing.say"}).json()["text"]
    wrong = text.replace("followed by", "folowed by")
    told = studio.post("/api/change", json={"name": "guessing.say", "text": wrong}).json()
    assert told["valid"] is False
    (first, *_) = told["diagnostics"]
    assert (first["file"], first["line"], first["severity"]) == ("guessing.say", 2, "error")
    assert wrong[first["start"] :].startswith("folowed")
    assert studio.post("/api/run", json={}).status_code == 422
    assert studio.post("/api/change", json={"name": "guessing.say", "text": text}).json()["valid"] is True


def test_a_file_that_is_not_run_is_checked_too(studio: httpx.Client, folder: Path) -> None:
    (folder / "aside.ecl").write_text("monitor m = push(p) { a }")
    told = studio.post("/api/change", json={"name": "aside.ecl", "text": "monitor m = pusch(p) { a }"}).json()
    assert told["valid"] is True
    assert [each["file"] for each in told["diagnostics"]] == ["aside.ecl"]
    told = studio.post("/api/change", json={"name": "aside.ecl", "text": "monitor m = push(p) { a }"}).json()
    assert not [each for each in told["diagnostics"] if each["severity"] == "error"]


def test_a_run_and_what_led_to_a_detection(studio: httpx.Client) -> None:
    told = run(studio)
    assert (told["detections"], told["lanes"]) == (20, [["guessed", 20]])
    page = studio.get("/api/detections", params={"first": 3, "limit": 2}).json()
    assert (page["total"], [d["number"] for d in page["detections"]]) == (20, [3, 4])
    causes = studio.get("/api/causes", params={"number": 3}).json()["causes"]
    assert [part["record"]["user"] for part in causes["parts"]] == ["eve3"] * 4
    (event,) = [studio.get("/api/event", params={"row": causes["parts"][0]["row"]}).json()]
    assert event["record"] == causes["parts"][0]["record"]


def test_tiles_and_single_events(studio: httpx.Client) -> None:
    told = studio.get("/api/session").json()["events"]
    first, last = told["span"]
    level = 26
    tiles = range(first >> (level + 8), (last >> (level + 8)) + 1)
    answers = [studio.get("/api/tile", params={"level": level, "index": index}).content for index in tiles]
    counts = sum(np.frombuffer(data, np.uint32).reshape(-1, BUCKETS).sum(axis=1) for data in answers)
    assert [[name, int(n)] for (name, _), n in zip(told["lanes"], counts, strict=True)] == told["lanes"]
    own = studio.get("/api/marks", params={"from": first, "to": last, "filter": "user=eve3"}).json()["marks"]
    assert len(own[0]) == 4
    assert studio.get("/api/values", params={"name": "ok"}).json()["values"] == [["false", 100], ["true", 40]]


@pytest.mark.parametrize(
    "query", ["level=x&index=1", "level=-1&index=1", "level=99&index=1", "index=1", "level=1&index=99999999999999999999999"]
)
def test_what_is_no_tile_is_refused(studio: httpx.Client, query: str) -> None:
    assert studio.get(f"/api/tile?{query}").status_code == 400


def test_pictures_and_plan(studio: httpx.Client) -> None:
    picture = studio.get("/api/picture", params={"rule": "guessed", "automaton": "true"})
    assert 'data-node="S0"' in picture.text
    assert "<style" not in picture.text
    assert studio.get("/api/picture", params={"rule": "gessed"}).json()["hint"] == "did you mean 'guessed'?"
    (node,) = studio.get("/api/graph").json()["nodes"]
    assert (node["name"], node["key"], node["stage"]) == ("guessed", ["user"], 0)
    assert studio.get("/api/plan").json()["plan"].startswith("1 detector of 1 file")


def test_files_are_saved_and_made(studio: httpx.Client, folder: Path) -> None:
    studio.post("/api/new", json={"name": "more.ecl"}).raise_for_status()
    studio.post(
        "/api/change", json={"name": "more.ecl", "text": "monitor m = repeat { push(p) { transfer } }"}
    ).raise_for_status()
    assert not (folder / "more.ecl").exists()
    assert {f["name"]: f["changed"] for f in studio.get("/api/session").json()["files"]}["more.ecl"] is True
    studio.post("/api/save", json={"name": "more.ecl"}).raise_for_status()
    assert (folder / "more.ecl").read_text().startswith("monitor m")
    assert run(studio)["detections"] == 20 + 800
    studio.post("/api/load", json={"name": "more.ecl", "loaded": False}).raise_for_status()
    assert run(studio)["detections"] == 20
    assert studio.post("/api/new", json={"name": "more.ecl"}).status_code == 422


def test_what_an_editor_asks(studio: httpx.Client) -> None:
    text = studio.get("/api/file", params={"name": "guessing.say"}).json()["text"]
    tokens = studio.post("/api/tokens", json={"name": "guessing.say", "text": text}).json()["tokens"]
    kinds = {text[token["start"] : token["end"]]: token["kind"] for token in tokens}
    assert (kinds["Report"], kinds["login"]) == ("keyword", "event")
    half = "Report found when tra"
    offered = studio.post("/api/complete", json={"name": "guessing.say", "text": half, "offset": len(half)}).json()["completions"]
    (own,) = [each for each in offered if each["label"] == "transfer"]
    assert half[own["start"] : own["end"]] == "tra"
    where = "Report big when transfer where me"
    offered = studio.post("/api/complete", json={"name": "guessing.say", "text": where, "offset": len(where)}).json()[
        "completions"
    ]
    assert "megabytes" in [each["label"] for each in offered]
    told = studio.post("/api/hover", json={"name": "guessing.say", "text": text, "offset": text.index("followed") + 2}).json()
    assert "followed by" in told["text"]
    laid_out = studio.post("/api/format", json={"name": "guessing.say", "text": "Report   x   when login."}).json()["text"]
    assert laid_out == "Report x when login.\n"
    for path in ("tokens", "format"):
        assert studio.post(f"/api/{path}", json={"name": "../x.say", "text": ""}).status_code == 422
