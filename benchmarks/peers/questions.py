"""What is asked, and how each says it. Everybody's set of rows must be that of `loop`, which follows the words.

Siddhi has a stream for each type; Flink and Polars have one table `events`; rules read the file. Flink leaves out of `WITHIN`
what is exactly as far as it says, and Siddhi's timers come before the events of their instant: as times are whole
milliseconds, one more makes up for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.workload import END, Stream, flights, stream

Event = tuple[str, int, int, str, float]
"""Type, time, id, key, value."""
Row = tuple[Any, ...]
Told = Callable[[Mapping[str, Any]], Row]
"""A detection of ours -> its row."""

WITHIN = 10_000  # milliseconds
SOON = 1_000
LATE, REACH = 30, 6 * 3_600_000
RULES = 1_000


@dataclass(frozen=True)
class Question:
    words: str
    stream: Callable[[int], Stream]
    loop: Callable[[Iterable[Event]], Iterator[Row]]
    rules: Mapping[str, tuple[str, str, Told]]
    """Language -> ending of a file of rules, their text, and the row of a detection."""
    polars: Callable[[Any], Any]
    siddhi: str
    flink: str | None
    others: Mapping[str, str] = field(default_factory=dict)
    """Further contestants -> what their job asks."""


def origins(record: Mapping[str, Any]) -> Row:
    return tuple(map(int, record["from"]))


# A sequence


AMIT = """\
<amit>
  <event name="t0"><eventAttribute name="k" type="string"/></event>
  <event name="t1"><eventAttribute name="k" type="string"/></event>
  <event name="t2"><eventAttribute name="k" type="string"/></event>
  <lifespan name="within">
    <initiator><eventInitiator event="t0" correlate="add"/></initiator>
    <terminator><expirationInterval timeInterval="10 s"/></terminator>
    <keyBy attribute="k"/>
  </lifespan>
  <situation name="m" lifespan="within">
    <sequence repeatMode="once"><operandSequence event="t1"/><operandSequence event="t2"/></sequence>
    <situationAttribute name="a" type="string" expression="t0.id"/>
  </situation>
</amit>
"""
OPERA = "detect m = ([t0(k = ?x)], [t1(k = ?x)] [t2(k = ?x)]) T = 10s\n"
CLAUSE = """
    PARTITION BY k ORDER BY time
    MEASURES A.id AS a, B.id AS b, C.id AS c
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B Y* C) WITHIN 10 seconds
    DEFINE A AS A.type = 't0', X AS X.type <> 't1', B AS B.type = 't1', Y AS Y.type <> 't2', C AS C.type = 't2'
"""
THREE = "(SELECT * FROM events WHERE type IN ('t0', 't1', 't2'))"
ROWS = f"CREATE VIEW m AS SELECT * FROM {THREE} MATCH_RECOGNIZE ({CLAUSE});\n"
FLINK_SEQUENCE = """
SELECT a, b, c FROM (SELECT * FROM events WHERE `type` IN ('t0', 't1', 't2')) MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY ts
    MEASURES A.id AS a, B.id AS b, C.id AS c
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B Y* C) WITHIN INTERVAL '10.001' SECOND
    DEFINE A AS A.`type` = 't0', X AS X.`type` <> 't1', B AS B.`type` = 't1', Y AS Y.`type` <> 't2', C AS C.`type` = 't2'
)"""


def sequence_loop(events: Iterable[Event]) -> Iterator[Row]:
    waiting: dict[str, list[tuple[int, int, int]]] = defaultdict(list)  # time and id of t0, id of t1 or 0
    for kind, time, number, key, _ in events:
        if kind == "t0":
            waiting[key].append((time, number, 0))
        elif kind == "t1":
            waiting[key] = [(since, a, b or number) for since, a, b in waiting[key] if time - since <= WITHIN]
        elif kind == "t2":
            yield from ((a, b, number) for since, a, b in waiting[key] if b and time - since <= WITHIN)
            waiting[key] = [one for one in waiting[key] if not one[2]]


def of_type(events: Any, kind: str, name: str) -> Any:
    import polars as pl

    return events.filter(pl.col("type") == kind).select("k", *(pl.col(c).alias(f"{name}{c}") for c in ("time", "id", "v")))


def following(first: Any, before: str, others: Any, after: str) -> Any:
    """For each row the next of the others."""
    return first.sort(f"{before}time").join_asof(
        others,
        left_on=f"{before}time",
        right_on=f"{after}time",
        by="k",
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    )


def sequence_polars(events: Any) -> Any:
    import polars as pl

    pairs = following(of_type(events, "t0", "a"), "a", of_type(events, "t1", "b"), "b").drop_nulls("bid")
    found = following(pairs, "b", of_type(events, "t2", "c"), "c")
    return found.filter(pl.col("ctime") <= pl.col("atime") + WITHIN).select("aid", "bid", "cid")


SEQUENCE = Question(
    "t0, then t1, then t2 of one key within 10 s of the t0",
    stream,
    sequence_loop,
    {
        "Amit": (".amit.xml", AMIT, lambda record: (int(record["a"]), *origins(record))),
        "Opera": (".ce", OPERA, origins),
        "MATCH_RECOGNIZE": (".mr.sql", ROWS, lambda record: (int(record["a"]), int(record["b"]), int(record["c"]))),
    },
    sequence_polars,
    """partition with (k of t0, k of t1, k of t2) begin
      from every a=t0 -> b=t1 -> c=t2 within 10 sec select a.id as a, b.id as b, c.id as c insert into found;
    end;""",
    FLINK_SEQUENCE,
    {"MATCH_RECOGNIZE over a table": "table", "MATCH_RECOGNIZE on Spark": "spark"},
)


# What does not come


def absence_loop(events: Iterable[Event]) -> Iterator[Row]:
    waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for kind, time, number, key, _ in events:
        if kind == "t1":
            yield from ((a,) for since, a in waiting.pop(key, ()) if time - since > SOON)
        elif kind == "t0":
            waiting[key].append((time, number))
    yield from ((a,) for open_ in waiting.values() for _, a in open_)  # the last event is a minute later


def absence_polars(events: Any) -> Any:
    import polars as pl

    pairs = following(of_type(events, "t0", "a"), "a", of_type(events, "t1", "b"), "b")
    return pairs.filter(pl.col("btime").is_null() | (pl.col("btime") > pl.col("atime") + SOON)).select("aid")


ABSENCE = Question(
    "t0 that no t1 of its key follows within 1 s",
    stream,
    absence_loop,
    {"Opera": (".ce", "detect m = ([t0(k = ?k)], [T in {T, t1(k = ?k)}]) T = 1s\n", origins)},
    absence_polars,
    "from every a=t0 -> not t1[k == a.k] for 1001 milliseconds select a.id as a insert into found;",
    """
SELECT a.id FROM (SELECT * FROM events WHERE `type` = 't0') a LEFT JOIN (SELECT * FROM events WHERE `type` = 't1') b
ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND WHERE b.id IS NULL""",
)


# Windows of time: (0, 10 s], (10 s, 20 s] …


def windows_loop(result: Callable[[list[float]], float]) -> Callable[[Iterable[Event]], Iterator[Row]]:
    def loop(events: Iterable[Event]) -> Iterator[Row]:
        values: dict[tuple[str, int], list[float]] = defaultdict(list)
        for kind, time, _, key, value in events:
            if kind == "t0":
                values[key, (time - 1) // WITHIN + 1].append(value)
        yield from ((key, window, result(some)) for (key, window), some in values.items())

    return loop


def windows_polars(aggregate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def query(events: Any) -> Any:
        import polars as pl

        window = ((pl.col("time") - 1) // WITHIN + 1).alias("window")
        return events.filter(pl.col("type") == "t0").group_by("k", window).agg(aggregate(pl).alias("value"))

    return query


def windows(words: str, ours: str, name: str, theirs: str, result: Any, aggregate: Any) -> Question:
    none = 0 if name == "count" else None

    def told(record: Mapping[str, Any]) -> Row:
        """That there was none is told, too."""
        return (record["k"], record["time"][1] // WITHIN, record[name]) if record.get(name) != none else (END,)

    return Question(
        words,
        stream,
        windows_loop(result),
        {"ECCO": (".ecco", f"detect w per k = t0^{ours} over 10s give {name}, k\n", told)},
        windows_polars(aggregate),
        f"""from t0 select time - 1 as ts, k, v insert into shifted;
        from shifted#window.externalTimeBatch(ts, 10 sec, 0)
        select k, min(ts) / 10000 + 1 as w, {theirs} as value group by k insert into found;""",
        f"""
SELECT k, (MIN(`time`) - 1) / 10000 + 1, {theirs}
FROM TABLE(TUMBLE(TABLE shifted, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE `type` = 't0'
GROUP BY k, window_start, window_end""",
    )


COUNT = windows("how many t0 of each key in every 10 s", "COUNT", "count", "count(v)", len, lambda pl: pl.len())
AVERAGE = windows(
    "their average in every 10 s",
    "AVG(v)",
    "avg",
    "avg(v)",
    lambda some: sum(some) / len(some),
    lambda pl: pl.col("v").mean(),
)


# A join with an inequality


def join_loop(events: Iterable[Event]) -> Iterator[Row]:
    waiting: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for kind, time, number, key, value in events:
        if kind == "t0":
            waiting[key].append((time, number, value))
        elif kind == "t1":
            waiting[key] = [one for one in waiting[key] if time - one[0] <= WITHIN]
            yield from ((a, number) for _, a, least in waiting[key] if least < value)


def join_polars(events: Any) -> Any:
    import polars as pl

    a, b = of_type(events, "t0", "a"), of_type(events, "t1", "b")
    after = (pl.col("btime") > pl.col("atime")) & (pl.col("btime") <= pl.col("alast"))
    found = a.with_columns(alast=pl.col("atime") + WITHIN).join(b, on="k").filter(after & (pl.col("av") < pl.col("bv")))
    return found.select("aid", "bid")


CDL = """<cd id="m" version="1" within="10 s">
  <sources>
    <source class="t0" anchor="a"><attribute name="k" type="string"/><attribute name="v" type="double"/></source>
    <source class="t1" anchor="b"><attribute name="k" type="string"/><attribute name="v" type="double"/></source>
  </sources>
  <predicates>
    <predicate anchor="same">a.k = b.k</predicate>
    <predicate anchor="later">a.time &lt; b.time</predicate>
    <predicate anchor="greater">a.v &lt; b.v</predicate>
  </predicates>
  <expressions><expression anchor="all">same and later and greater</expression></expressions>
  <events><event class="m" trigger="all"><attribute name="k" type="string">a.k</attribute></event></events>
</cd>
"""
JOIN = Question(
    "every t0 with every t1 of its key within 10 s after it that has a greater v",
    stream,
    join_loop,
    {"CDL": (".cdl.xml", CDL, origins)},
    join_polars,
    """partition with (k of t0, k of t1) begin
      from t1 as b join t0#window.time(10001 milliseconds) as a on b.v > a.v and b.time - a.time <= 10000L
      select a.id as a, b.id as b insert into found;
    end;""",
    """
SELECT a.id, b.id FROM (SELECT * FROM events WHERE `type` = 't0') a, (SELECT * FROM events WHERE `type` = 't1') b
WHERE a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND AND b.v > a.v""",
)


# Many rules


STEPS = [f"u{number}" for number in range(RULES + 1)]


def many_loop(events: Iterable[Event]) -> Iterator[Row]:
    numbers = {kind: number for number, kind in enumerate(STEPS)}
    waiting: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for kind, time, number, key, _ in events:
        rule = numbers[kind]
        yield from ((rule - 1, a, number) for since, a in waiting.pop((rule - 1, key), ()) if time - since <= WITHIN)
        waiting[rule, key].append((time, number))


def many_polars(events: Any) -> Any:
    import polars as pl

    by_type = defaultdict(events.clear, events.partition_by("type", as_dict=True))
    found = []
    for rule in range(RULES):
        first, second = (of_type(by_type[STEPS[rule + n],], STEPS[rule + n], name) for n, name in enumerate("ab"))
        pairs = following(first, "a", second, "b").filter(pl.col("btime") <= pl.col("atime") + WITHIN)
        found.append(pairs.select(pl.lit(rule), "aid", "bid"))
    return pl.concat(found)


MANY = Question(
    f"{RULES:,} rules: u0, then u1 of one key within 10 s; u1, then u2; …",
    lambda events: stream(events, STEPS, 10),
    many_loop,
    {
        "Opera": (
            ".ce",
            "".join(f"detect m{n} = ([u{n}(k = ?k)], [u{n + 1}(k = ?k)]) T = 10s\n" for n in range(RULES)),
            lambda record: (int(record["type"][1:]), *origins(record)),
        )
    },
    many_polars,
    f"partition with ({', '.join(f'k of {kind}' for kind in STEPS)}) begin\n"
    + "".join(
        f"from every a=u{n} -> b=u{n + 1} within 10 sec select {n}L as rule, a.id as a, b.id as b insert into found;\n"
        for n in range(RULES)
    )
    + "end;",
    None,
)


# A year of flights


def flights_loop(events: Iterable[Event]) -> Iterator[Row]:
    waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for kind, time, number, key, delay in events:
        if delay <= LATE:
            continue
        if kind == "arrival":
            waiting[key].append((time, number))
        else:
            yield from ((a, number) for since, a in waiting.pop(key, ()) if time - since <= REACH)


def flights_polars(events: Any) -> Any:
    import polars as pl

    late = events.filter(pl.col("v") > LATE)
    pairs = following(of_type(late, "arrival", "a"), "a", of_type(late, "departure", "b"), "b")
    return pairs.filter(pl.col("btime") <= pl.col("atime") + REACH).select("aid", "bid")


FLIGHTS = Question(
    f"flights from New York in 2013: an aircraft arrives more than {LATE} min late, and departs so within 6 h",
    flights,
    flights_loop,
    {"Opera": (".ce", f"detect m = ([arrival(k = ?k, v > {LATE})], [departure(k = ?k, v > {LATE})]) T = 6h\n", origins)},
    flights_polars,
    f"""partition with (k of arrival, k of departure) begin
      from every a=arrival[v > {LATE}] -> b=departure[v > {LATE}] within 6 hour select a.id as a, b.id as b insert into found;
    end;""",
    f"""
SELECT a, b FROM (SELECT * FROM events WHERE v > {LATE}) MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY ts
    MEASURES A.id AS a, B.id AS b
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B) WITHIN INTERVAL '6:00:00.001' HOUR TO SECOND
    DEFINE A AS A.`type` = 'arrival', X AS X.`type` = 'arrival', B AS B.`type` = 'departure'
)""",
)

QUESTIONS = {
    "K": SEQUENCE,
    "absence": ABSENCE,
    "count": COUNT,
    "average": AVERAGE,
    "join": JOIN,
    "many": MANY,
    "flights": FLIGHTS,
}
