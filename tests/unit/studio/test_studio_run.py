"""A run that can be gone through again: at every moment it is as if the run had come just there."""

from __future__ import annotations

from pathlib import Path

import pytest
from studio_support import logins, write_folder

import coincide
from coincide.draw.rules import drawing
from coincide.engines.embedded import Engine
from coincide.errors import InputError
from coincide.model.event import record
from coincide.studio import running
from coincide.studio.cases import write_case
from coincide.studio.files import Files
from coincide.studio.reasons import cause_of
from coincide.studio.running import Run
from coincide.studio.session import Session
from coincide.studio.store import opened
from coincide.studio.summary import moment_summary, statistics


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "work", 4)


@pytest.fixture
def session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(running, "LEAST", 7)
    made = Session(Files([str(folder / "guessing.say")]), {})
    made.open([str(folder / "logins.jsonl")])
    run = made.start()
    while not run.ended:
        pass
    assert not run.failure
    return made


def test_it_finds_what_detect_finds(session: Session, folder: Path) -> None:
    expected = coincide.detect(folder / "guessing.say", str(folder / "logins.jsonl"))
    assert [record(d) for d in session.last_run().detections] == expected
    assert len(expected) == 4


def test_every_moment_forwards_and_back(session: Session) -> None:
    run = session.last_run()
    assert len(run.snapshots) > 5
    engine, expected = Engine(run.book, "interpreter"), []
    for event in run.store.events(range(len(run.store))):
        expected.append(list(engine.graph.unfinished(engine.state)))
        engine.process(event)
    expected.append(list(engine.graph.unfinished(engine.state)))

    def look(at: Engine) -> list[object]:
        return list(at.graph.unfinished(at.state))

    moments = [*range(0, 90), *range(89, -1, -3), 5, 80, 6, len(run.store)]
    assert [run.state_at(moment, look) for moment in moments] == [expected[moment] for moment in moments]


def test_detections_stand_at_the_event_that_completes_them(session: Session) -> None:
    run = session.last_run()
    for detection, moment in zip(run.detections, run.moments, strict=True):
        (event,) = run.store.events([moment - 1])
        assert event.hi == detection.hi
        assert event.attributes["ok"] is True
        told = moment_summary(run, moment, "guessed")
        assert told["made"] == [run.detections.index(detection)]
    assert run.next_moment(0) == run.moments[0]
    assert run.next_moment(run.moments[-1]) is None


def test_the_picture_shows_where_matches_are(session: Session) -> None:
    run = session.last_run()
    before = moment_summary(run, run.moments[0] - 1, "guessed")
    assert before["lit"], "a match is under way before it is complete"
    assert sum(before["lit"].values()) == before["counts"]["guessed"]
    one = moment_summary(run, run.moments[0] - 1, "guessed", ("eve0",))
    assert 0 < sum(one["lit"].values()) < sum(before["lit"].values())
    assert moment_summary(run, 0, "guessed")["lit"] == {}


def test_causes_are_those_of_why(session: Session, folder: Path) -> None:
    found = coincide.detect(folder / "guessing.say", str(folder / "logins.jsonl"), why=True)
    assert [str(cause_of(session.last_run(), n)) for n in range(4)] == [str(coincide.why(each)) for each in found]


RULES = {
    "ecl": "monitor twice by user = repeat { push(twice) { sequential { login and ok = false, login and ok = true } } }",
    "eql": "sequence by user with maxspan=1m\n  [login where ok == false]\n  [login where ok == true]",
    "ecco": "detect twice per user = (login{ok = false} ; login{ok = true}) within 1min",
    "mr.sql": """
SELECT * FROM login MATCH_RECOGNIZE (
    PARTITION BY user ORDER BY time MEASURES LAST(B.time) AS at AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A{2,} B) DEFINE A AS A.ok = FALSE, B AS B.ok = TRUE) AS twice""",
    "cdl": """
<cd id="twice" version="1">
  <sources>
    <source class="login" anchor="F"><attribute name="user" type="string"/><attribute name="ok" type="boolean"/></source>
    <source class="transfer" anchor="T"><attribute name="user" type="string"/></source>
  </sources>
  <predicates><predicate name="before" anchor="order">F, T</predicate></predicates>
  <expressions><expression anchor="X">order</expression></expressions>
  <events><event class="moved" trigger="X"/></events>
</cd>""",
    "amit": """
<amit>
  <event name="login"><eventAttribute name="user" type="string"/><eventAttribute name="ok" type="boolean"/></event>
  <lifespan name="minute">
    <initiator><eventInitiator event="login" correlate="ignore"/></initiator>
    <terminator><expirationInterval timeInterval="1 min"/></terminator>
    <keyBy attribute="user"/>
  </lifespan>
  <situation name="twice" lifespan="minute">
    <sequence>
      <operandSequence event="login" as="a" threshold="ok = false"/>
      <operandSequence event="login" as="b" threshold="ok = true"/>
    </sequence>
  </situation>
</amit>""",
}


@pytest.mark.parametrize("language", list(RULES))
def test_causes_and_lights_of_other_languages(language: str, tmp_path: Path) -> None:
    book = coincide.loads(RULES[language], language)
    store = opened([str(write_folder(tmp_path, 3) / "logins.jsonl")])
    run = Run(book, store)
    run.go()
    expected = coincide.detect(book, logins(3), why=True)
    assert [str(cause_of(run, n)) for n in range(len(run.detections))] == [str(coincide.why(each)) for each in expected]
    assert moment_summary(run, 2, book.detectors[0].name)["lit"]


LIT = {
    "ecco": ("detect many per user = login{ok = false} ; (login{ok = false} as b) within 1min ; login{ok = true}", [5, 4, 0]),
    "ecco without": ("detect calm = (login - transfer) within 1h", [6, 0]),
    "ecco silence": ("detect still = login ; not transfer over 30s", [6, 0]),
    "ecco runs": ("detect run = login{ok = false}*{3} + transfer", [3, 0]),
    "mr.sql": (RULES["mr.sql"], [0, 0, 1, 1]),
    "cdl": (RULES["cdl"], [6, 0]),
}


@pytest.mark.parametrize("name", list(LIT))
def test_how_much_stands_at_each_event_of_the_picture(name: str, tmp_path: Path) -> None:
    """When two users have failed, three times and twice, and the first of them has succeeded."""
    text, expected = LIT[name]
    book = coincide.loads(text, name.partition(" ")[0])
    run = Run(book, opened([str(write_folder(tmp_path, 1) / "logins.jsonl")]))
    run.go()
    lit = moment_summary(run, 7 if name.startswith("ecco") else 6, book.detectors[0].name)["lit"]
    drawn = drawing(book.detectors[0])
    assert drawn is not None
    assert [lit.get(node.name, 0) for node in drawn.nodes if node.shape in ("event", "state")] == expected


def test_statistics(session: Session) -> None:
    (line,) = statistics(session)
    assert line["rule"] == "guessed"
    assert (line["detections"], line["keys"], line["stage"]) == (4, 4, 1)
    assert line["reads"] == 4 * 7


def test_what_is_expected_becomes_a_case(session: Session, folder: Path) -> None:
    session.accepted.update(range(4))
    made = write_case(session, "case")
    assert made == {"folder": "case", "events": len(session.store), "expected": 4, "passed": True, "problems": []}
    assert {path.name for path in (folder / "case").iterdir()} == {"rules.say", "events.jsonl", "expected.jsonl"}
    session.accepted.discard(0)
    again = write_case(session, "case")
    assert (again["expected"], again["passed"]) == (3, False)
    assert again["problems"][0].startswith("+")


def test_a_stretch_of_time_becomes_a_case(session: Session) -> None:
    session.accepted.update(range(4))
    second = session.last_run().detections[1]
    made = write_case(session, "part", (second.lo, second.hi))
    assert (made["expected"], made["passed"]) == (1, True)
    assert made["events"] < 10


def test_a_case_replaces_nothing_else(session: Session, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not a case"):
        write_case(session, "mine")
    with pytest.raises(InputError, match="not below the folder"):
        write_case(session, "../elsewhere")
