"""Which detectors run together."""

from coincide.engines.spark.description import explain_spark
from coincide.engines.spark.groups import groups
from coincide.rulebook import loads


def keys(text: str) -> list[tuple[tuple[str, ...] | None, tuple[str, ...]]]:
    return [(group.key, group.names) for group in groups(loads(text))]


def test_equal_keys_share_a_pass_in_any_order() -> None:
    text = """
    monitor a by k, l = push(x) { p }
    monitor b by m = push(y) { p }
    monitor c by l, k = push(z) { p }
    """
    assert keys(text) == [(("k", "l"), ("a", "c")), (("m",), ("b",))]


def test_detectors_that_feed_one_another_share_what_they_have_in_common() -> None:
    text = """
    monitor a by k, l = push(x) { p }
    monitor b by l, m = push(y) { x }
    monitor c by l = push(z) { p }
    """
    assert keys(text) == [(("l",), ("a", "b", "c"))]


def test_without_a_common_key_there_is_one_partition_and_a_reason() -> None:
    [group] = groups(loads("monitor a by k = push(x) { p } monitor b by l = push(y) { x }"))
    assert group.key is None
    assert group.reasons == ("'a', 'b' feed one another but share no key",)


def test_an_unkeyed_reader_takes_its_makers_along() -> None:
    text = "monitor a by k = push(x) { p } monitor b = push(y) { x } monitor c by k = push(z) { p }"
    found = groups(loads(text))
    assert [(g.key, g.names) for g in found] == [(None, ("a", "b")), (("k",), ("c",))]
    assert found[0].reasons == ("'b' has no key",)


def test_plans_of_a_group_keep_the_order_of_all_definitions() -> None:
    rules = loads("monitor a by k = push(x) { p } monitor b = push(y) { p } monitor c by k = push(z) { p }")
    [keyed, _] = groups(rules)
    assert keyed.members == (0, 2)
    assert [plan.definitions for plan in keyed.plans(rules)] == [("a", "c")]


def test_description_in_words() -> None:
    rules = loads("monitor a by k = push(x) { p and v > 1 } monitor b = push(y) { q }")
    assert explain_spark(rules).text() == "\n".join(
        [
            "scans: 1, for all groups",
            "exchanges: 1, in which an event goes to each group that wants it",
            "group 1",
            "    detectors: a",
            "    partitioned by: k",
            "    filter: type = 'p' and v > 1",
            "    columns: type, time, id, k, v",
            "group 2",
            "    detectors: b",
            "    in one partition: 'b' has no key",
            "    with ranges=N: in one task all the same: ranges are for rules in one stage, none of which has a key",
            "    filter: type = 'q'",
            "    columns: type, time, id",
        ]
    )


def test_stages_are_told() -> None:
    rules = loads("monitor a by k = push(x) { p } monitor b by l = push(y) { x }")
    for streaming in (False, True):
        text = explain_spark(rules, streaming=streaming).text()
        assert "exchanges: 2, one before each stage" in text
        assert "    stage: 2, reads what earlier stages detect\n    partitioned by: l" in text


def test_policies_need_one_partition() -> None:
    rules = loads("detect X policy guaranteed = [A(k = ?x)] ; [B(k = ?x)]\ndetect Y = [A]", "ce")
    assert explain_spark(rules).text() == "\n".join(
        [
            "scans: 1",
            "exchanges: 1",
            "group 1",
            "    detectors: X, Y",
            "    in one partition: stability policies go by the order of arrival",
            "    filter: none",
            "    columns: type, time, id, k, source, arrival",
        ]
    )


def test_row_patterns_are_spread_by_their_partitions() -> None:
    """Null is a partition like any other; queries that read each other's matches must meet."""
    query = "SELECT * FROM {0} MATCH_RECOGNIZE (PARTITION BY k, type MEASURES 1 AS one PATTERN (A) DEFINE A AS v > 1) AS {1}"
    alone = groups(loads(query.format("t", "m").replace("SELECT *", "SELECT k"), "matchrecognize"))
    assert [(group.key, group.null_keys) for group in alone] == [(("k",), True)]
    both = f"{query.format('t', 'm')}; {query.format('m', 'n')}".replace("SELECT *", "SELECT k, one")
    assert [group.key for group in groups(loads(both, "matchrecognize"))] == [None]
