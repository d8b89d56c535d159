"""What do equal rows cost where a rule could read them in many ways? 5,000 of them under `A+ B+` or its like, and each x each.

By the processor, in either tier, of a second run in one process; beside it the same rule over rows of which none concerns it,
as 5,000 rows cost something in any case. Where detections are pairs of all with all, the run is given an allowance and has to
stop with an error that names the rule."""

from __future__ import annotations

from time import process_time

from coincide import Engine, loads
from coincide.errors import RunError

ROWS, ALLOWED = 5_000, 10_000

_AMIT = """<amit><event name="a"/><event name="b"/><event name="go"/>
<lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
<situation name="s" lifespan="l">{}</situation></amit>"""
_CDL = """<cd id="s" version="1"><sources><source class="a" anchor="A"/><source class="b" anchor="B"/></sources>
<predicates><predicate anchor="SEQ">A.time &lt; B.time</predicate></predicates>
<expressions><expression anchor="X">SEQ</expression></expressions><events><event class="s" trigger="X"/></events></cd>"""
_EACH = (
    '<all><operandAll event="a" quantifier="each" retain="true"/><operandAll event="b" quantifier="each" retain="true"/></all>'
)
_ROWS = "SELECT * FROM a MATCH_RECOGNIZE (ORDER BY time MEASURES COUNT(*) AS n PATTERN ({}) DEFINE A AS v = 1, B AS v = 2) AS s"

RULES = {
    "EQL, runs": ("eql", "// @name s\nsequence [a where true] with runs=3 [a where true] with runs=3 [b where true]"),
    "EQL, sequence": ("eql", "// @name s\nsequence [a where true] [a where true] [a where true] [b where true]"),
    "ECL, repeat of repeat": ("ecl", "monitor m = repeat { push(s) { sequential { repeat { a }, repeat { a }, b } } }"),
    "Amit, sequence": ("amit.xml", _AMIT.format('<sequence><operandSequence event="a"/><operandSequence event="b"/></sequence>')),
    "Amit, each x each": ("amit.xml", _AMIT.format(_EACH)),
    "CDL, all pairs": ("cdl.xml", _CDL),
    "row pattern A+ B+": ("mr.sql", _ROWS.format("A+ B+")),
    "row pattern (A+)+ B+": ("mr.sql", _ROWS.format("(A+)+ B+")),
}


PAIRS = ("Amit, each x each", "CDL, all pairs")
INPUTS = {"others": "oo", "a": "aa", "a, then b": "ab"}


def events(kinds: str) -> list[dict[str, object]]:
    """Equal rows of one type, and as many of another."""
    return [{"type": kinds[number * 2 // ROWS], "time": number, "v": 1} for number in range(ROWS)]


def measured(name: str, tier: str, kinds: str) -> tuple[float, str]:
    """Seconds, and what became of it."""
    ending, text = RULES[name]
    rows, book = events(kinds), loads(text, ending)
    for _ in range(2):
        engine = Engine(book, tier, max_detections=ALLOWED if name in PAIRS else None)
        begun = process_time()
        try:
            made = f"{len(engine.process(rows)) + len(engine.finish()):,} detections"
        except RunError as error:
            made = f"refused: {error}".split("\n", maxsplit=1)[0]
        took = process_time() - begun
    return took, made


def main() -> None:
    print(f"\n{ROWS:,} equal rows, CPU seconds (aim: at most 0.05, or refused)")
    print(f"  {'':<24} {'':<12} " + " ".join(f"{name:>10}" for name in INPUTS))
    for name in RULES:
        for tier in ("interpreter", "kernel"):
            found = [measured(name, tier, kinds) for kinds in INPUTS.values()]
            print(f"  {name:<24} {tier:<12} " + " ".join(f"{took:>10.3f}" for took, _ in found) + f"  {found[-1][1]}", flush=True)


if __name__ == "__main__":
    main()
