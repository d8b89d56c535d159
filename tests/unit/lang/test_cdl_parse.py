"""What is refused and with which words, what is warned about, versions and digests."""

from __future__ import annotations

import pytest

from coincide.errors import RuleError
from coincide.lang.cdl.parse import parse
from coincide.rulebook import Rulebook, load, loads
from coincide.source import SourceText

PLAIN = {
    "head": 'id="c"',
    "providers": "",
    "sources": '<source class="a" anchor="A"><attribute name="x" type="int"/><attribute name="s" type="string"/></source>'
    '<source class="b" anchor="B"><attribute name="x" type="int"/></source>'
    '<collection class="g" anchor="G"><attribute name="y" type="int"/></collection>',
    "computations": "",
    "predicates": '<predicate name="greater" anchor="P">A.x, 0</predicate>',
    "expressions": '<expression anchor="X">P</expression>',
    "events": '<event class="e"/>',
    "preferences": "",
}
ORDER = ("providers", "sources", "computations", "predicates", "expressions", "events", "preferences")


def cd(**parts: str) -> str:
    given = PLAIN | parts
    sections = (f"<{name}>{given[name]}</{name}>" for name in ORDER if given[name])
    return f"<cd {given['head']}>{''.join(sections)}</cd>"


def book(*texts: str) -> Rulebook:
    return load(*(SourceText(f"{n}.cdl.xml", text) for n, text in enumerate(texts)))


def test_the_plain_one_is_accepted() -> None:
    assert len(parse(SourceText("r.cdl.xml", cd())).descriptions) == 1


TIME = '<source class="a" anchor="A"><attribute name="x" type="int"/></source>'
MEMBERS = '<collection class="g" anchor="G"><attribute name="y" type="int"><filter>{}</filter></attribute></collection>'


def predicate(content: str, name: str = "") -> dict[str, str]:
    given = f' name="{name}"' if name else ""
    return {"predicates": f'<predicate{given} anchor="P">{content}</predicate>'}


def expression(*logic: str) -> dict[str, str]:
    return {"expressions": "".join(f'<expression anchor="X{n or ""}">{text}</expression>' for n, text in enumerate(logic))}


def computation(content: str, anchor: str = "C") -> dict[str, str]:
    return {"computations": f'<computation type="int" anchor="{anchor}">{content}</computation>'}


def provider(given: str) -> dict[str, str]:
    return {"providers": f'<provider name="p" href="x" {given}/>'}


def time(content: str, trigger: str = "A") -> dict[str, str]:
    return {"sources": f'{TIME}<time anchor="T" trigger="{trigger}">{content}</time>'}


ERRORS = [
    ({"head": 'id="c" colour="red"'}, "<cd> has no attribute 'colour'"),
    ({"head": ""}, "<cd> needs the attribute 'id'"),
    ({"head": 'id="c" version="1.x"'}, "'version' is not dotted whole numbers: 1.x"),
    ({"head": 'id="c" disjoint="yes"'}, "'yes' is not a value of type boolean"),
    ({"sources": ""}, "cd 'c' has no sources"),
    ({"expressions": ""}, "cd 'c' has no expressions"),
    ({"events": ""}, "cd 'c' has no events"),
    ({"sources": "text"}, "<sources> mixes text and elements"),
    (predicate(""), "<predicate> is empty"),
    (predicate("A.x &gt; 0, A.x"), "<predicate> holds more than one value"),
    (predicate("<valu>3</valu>"), "unknown element <valu>"),
    (predicate("<source/>"), "<source> is not allowed in <predicate>"),
    (predicate('<value type="int">3.5</value>', "less"), "'3.5' is not a value of type int"),
    (predicate('<value type="number">3</value>', "less"), "unknown type 'number'"),
    (predicate('<call method="f"/>', "less"), "unknown function 'f'"),
    (predicate('<add><ref anchor="A.x"/></add>', "less"), "<add> takes 2 or more values, not 1"),
    (predicate("f(A.x)"), "unknown function 'f'"),
    (predicate("abs(A.x, 1) = 2"), "in <predicate>: wrong number of arguments of 'abs'"),
    (predicate("A.x + 1"), "predicate 'P' is not a condition"),
    (predicate("A.x between 1 and 'b'"), "a string is compared with a number"),
    (predicate("A.x in (1, 'b')"), "a string is compared with a number"),
    (predicate("A.s, B.x", "preferless"), "a string is compared with a number"),
    (predicate("lookup('p', 'c', A.x)", "holds"), "unknown provider 'p'"),
    (predicate("A.x, 1, 2", "notequal"), "predicate 'notequal' takes 2 arguments, not 3"),
    (predicate("sum(A.x) &gt; 2"), "'sum' must refer to one collection"),
    (predicate("G.y &gt; count(G)"), "a condition on members must refer to one collection and no aggregate"),
    (predicate("A.x + 1", "any"), "'any' takes one reference"),
    (predicate("A.x, B", "before"), "'before' takes sources"),
    (predicate("", "complete"), "predicate 'P' is for preferences only"),
    (expression("P and Q"), "unknown predicate 'Q'"),
    (expression("P = P"), "in <expression>: only names"),
    (expression("P", "P"), "<event> needs the attribute 'trigger'"),
    (expression("X"), "expression 'X' refers to itself"),
    ({"events": '<event class="e" trigger="P"/>'}, "unknown expression 'P'"),
    ({"preferences": "<preference><better>Z</better></preference>"}, "unknown expression 'Z'"),
    (computation("1", "A"), "anchor 'A' is defined twice"),
    (computation("1", "previous"), "'previous' cannot be an anchor"),
    (computation("other.A.x"), "for preferences only"),
    (provider('kind="ftp" key="k"'), "unknown kind of provider 'ftp'"),
    (provider('kind="csv"'), "<provider> needs the attribute 'key'"),
    (provider('kind="parquet" key="k"'), "cannot read 'x'"),
    (time("<relative>1</relative>", "Z"), "trigger 'Z' is not a source or time event of this cd"),
    (time("<relative>'x'</relative>"), "'relative' is not a duration: x"),
    (time(""), "<time> is empty"),
    (
        {"sources": TIME + MEMBERS.format("H.y = 1") + MEMBERS.format("1 = 1").replace('"G"', '"H"')},
        "a filter cannot refer to members",
    ),
]


@pytest.mark.parametrize(("parts", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_errors(parts: dict[str, str], message: str) -> None:
    with pytest.raises(RuleError) as caught:
        book(cd(**parts))
    assert message in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<rules/>", "the root element must be <cd> or <cds>, not <rules>"),
        ("<cds/>", "<cds> is empty"),
        (f"<cds>{cd()}{cd()}</cds>", "cd 'c' is defined twice"),
    ],
)
def test_errors_of_files(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        book(text)
    assert message in caught.value.diagnostics[0].message


def test_too_many_terms() -> None:
    predicates = "".join(f'<predicate anchor="P{n}">A.x = {n}</predicate>' for n in range(24))
    pairs = " and ".join(f"(P{n} or P{n + 1})" for n in range(0, 24, 2))
    with pytest.raises(RuleError, match="more than 1024 terms"):
        book(cd(predicates=predicates, expressions=f'<expression anchor="X">{pairs}</expression>'))


def test_computations_that_double_one_another_load_fast() -> None:
    chain = "".join(f'<computation type="int" anchor="C{n + 1}">C{n} + C{n}</computation>' for n in range(60))
    first = '<computation type="int" anchor="C0">A.x</computation>'
    book(cd(computations=first + chain, predicates='<predicate anchor="P">C60 &gt; 0</predicate>'))


def test_circles_of_several_descriptions_name_their_members() -> None:
    def link(name: str, reads: str, makes: str) -> str:
        sources = f'<source class="{reads}" anchor="A"><attribute name="x" type="int"/></source>'
        return cd(head=f'id="{name}"', sources=sources, events=f'<event class="{makes}"/>')

    with pytest.raises(RuleError, match="feed each other in a circle: one -> two -> one"):
        book(link("one", "z", "b"), link("two", "b", "z"))
    assert len(book(link("one", "z", "b"), link("two", "b", "y")).detectors) == 2


# Versions, digests


def test_a_higher_version_replaces_a_lower_one() -> None:
    versions = [cd(head=f'id="c" version="{v}"', events=f'<event class="v{n}"/>') for n, v in enumerate(("1.2", "1.10", "1"))]
    for loaded in (book(f"<cds>{''.join(versions)}</cds>"), book(*versions)):
        (detector,) = loaded.detectors
        assert detector.outputs == ("v1",)
        replaced = [w.message for w in loaded.warnings if w.name == "replaced"]
        assert replaced == [f"version {v} of cd 'c' is replaced by version 1.10" for v in ("1.2", "1")]


def test_equal_versions_in_two_files_are_an_error() -> None:
    with pytest.raises(RuleError, match="cd 'c' is defined twice"):
        book(cd(), cd(head='id="c" version="1.0"'))


def test_the_digest_knows_neither_version_nor_white_space() -> None:
    def digest(text: str) -> str:
        return loads(text, "cdl").detectors[0].digest

    assert digest(cd()) == digest(cd(head='version="7" id="c"').replace(", 0", ",   0").replace("><", ">\n  <"))
    assert digest(cd()) != digest(cd(head='id="d"'))
    assert digest(cd()) != digest(cd().replace(", 0", ", 1"))


# Warnings


def warned(text: str) -> list[tuple[str | None, str]]:
    return [(w.name, w.message) for w in book(text).warnings]


JOIN = '<predicate name="equal" anchor="P">A.x, B.x</predicate>'


def test_sources_that_nothing_bounds() -> None:
    message = "nothing bounds how long messages of '{}' are kept"
    found = warned(cd(predicates=JOIN))
    assert found == [("unused", "no term uses source 'G'"), *(("unbounded", message.format(s)) for s in "AB")]
    assert [name for name, _ in warned(cd(head='id="c" within="1h"', predicates=JOIN))] == ["unused"]
    (hint, _) = (w.hint for w in book(cd(predicates=JOIN)).warnings if w.name == "unbounded")
    assert hint is not None
    assert 'within="' in hint


def test_a_preference_for_one_of_equivalent_instances_bounds() -> None:
    predicates = (
        JOIN
        + '<predicate name="equivalent" anchor="E"/><predicate name="preferGreater" anchor="L">A.time, other.A.time</predicate>'
    )
    expressions = "".join(f'<expression anchor="{a}">{p}</expression>' for a, p in (("X", "P"), ("EQ", "E"), ("LATER", "L")))
    preferences = "<preference><other>EQ</other><better>LATER</better></preference>"
    event = '<event class="e" trigger="X"/>'
    found = warned(cd(predicates=predicates, expressions=expressions, preferences=preferences, events=event))
    assert found == [("unused", "no term uses source 'G'")]


def test_an_expression_that_is_never_true() -> None:
    contradicting = '<expression anchor="X">P and not P</expression>'
    found = warned(cd(head='id="c" within="1h"', predicates=JOIN, expressions=contradicting))
    assert found[0] == ("never", "expression 'X' is never true: each of its terms demands a predicate and its opposite")


def test_within_shorter_than_a_delay() -> None:
    sources = (
        TIME.replace('anchor="A"', 'anchor="A" within="5 s"') + '<time anchor="T" trigger="A"><relative>10 s</relative></time>'
    )
    found = warned(cd(sources=sources, predicates='<predicate name="any" anchor="P">T</predicate>'))
    assert ("within", "'A' is forgotten after 5000 ms, before time event 'T' is due") in found


# Keys


BY_SOURCE = JOIN.replace(".x", ".source")
OF_SOURCE = PLAIN["sources"].replace('"x" type="int"', '"source" type="string"')


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"predicates": JOIN}, ("x",)),
        ({"predicates": JOIN, "expressions": '<expression anchor="X">not P</expression>'}, None),
        ({"predicates": '<predicate anchor="P">A.x = B.x and A.x &gt; 1</predicate>'}, ("x",)),
        ({"predicates": '<predicate anchor="P">A.x = B.x or A.x &gt; 1</predicate>'}, None),
        ({"predicates": '<predicate anchor="P">count(G) &gt; 1</predicate>'}, None),
        ({"predicates": JOIN, "sources": PLAIN["sources"].replace('class="b"', 'class="b" duplicates="unchanged"')}, None),
        ({"predicates": JOIN, "sources": PLAIN["sources"].replace('"x" type="int"', '"x" type="int" optional="true"')}, None),
        ({"predicates": JOIN, "sources": PLAIN["sources"].replace('class="b"', 'class="b" duplicates="replay"')}, ("x",)),
        ({"predicates": BY_SOURCE, "sources": OF_SOURCE}, ("source",)),
        ({"predicates": BY_SOURCE, "sources": OF_SOURCE.replace('class="b"', 'class="b" duplicates="unchanged"')}, ("source",)),
        ({"predicates": BY_SOURCE, "sources": OF_SOURCE.replace('class="b"', 'class="b" duplicates="replay"')}, None),
    ],
)  # fmt: skip
def test_partition(changes: dict[str, str], expected: tuple[str, ...] | None) -> None:
    assert book(cd(**changes)).detectors[0].partition == expected
