"""The page in a real browser: load, edit with an error, run, zoom, click a detection, read its causes, replay, live run, export.

With COINCIDE_PICTURES=1 the screenshots that it makes become those of the docs."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from studio_support import FLAGS, browser_path, running, write_folder

if browser_path() is None:
    pytest.skip("the studio is not tried in a browser: there is no chromium (apt-get install chromium)", allow_module_level=True)
sync = pytest.importorskip("playwright.sync_api", reason="the studio is not tried in a browser: playwright is not installed")

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
WAIT = 60_000

Shoot = Callable[[Any, str], None]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync.sync_playwright() as play:
        made = play.chromium.launch(executable_path=browser_path(), args=list(FLAGS))
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("browser") / "logins", 60)


@pytest.fixture(scope="module")
def link(folder: Path) -> Iterator[str]:
    with running(folder, "guessing.say", "--events", "logins.jsonl") as made:
        yield made


def opened(browser: Any, link: str, troubles: list[str]) -> Any:
    """A page; whatever goes wrong in it, and whatever it asks of another machine, is noted."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(WAIT)
    here = link.partition("/#")[0]
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith((here, "blob:", "data:")) or troubles.append(asked.url))
    page.goto(link)
    return page


@pytest.fixture
def page(browser: Any, link: str) -> Iterator[Any]:
    troubles: list[str] = []
    made = opened(browser, link, troubles)
    made.wait_for_selector(".status :text('run in')")
    made.wait_for_selector(".status :text('60 detections')")
    yield made
    made.close()
    assert not troubles


@pytest.fixture
def shoot(tmp_path: Path) -> Shoot:
    folder = PICTURES if os.environ.get("COINCIDE_PICTURES") else tmp_path

    def taken(page: Any, name: str) -> None:
        page.wait_for_timeout(400)
        path = folder / f"studio-{name}.png"
        page.screenshot(path=str(path))
        assert path.stat().st_size > 10_000
        if folder is PICTURES:
            make_small(path)

    return taken


def make_small(path: Path) -> None:
    """With a palette: a third of the size, and no difference that anybody sees."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(192, dither=Image.Dither.NONE).save(path, optimize=True)


def pixels(page: Any) -> list[int]:
    """How much of each colour is on the line of time: of events, of detections, of what is lit."""
    return page.evaluate(
        """() => {
        const canvas = document.querySelector("canvas.timeline");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const style = getComputedStyle(document.documentElement);
        return ["--event", "--found", "--lit"].map((name) => {
            const hex = style.getPropertyValue(name).trim();
            const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
            let count = 0;
            for (let n = 0; n < data.length; n += 4) if (data[n] === r && data[n + 1] === g && data[n + 2] === b) count++;
            return count;
        });
    }"""
    )


def choose(page: Any, number: int) -> None:
    page.click("[data-tab=detections]")
    page.click(f"#detections [data-number='{number}'] button")
    page.wait_for_selector("#causes h3")


def test_the_page_shows_rules_events_and_detections(page: Any, shoot: Shoot) -> None:
    assert "Report guessed" in page.inner_text(".cm-content")
    page.wait_for_selector("#picture svg [data-node]")
    events, found, lit = pixels(page)
    assert events > 500
    assert found > 100
    assert lit == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.keyboard.press("Escape")
    shoot(page, "page")


def test_an_error_stands_in_its_place_and_goes(page: Any, folder: Path, shoot: Shoot) -> None:
    page.click(".cm-line >> nth=1")
    page.keyboard.press("End")
    page.keyboard.type(" xyzzy")
    page.wait_for_selector(".cm-lintRange-error")
    page.wait_for_selector(".status .bad")
    page.click("[data-tab=problems]")
    assert "guessing.say:2:" in page.inner_text("#problems")
    shoot(page, "error")
    page.click(".cm-line >> nth=1")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    page.wait_for_function("() => !document.querySelector('.cm-content').innerText.includes('xyz')")
    page.wait_for_selector(".status .good")


def test_completion_hover_and_colours(page: Any, shoot: Shoot) -> None:
    assert page.locator(".cm-content .tok-keyword").count() > 5
    page.hover(".cm-content .tok-keyword:has-text('followed')")
    page.wait_for_selector(".cm-tooltip .hover")
    page.click(".cm-line >> nth=3")
    page.keyboard.type("Report big when tra", delay=20)
    page.wait_for_selector(".cm-tooltip-autocomplete :text('transfer')")
    shoot(page, "completion")
    page.keyboard.press("Escape")
    for _ in range(30):
        page.keyboard.press("Control+z")
    page.wait_for_function("() => !document.querySelector('.cm-content').innerText.includes('big')")
    page.wait_for_selector(".status .good")


def test_blocks_write_text_and_follow_it(page: Any, shoot: Shoot) -> None:
    page.click("[data-tab=blocks]")
    page.wait_for_selector(".block.times .block.event")
    assert page.input_value(".block.times .block-count") == "3"
    shoot(page, "blocks")
    page.fill(".block.times .block-count", "2")
    page.keyboard.press("Enter")
    page.wait_for_selector(".status :text('180 detections')")  # bob fails twice, too
    page.focus(".block[data-path='1']")
    page.click("[data-kind=event]")
    page.wait_for_selector(".block.event >> nth=2")
    page.click("[data-tab=text]")
    for text in ("2 times", "followed by transfer"):
        page.wait_for_function("(text) => document.querySelector('.cm-content').innerText.includes(text)", arg=text)
    page.click(".cm-line >> nth=1")
    for _ in range(8):
        page.keyboard.press("Control+z")
    page.wait_for_function("() => document.querySelector('.cm-content').innerText.includes('3 times')")
    page.wait_for_selector(".status :text('60 detections')")
    page.click("[data-tab=blocks]")
    page.wait_for_function("() => document.querySelectorAll('.block.event').length === 2")
    assert page.input_value(".block.times .block-count") == "3"


def in_view(page: Any) -> float:
    """Seconds."""
    return float(page.evaluate("(({ from, to }) => (to - from) / 1e6)(document.querySelector('canvas.timeline').dataset)"))


@pytest.mark.matrix
def test_zoom_shows_single_events(page: Any) -> None:
    whole = in_view(page)
    box = page.locator("canvas.timeline").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    for _ in range(14):
        page.mouse.wheel(0, -120)
        page.wait_for_timeout(30)
    page.wait_for_function("() => document.querySelector('canvas.timeline').dataset.single === 'true'")
    assert in_view(page) < whole / 50
    page.click("#fit")
    page.wait_for_function("() => document.querySelector('canvas.timeline').dataset.single === 'false'")
    assert in_view(page) == pytest.approx(whole)


def test_a_click_on_a_detection_shows_its_causes(page: Any, shoot: Shoot) -> None:
    choose(page, 7)
    page.wait_for_function("() => document.querySelectorAll('#causes .cause-tree li').length === 4")
    text = page.inner_text("#causes")
    assert "eve7" in text
    assert "completes it" in text
    page.click("#zoom-to")
    page.wait_for_function("() => document.querySelector('canvas.timeline').dataset.single === 'true'")
    page.wait_for_timeout(600)
    assert in_view(page) == pytest.approx(20 * 1.5, rel=0.01)
    assert pixels(page)[2] > 200, "its events are lit"
    shoot(page, "causes")
    page.click("#theme")
    shoot(page, "dark")
    page.click("#theme")
    page.click("#causes .cause-tree li:first-child button")
    page.wait_for_selector(".event-box .event")


@pytest.mark.matrix
def test_a_click_on_the_line_of_time(page: Any) -> None:
    choose(page, 3)
    for _ in range(8):
        page.click("#zoom-in")
        page.wait_for_timeout(40)
    page.wait_for_timeout(700)
    box = page.locator("canvas.timeline").bounding_box()
    place = page.evaluate(
        """() => {
        const canvas = document.querySelector("canvas.timeline");
        const ratio = devicePixelRatio, data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const hex = getComputedStyle(document.documentElement).getPropertyValue("--found").trim();
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
        let [x, y] = [0, 0];
        for (let n = 0; n < data.length; n += 4) if (data[n] === r && data[n + 1] === g && data[n + 2] === b) {
            if ((n / 4) % canvas.width > x) [x, y] = [(n / 4) % canvas.width, Math.floor(n / 4 / canvas.width)];
        }
        return [x / ratio - 6, y / ratio];
    }"""
    )
    page.click("[data-tab=problems]")
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])
    page.wait_for_selector("#causes h3")
    assert "eve3" in page.inner_text("#causes")


def test_replay_forwards_and_back(page: Any, shoot: Shoot) -> None:
    page.click("#next-detection")
    page.wait_for_function("() => document.querySelector('.moment-place').textContent.startsWith('6 ')")
    page.click("#back")
    page.wait_for_function("() => document.querySelector('.moment-place').textContent.startsWith('5 ')")
    page.wait_for_selector("#picture .lit")
    page.click("[data-tab=under-way]")
    assert "eve0" in page.inner_text("#under-way")
    shoot(page, "replay")
    page.select_option("#speed", "100")
    page.click("#play")
    page.wait_for_function("() => Number(document.querySelector('#moment').value) > 40")
    page.click("#play")
    page.click("#first")
    page.wait_for_function("() => document.querySelectorAll('#picture .lit').length === 0")


def test_near_misses_on_demand(page: Any, shoot: Shoot) -> None:
    page.click("[data-tab=near]")
    page.fill("#near-key", "user=bob7")
    page.click("#ask-near")
    page.wait_for_selector("#near .misses")
    text = page.inner_text("#near")
    assert text.count("login") >= 3
    assert "✗" in text
    shoot(page, "near")
    page.fill("#near-key", "user=eve7")
    page.click("#ask-near")
    page.wait_for_selector("#near:has-text('It did')")


@pytest.mark.matrix
def test_detectors_and_statistics(page: Any, shoot: Shoot) -> None:
    page.click("[data-tab=graph]")
    page.wait_for_selector("#graph [data-rule=guessed]")
    page.click("[data-tab=statistics]")
    page.wait_for_selector("#statistics tbody tr")
    assert page.inner_text("#statistics tbody tr").split()[:3] == ["guessed", "pretty", "1"]
    page.click("[data-tab=plan]")
    page.wait_for_selector("#plan:has-text('1 detector of 1 file')")


@pytest.mark.matrix
def test_filters_by_key_and_type(page: Any) -> None:
    before = pixels(page)[0]
    page.fill("#filter", "user=eve5")
    page.keyboard.press("Enter")
    page.wait_for_timeout(800)
    assert 0 < pixels(page)[0] < before / 5
    page.fill("#filter", "")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)


@pytest.mark.brief(parameters=1)
@pytest.mark.parametrize("view", ["Timeline", "Rule", "Detectors", "Statistics"])
def test_views_are_exported(page: Any, view: str, tmp_path: Path) -> None:
    for form, begin in (("SVG", b"<svg "), ("PNG", b"\x89PNG")):
        with page.expect_download() as waiting:
            page.select_option("#export", f"{view} as {form}")
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        assert path.name == f"coincide-{view.lower()}.{form.lower()}"
        assert path.read_bytes().startswith(begin)
    text = (tmp_path / f"coincide-{view.lower()}.svg").read_text(encoding="utf-8")
    assert "guessed" in text
    assert "var(--" not in text


def test_what_is_expected_becomes_a_case(page: Any, folder: Path) -> None:
    page.click("[data-tab=detections]")
    page.click("#accept-all")
    page.wait_for_selector(".note:has-text('60 detections are expected')")
    page.once("dialog", lambda dialog: dialog.accept("accepted"))
    page.click("#case")
    page.wait_for_selector(".note:has-text('it passes')")
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "test", str(folder / "accepted")]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


@pytest.mark.matrix
def test_keys_alone_are_enough(page: Any) -> None:
    page.click("canvas.timeline", position={"x": 400, "y": 5})
    page.keyboard.press("n")
    page.wait_for_function("() => document.querySelector('.moment-place').textContent.startsWith('6 ')")
    page.keyboard.press(".")
    page.wait_for_function("() => document.querySelector('.moment-place').textContent.startsWith('7 ')")
    page.keyboard.press("?")
    page.wait_for_selector("dialog.help")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.help", state="detached")


def test_texts_of_others_stay_texts(browser: Any, tmp_path: Path) -> None:
    """Events, and rules of others, may say anything."""
    evil = "<img src=x onerror=alert(1)>"
    folder = write_folder(tmp_path / "evil", 1)
    records = [
        {"type": "login", "time": 1_000 + n, "user": evil, "ok": n == 3, "host": "<script>alert(2)</script>"} for n in range(4)
    ]
    (folder / "evil.jsonl").write_bytes(msgspec.json.Encoder().encode_lines([*records, {"type": evil, "time": 2_000}]))
    troubles: list[str] = []
    with running(folder, "guessing.say", "--events", "evil.jsonl") as link:
        page = opened(browser, link, troubles)
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.wait_for_selector(".status :text('1 detections')")
        choose(page, 0)
        assert evil in page.inner_text("#causes")
        page.click("[data-tab=statistics]")
        page.click("[data-tab=graph]")
        page.wait_for_selector("#graph [data-rule]")
        assert page.evaluate("document.querySelectorAll('img, #studio script').length") == 0
        page.close()
    assert not troubles


@pytest.fixture
def broker() -> Iterator[int]:
    """The port of a NATS server."""
    server = Path(sys.executable).parent / "nats-server"
    if not server.exists():
        pytest.skip("there is no nats-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(server), "-a", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield port
        process.terminate()


class Publisher:
    """As little of the protocol of NATS as it takes to publish."""

    def __init__(self, port: int, subject: str) -> None:
        self._subject = subject
        end = time.monotonic() + 180
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                time.sleep(0.1)
        self._socket.sendall(b'CONNECT {"verbose":false}\r\n')

    def publish(self, lines: list[str]) -> None:
        parts = [line.strip().encode() for line in lines]
        self._socket.sendall(b"".join(b"PUB %s %d\r\n%s\r\n" % (self._subject.encode(), len(part), part) for part in parts))


@pytest.mark.matrix  # live runs without a browser are in test_studio_run.py
def test_a_live_run(browser: Any, broker: int, tmp_path: Path, shoot: Shoot) -> None:
    folder = write_folder(tmp_path / "live", 4)
    every = (folder / "logins.jsonl").read_text().splitlines()
    lines = every[:141]
    publisher = Publisher(broker, "logins")
    troubles: list[str] = []
    with running(folder, "guessing.say", "--events", f"nats://127.0.0.1:{broker}/logins", "--clock", "event") as link:
        page = opened(browser, link, troubles)
        page.click("#run")
        page.wait_for_selector("#stop:visible")
        page.wait_for_timeout(1_500)  # until it has subscribed
        for begin in range(0, len(lines), 20):
            publisher.publish(lines[begin : begin + 20])
            time.sleep(0.2)
        page.wait_for_selector(f".status :text('live: {len(lines)} events have come')")
        page.wait_for_selector(".status :text-matches('[23] detections')")
        choose(page, 0)
        assert "eve0" in page.inner_text("#causes")
        page.wait_for_selector("#picture .lit")  # where it stands now
        shoot(page, "live")
        page.click("#look-back")
        page.wait_for_selector("#step:enabled")
        publisher.publish(every[141:])
        for _ in range(5):
            page.click("#step")
        page.wait_for_selector(".replay :text('5 / 141')")
        page.click("#back")
        page.wait_for_selector(".replay :text('4 / 141')")
        page.wait_for_selector("#picture .lit")
        shoot(page, "look-back")
        assert page.evaluate("document.querySelector('#studio').scrollWidth") <= page.viewport_size["width"]
        page.wait_for_selector(".status :text('live: 188 events have come')")
        assert "141 events" in page.inner_text(".status")
        page.click("#look-back")
        page.wait_for_selector(".status :text('188 events')")
        page.click("#stop")
        page.wait_for_selector(".status :text('run in')")
        page.wait_for_selector(".status :text('4 detections')")
        assert re.search(r"\b0 / 188\b", page.inner_text(".replay"))
        page.close()
    assert not troubles
