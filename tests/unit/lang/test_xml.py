"""XML with places, read safely."""

from __future__ import annotations

import pytest

from coincide.errors import RuleError
from coincide.lang.shared.xml import Element, parse_xml
from coincide.source import MAXIMUM_DEPTH, SourceText


def parsed(text: str) -> Element:
    return parse_xml(SourceText("f.xml", text))


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        parsed(text)
    return caught.value.diagnostics[0].head


def test_elements_have_places_also_behind_wide_characters() -> None:
    root = parsed('<a>\n  <!-- é --> é<b x="1 &lt; 2"/></a>')
    assert (root.name, root.text, root.children[0].attributes) == ("a", "é", {"x": "1 < 2"})
    assert (root.span.line, root.span.column) == (1, 1)
    assert (root.children[0].span.line, root.children[0].span.column) == (2, 15)
    assert root.children[0].span.text == '<b x="1 &lt; 2"/>'


def test_comments_instructions_and_a_byte_order_mark_are_passed_over() -> None:
    assert parsed('\ufeff<?xml version="1.0"?><?go on?><a><!-- <b/> --></a>') == parsed("<a/>")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a>\n <b>\n</a>", "f.xml:3:3: error: not well-formed XML: mismatched tag"),
        ("", "f.xml:1:1: error: not well-formed XML: no element found"),
        ('<a x="1" x="2"/>', "f.xml:1:10: error: not well-formed XML: duplicate attribute"),
        ("<a>&nbsp;</a>", "f.xml:1:4: error: not well-formed XML: undefined entity"),
        ("<a>\ud800</a>", "f.xml:1:4: error: not well-formed XML: not well-formed (invalid token)"),
    ],
)
def test_what_is_not_well_formed(text: str, reason: str) -> None:
    assert refusal(text) == reason


def test_entities_cannot_be_declared() -> None:
    laughs = '<!DOCTYPE a [<!ENTITY l "ha"><!ENTITY m "&l;&l;&l;">]><a>&m;</a>'
    assert "declarations in the document type are not allowed" in refusal(laughs)


@pytest.mark.parametrize("content", ['<a x="&no;"/>', "<a>&no;</a>"])
def test_a_document_type_is_never_fetched(content: str) -> None:
    system = '<!DOCTYPE a SYSTEM "file:///etc/passwd">'
    assert parsed(f"{system}<a/>") == parsed("<a/>")
    assert "undefined entity 'no'" in refusal(system + content)


def test_depth_is_bounded() -> None:
    assert f"nested more than {MAXIMUM_DEPTH} deep" in refusal("<a>" * (MAXIMUM_DEPTH + 1))
