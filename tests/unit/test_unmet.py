"""What rules read and no event has is told, with the nearest name that is there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import coincide
from coincide.adapters.frames import kinds_of
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.records import event_of
from coincide.adapters.seen import Seen
from coincide.errors import Diagnostic
from coincide.model.batch import EventBatch
from coincide.unmet import Unmet

EVENTS = [{"type": "login", "time": t, "user": "eve", "tries": t} for t in range(3)] + [
    {"type": "logout", "time": 9, "user": "eve"}
]

RULES = {
    "ecl": "monitor m by usr = repeat { push(found, n: trys) { logn } }",
    "ecco": "detect found per usr = logn as a where a.trys > 1 give n = a.trys",
    "opera": "detect found = [logn(usr = ?u, trys > 1)]",
    "pretty": '"Bad" means logn where trys > 1 and usr = \'eve\'.\nReport found when "Bad".',
    "amit": """<amit>
  <event name="logn"><eventAttribute name="trys" type="number"/><eventAttribute name="usr" type="string"/></event>
  <lifespan name="l"><initiator><eventInitiator event="logn"/></initiator><terminator><noTerminator/></terminator>
    <keyBy attribute="usr"/></lifespan>
  <situation name="found" lifespan="l"><operator>
    <atleast quantity="1"><operandAtleast event="logn" threshold="trys &gt; 1"/></atleast></operator></situation>
</amit>""",
    "cdl": """<cd id="found" version="1">
  <sources><source class="logn" anchor="A"><attribute name="trys" type="int"/>
    <attribute name="usr" type="string"/></source></sources>
  <predicates><predicate name="greater" anchor="P">A.trys, 1</predicate></predicates>
  <expressions><expression anchor="X">P</expression></expressions>
  <events><event class="found" trigger="X"/></events>
</cd>""",
}


def told(rules: str, language: str, events: list[dict[str, Any]] = EVENTS) -> dict[str, Diagnostic]:
    seen = Seen()
    made = [event_of(e, DEFAULT, number) for number, e in enumerate(events, 1)]
    seen.add(EventBatch(made))
    columns = Seen()
    columns.add(EventBatch(table=EventBatch(made).table))
    assert (seen.types, +seen.attributes) == (columns.types, +columns.attributes)
    found = Unmet(coincide.loads(rules, language)).after(seen)
    return {diagnostic.message: diagnostic for diagnostic in found}


@pytest.mark.parametrize("language", RULES)
def test_every_language_tells_what_no_event_had_and_where_it_is_read(language: str) -> None:
    found = told(RULES[language], language)
    assert "no event had the type 'logn'; did you mean 'login' (3 events)?" in found
    assert any(m.endswith("'trys'; did you mean 'tries' (3 events)?") for m in found)
    assert any(m.endswith("'usr'; did you mean 'user' (4 events)?") for m in found)
    for name in ("logn", "trys", "usr"):
        (span,) = {d.span for m, d in found.items() if f"'{name}'" in m}
        assert span is not None
        assert name in span.source.line(span.line)


def test_what_rules_make_is_not_missed() -> None:
    assert not told(
        """monitor m by user = repeat { push(found, what: tries) { login } }
           monitor n by user = repeat { push(more, what: what) { found and what > 1 } }""",
        "ecl",
    )
    assert list(
        told("monitor m = repeat { push(a, x: nothing) { login } } monitor n = repeat { push(b) { a and x > y } }", "ecl")
    ) == [
        "no event had the attribute 'nothing'",
        "no event had the attribute 'y'",
    ]
    assert not told("let hot = login where tries > 1  detect many = hot*{2}  give count", "ecco")
    assert list(told("detect many = login ; logout  give count", "ecco")) == ["no event had the attribute 'count'"]


def test_what_was_there_is_named_where_nothing_is_near() -> None:
    (found,) = told("monitor m = repeat { push(x) { purchase } }", "ecl").values()
    assert found.hint == "types of events that were there: login, logout"


def test_a_name_that_differs_in_case_is_near() -> None:
    assert "no event had the type 'LOGIN'; did you mean 'login' (3 events)?" in told(
        "monitor m = repeat { push(x) { LOGIN } }", "ecl"
    )


def test_limits_are_read_too() -> None:
    found = told("limit logn per usr every 1h\ndetect found = [login]", "opera")
    assert [m.partition(";")[0] for m in found] == ["no event had the type 'logn'", "no event had the key 'usr'"]


def test_a_run_without_events_says_only_that() -> None:
    assert list(told(RULES["ecl"], "ecl", [])) == ["there were no events"]
    assert list(told(RULES["ecl"], "ecl", [{"type": "heartbeat", "time": 1}])) == ["there were no events"]


TEXTS = {
    "ecl": "monitor m = repeat { push(x) { login and user > 5 } }",
    "ecco": "detect x = login as a where a.user > 5",
    "opera": "detect x = [login(user > 5)]",
    "pretty": "Report x when login where user > 5.",
    "matchrecognize": "SELECT * FROM events MATCH_RECOGNIZE (ORDER BY time MEASURES COUNT(*) AS n PATTERN (A) "
    "DEFINE A AS type = 'login' AND A.user > 5)",
}
CLASH = "cannot compare a string with a number"


@pytest.mark.parametrize("language", TEXTS)
def test_texts_that_are_compared_with_numbers_are_told(language: str) -> None:
    found = told(TEXTS[language], language)
    assert [(m, d.hint) for m, d in found.items()] == [(CLASH, "'user' was a string in all events; such a comparison is null")]
    assert not told(TEXTS[language], language, [*EVENTS, {"type": "login", "time": 10, "user": 7}])


@pytest.mark.parametrize("language", TEXTS)
def test_a_type_that_is_compared_with_a_number_is_told(language: str) -> None:
    rules = TEXTS[language].replace("a.user", "a.type").replace("A.user", "type").replace("user", "type")
    assert told(rules, language)[CLASH].hint == "'type' is always a string; such a comparison is null"


@pytest.mark.parametrize("language", ["amit", "cdl"])
def test_values_of_another_kind_than_the_declared_one_are_told(language: str) -> None:
    right = RULES[language].replace("logn", "login").replace("usr", "user").replace("trys", "tries")
    assert not told(right, language)
    assert list(told(right, language, [{**event, "tries": "1"} for event in EVENTS])) == [
        "attribute 'tries' is a number to the rules, but 'tries' was a string in all events"
    ]


def test_what_the_columns_have_said_is_not_said_again_after_the_run() -> None:
    with pytest.warns(coincide.DataWarning) as caught:
        coincide.detect(coincide.loads(TEXTS["ecl"]), FRAME)
    assert [str(each.message).splitlines()[0].partition("warning: ")[2] for each in caught] == [CLASH]


EQL = "sequence by user [logn where true] [logout where true]"


def test_a_category_that_no_event_is_of_is_told() -> None:
    assert list(told(EQL, "eql")) == ["no event had the type 'logn'; did you mean 'login' (3 events)?"]
    other = EQL.replace("logn", "process")
    assert list(told(other, "eql")) == ["no event had the type 'process'"]
    assert not told(other, "eql", [*EVENTS, {"type": "x", "time": 9, "event.category": "process"}])


def test_times_in_another_unit_are_told_from_python_too() -> None:
    seconds = [{**event, "time": 1_767_225_600 + event["time"]} for event in EVENTS]
    rules = coincide.loads("monitor m = repeat { push(x) { login } }")
    for events in (seconds, pd.DataFrame(seconds)):
        with pytest.warns(coincide.DataWarning, match=r"all times lie in 1970, if they are taken as ms\n.*--time-unit s,"):
            assert len(coincide.detect(rules, events)) == 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            coincide.detect(rules, events, mapping=FieldMapping(unit="s"))


@pytest.mark.parametrize("live", [False, True])
def test_integers_that_lose_digits_are_told_from_python_too(live: bool) -> None:
    rules = coincide.loads("monitor m by k = repeat { push(p) { sequential { a, b } } }")
    records = [{"type": name, "time": n, "k": 2**63 + n, "unread": 2**64 + 1} for n, name in enumerate("ab")]
    with pytest.warns(coincide.DataWarning) as caught:
        assert len(list(coincide.run(rules, iter(records) if live else records))) == 1
    assert [str(each.message) for each in caught] == [
        "attribute 'k' has integers of more than 64 bits (1 of them), which lose digits: give them as text"
    ]


def test_a_type_for_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("type,time,user\nlogin,1,007\n")
    rules = coincide.loads("monitor m by user = repeat { push(x) { login } }")
    with pytest.warns(coincide.DataWarning, match="no event had the attribute 'usr'; did you mean 'user'"):
        coincide.detect(rules, tmp_path / "events.csv", mapping=FieldMapping(types=(("usr", "text"),)))


FRAME = pd.DataFrame(EVENTS)


@pytest.mark.parametrize("table", [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)], ids=["pandas", "polars", "arrow"])
def test_columns_of_a_table_are_checked_before_the_run(table: Any) -> None:
    rules = coincide.loads("monitor m by usr = repeat { push(x, n: trys) { login and user > 5 } }")
    with pytest.warns(coincide.DataWarning) as caught:
        assert coincide.detect(rules, table) == []
    texts = [str(each.message) for each in caught]
    assert [text.splitlines()[0] for text in texts] == [
        "rules.ecl:1:14: warning: the table has no column for the key 'usr'; did you mean 'user'?",
        "rules.ecl:1:40: warning: the table has no column for the attribute 'trys'; did you mean 'tries'?",
        "rules.ecl:1:63: warning: cannot compare a string with a number",
    ]
    assert {each.filename for each in caught} == {__file__}


def test_a_column_of_another_type_than_is_declared() -> None:
    rules = coincide.loads(RULES["amit"].replace("logn", "login").replace("usr", "user").replace("trys", "tries"), "amit")
    with pytest.warns(
        coincide.DataWarning, match="attribute 'user' is a string to the rules, but the column 'user' holds a number"
    ):
        coincide.detect(rules, FRAME.assign(user=5))


def test_where_all_is_there_nothing_is_told() -> None:
    rules = coincide.loads("monitor m by user = repeat { push(x, n: tries) { login and tries > 1 } }")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(coincide.detect(rules, FRAME)) == len(coincide.detect(rules, EVENTS)) == 1


def test_records_and_files_are_checked_when_they_have_gone_by(tmp_path: Any) -> None:
    rules = coincide.loads(RULES["ecl"])
    with pytest.warns(coincide.DataWarning, match="no event had the type 'logn'; did you mean 'login' \\(3 events\\)\\?"):
        coincide.detect(rules, EVENTS)
    with pytest.warns(coincide.DataWarning, match="there were no events"):
        coincide.detect(rules, [])


@pytest.mark.parametrize(
    ("language", "rules"),
    [
        ("ecl", "monitor m = repeat { do { push(x) { login } } unless { TYPE } }"),
        ("ecco", "detect x = login ; not TYPE over 5s"),
        ("ecco", "detect x = (login ; logout) - TYPE"),
        ("opera", "detect x = [!TYPE in {TYPE, login}]"),
    ],
)
def test_what_is_refused_is_told_only_if_there_is_something_like_it(language: str, rules: str) -> None:
    assert not told(rules.replace("{TYPE, login}", "login").replace("TYPE", "purchase"), language)
    assert "no event had the type 'logot'; did you mean 'logout' (1 event)?" in told(rules.replace("TYPE", "logot"), language)


def test_fields_of_structs_go_by_dotted_names() -> None:
    schema = pa.schema([("type", pa.string()), ("process", pa.struct([("name", pa.string()), ("pid", pa.int64())]))])
    assert kinds_of(schema, DEFAULT) == {"process": None, "process.name": "string", "process.pid": "number"}


def test_of_many_names_the_first_are_told_those_with_a_near_one_before_all() -> None:
    rules = "\n".join(f"monitor m{n} = repeat {{ push(x{n}) {{ zzz{n} }} }}" for n in range(300))
    found = list(told(rules + "\nmonitor last = repeat { push(y) { logn } }", "ecl"))
    assert len(found) == 21
    assert found[-1] == "and 281 more of the kind"
    rules = "\n".join(f"monitor m{n} = repeat {{ push(x{n}) {{ zzz{n} }} }}" for n in range(30))
    assert next(iter(told(rules + "\nmonitor last = repeat { push(y) { logn } }", "ecl"))).startswith(
        "no event had the type 'logn'"
    )


def test_a_field_that_is_the_type_by_the_mapping_is_no_attribute() -> None:
    """Where it went is more help than the name of another attribute."""
    events = [{"winlog": {"event_id": 4625, "event_data": 1}, "@timestamp": "2026-03-02T08:00:00Z"}]
    mapping = FieldMapping(type="winlog.event_id", time="@timestamp")
    rules = coincide.loads("detect found = `4625` as a where a.winlog.event_id > 1", "ecco")
    with pytest.warns(coincide.DataWarning) as caught:
        coincide.detect(rules, events, mapping=mapping)
    assert "by the mapping 'winlog.event_id' is the type of events, not an attribute" in str(caught[0].message)
    assert "rules read it as 'type'" in str(caught[0].message)
