"""Processing pipelines of pySigma (section 9): each rule is read by pySigma, changed by the pipeline, and written down again as
the rule that it is then, on the line where its document begins.

pySigma is under the LGPL 2.1: an extra that is called as it is, never a part of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coincide.errors import CoincideError, Diagnostic, RuleError, nearest
from coincide.lang.sigma.nodes import documents
from coincide.lang.sigma.print import written
from coincide.source import Reading, SourceText, Span

EVERY_EVENT = SourceText("pipeline", "logsources: [{}]")
"""A mapping that takes log sources for nothing: the pipeline has made conditions of them."""


@dataclass
class _Document:
    """One document of a file: as it was, and what has become of it."""

    data: Any
    span: Span
    rule: Any = None
    fault: str | None = None


@dataclass
class _File:
    source: SourceText
    documents: list[_Document] = field(default_factory=list)
    readable: bool = True


def piped(sources: Sequence[SourceText], names: Sequence[str], reading: Reading) -> list[SourceText]:
    """The files as the pipelines make them: names of those that are installed, or their files. Raises RuleError; where the
    reading keeps going, rules that are refused are left out, and told by the file's reading."""
    pipeline = _pipeline(names)
    files = [_read(source, reading.keep_going) for source in sources]
    everything = [document for file in files for document in file.documents]
    for document in everything:
        _attempt(document, _parse)
    _resolve(everything)
    for document in sorted(everything, key=lambda document: "correlation" in document.data):  # what they refer to goes first
        if document.fault is None:
            _attempt(document, lambda document: pipeline.apply(document.rule))
    return [_rewritten(file, reading) for file in files]


def _pipeline(names: Sequence[str]) -> Any:
    try:
        from sigma.exceptions import SigmaError, SigmaPipelineNotFoundError
        from sigma.plugins import InstalledSigmaPlugins
    except ImportError as error:
        hint = "pip install 'coincide[sigma]' brings pySigma"
        raise CoincideError(Diagnostic(f"processing pipelines need pySigma ({error})", hint=hint)) from error
    resolver = InstalledSigmaPlugins.autodiscover(include_backends=False, include_validators=False).get_pipeline_resolver()
    try:
        return resolver.resolve(list(names))
    except SigmaPipelineNotFoundError as error:
        known = list(resolver.pipelines)
        hint = nearest(error.spec, known) or f"installed are: {', '.join(known) or 'none'}; or give the path of a file"
        raise RuleError(Diagnostic(f"there is no pipeline '{error.spec}'", hint=hint)) from error
    except (SigmaError, ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise RuleError(Diagnostic(f"the pipeline cannot be read: {error}")) from error


def _read(source: SourceText, keep_going: bool) -> _File:
    import yaml

    try:
        nodes = documents(source)
    except RuleError:
        if not keep_going:
            raise
        return _File(source, readable=False)  # it is told when the file is parsed
    try:
        loaded = [data for data in yaml.load_all(source.text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if data is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise RuleError(Diagnostic(f"invalid YAML: {error}", source.span(0, 1))) from error
    found = [_Document(data, node.span) for data, node in zip(loaded, nodes, strict=True)]
    for document in found:
        if not isinstance(document.data, dict):
            raise RuleError(Diagnostic("a rule must be a mapping", document.span))
    return _File(source, found)


def _attempt(document: _Document, action: Callable[[_Document], Any]) -> None:
    """Whatever is wrong is told at the document: pySigma knows no places."""
    from sigma.exceptions import SigmaError

    try:
        action(document)
    except (SigmaError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
        document.fault = f"the pipeline refuses the rule: {' '.join(str(error).split())}"


def _parse(document: _Document) -> None:
    from sigma.correlations import SigmaCorrelationRule
    from sigma.rule import SigmaRule

    kind = SigmaCorrelationRule if "correlation" in document.data else SigmaRule
    document.rule = kind.from_dict(document.data)


def _resolve(everything: Sequence[_Document]) -> None:
    """Correlations must know their rules. Where one is not there, that is told when rules are linked."""
    from sigma.collection import SigmaCollection
    from sigma.exceptions import SigmaError

    fine = [document for document in everything if document.fault is None]
    collection = SigmaCollection([document.rule for document in fine], resolve_references=False)
    for document in fine:
        if "correlation" in document.data:
            try:
                document.rule.resolve_rule_references(collection)
            except SigmaError:
                document.rule = None


def _rewritten(file: _File, reading: Reading) -> SourceText:
    if not file.readable:
        return replace(file.source, reading=replace(reading, mapping=EVERY_EVENT))
    text, line = "", 1
    refused = []
    for document in file.documents:
        text, line = text + "\n" * (document.span.line - line), document.span.line
        try:
            rule = _written(document)
        except _Refused as refusal:
            if not reading.keep_going:
                raise RuleError(Diagnostic(str(refusal), document.span)) from None
            refused.append((line, str(refusal)))
            continue
        text += f"--- {rule}"
    made = replace(reading, mapping=EVERY_EVENT, refused=tuple(refused))
    return SourceText(file.source.name, text + "\n", made)


class _Refused(Exception):
    """A rule cannot be written as one of Sigma."""


def _written(document: _Document) -> str:
    if document.fault is not None:
        raise _Refused(document.fault)
    changed = dict(document.data)
    rule = document.rule
    if "correlation" in changed:
        changed["correlation"] = _correlation(changed["correlation"], rule)
    else:
        changed["detection"] = _Detection().of(rule)
        changed["fields"] = list(rule.fields or ())
        changed["logsource"] = {
            part: value for part in ("category", "product", "service") if (value := getattr(rule.logsource, part)) is not None
        } or changed.get("logsource")
    return written(_plain(changed))


def _correlation(given: Any, rule: Any) -> Any:
    """With fields renamed."""
    if rule is None or not isinstance(given, dict):
        return given
    changed = dict(given)
    if rule.group_by:
        changed["group-by"] = list(rule.group_by)
    if rule.aliases.aliases:
        changed["aliases"] = rule.aliases.to_dict()
    named = getattr(rule.condition, "fieldref", None)
    if named and isinstance(given.get("condition"), dict):
        changed["condition"] = {**given["condition"], "field": named}
    return changed


class _Detection:
    """Tests as search identifiers, a condition over these."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # by what a test is, written
        self.selections: dict[str, Any] = {}

    def of(self, rule: Any) -> dict[str, Any]:
        conditions = [self._condition(parsed.parsed) for parsed in rule.detection.parsed_condition]
        return {**self.selections, "condition": conditions}

    def _condition(self, node: Any) -> str:
        from sigma import conditions as c

        if isinstance(node, c.ConditionNOT):
            return f"not ({self._condition(node.args[0])})"
        if isinstance(node, (c.ConditionAND, c.ConditionOR)):
            word = " and " if isinstance(node, c.ConditionAND) else " or "
            return f"({word.join(self._condition(member) for member in node.args)})"
        if isinstance(node, c.ConditionFieldEqualsValueExpression):
            return self._test(node.field, node.value)
        if isinstance(node, c.ConditionValueExpression):
            return self._test("", node.value)
        raise _Refused(f"the pipeline makes a condition that is not a test ({type(node).__name__})")

    def _test(self, name: str, value: Any) -> str:
        modifiers, plain = _value(value)
        key = "|".join([name, *modifiers])
        selection: Any = {key: plain} if key else [plain]
        text = written(_plain(selection))
        if text not in self.names:
            self.names[text] = f"s{len(self.names) + 1}"
            self.selections[self.names[text]] = selection
        return self.names[text]


def _value(value: Any) -> tuple[list[str], Any]:
    """A value with the modifiers that say what it is."""
    from sigma import types as t

    if isinstance(value, t.SigmaExpansion):
        several = [_value(member) for member in value.values]
        if any(modifiers != several[0][0] for modifiers, _ in several):
            raise _Refused("the pipeline makes values of several kinds of one")
        return several[0][0], [plain for _, plain in several]
    if isinstance(value, t.SigmaString):
        return ["cased"] if isinstance(value, t.SigmaCasedString) else [], "".join(_parts(value))
    if isinstance(value, t.SigmaTimestampPart):
        return [value.timestamp_part.name.lower()], value.number
    if isinstance(value, t.SigmaNumber):
        return [], value.number
    if isinstance(value, t.SigmaBool):
        return [], value.boolean
    if isinstance(value, t.SigmaNull):
        return [], None
    if isinstance(value, t.SigmaExists):
        return ["exists"], value.exists
    if isinstance(value, t.SigmaRegularExpression):
        _check_filled(value.regexp)
        return ["re", *sorted(value.sigma_to_re_flag[flag] for flag in value.flags)], str(value.regexp)
    if isinstance(value, t.SigmaCIDRExpression):
        return ["cidr"], value.cidr
    if isinstance(value, t.SigmaCompareExpression):
        return ([] if value.op.name == "EQ" else [value.op.name.lower()]), value.number.number
    if isinstance(value, t.SigmaFieldReference):
        how = [["fieldref"], ["fieldref", "startswith"], ["fieldref", "endswith"], ["fieldref", "contains"]]
        return how[value.starts_with + 2 * value.ends_with], value.field
    raise _Refused(f"the pipeline makes a value that only a query can have ({type(value).__name__})")


def _parts(value: Any) -> Iterator[str]:
    from sigma.types import SpecialChars

    _check_filled(value)
    for part in value.s:
        if isinstance(part, str):
            yield part.replace("\\", "\\\\").replace("*", "\\*").replace("?", "\\?")
        else:
            yield "*" if part is SpecialChars.WILDCARD_MULTI else "?"


def _check_filled(value: Any) -> None:
    from sigma.types import Placeholder

    empty = next((part.name for part in value.s if isinstance(part, Placeholder)), None)
    if empty is not None:
        raise _Refused(f"placeholder '%{empty}%' has no values")


def _plain(value: Any) -> tuple[str, Any]:
    """Data of YAML as the printer takes it."""
    if isinstance(value, dict):
        return "map", tuple((str(key), _plain(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "list", tuple(map(_plain, value))
    if value is None or isinstance(value, bool):
        return "plain", {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        digits = repr(value)
        return "plain", digits if "e" not in digits or "." in digits else digits.replace("e", ".0e")
    return "text", str(value)
