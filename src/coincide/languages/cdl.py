"""What CDL ("Cordies: Expressive event correlation in distributed systems") offers to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.detection.correlation.plan import plans as correlation_plans
from coincide.errors import Diagnostic
from coincide.lang.cdl.definition import Description, File, TimeEvent
from coincide.lang.cdl.explain import explained as explained_description
from coincide.lang.cdl.link import check_circles, detected_classes, external_classes, in_force
from coincide.lang.cdl.parse import parse as parse_xml_file
from coincide.lang.cdl.partition import partition_of
from coincide.lang.cdl.print import print_file as print_xml
from coincide.lang.cdl.typing import KINDS
from coincide.lang.cdl.wants import wants_of
from coincide.lang.cdl.warnings import warnings_of
from coincide.lang.shared.digest import digest_of
from coincide.lang.shared.reads import ATTRIBUTE, TYPE, Mention, Reads, is_attribute
from coincide.lang.shared.wants import Wants
from coincide.languages.base import Language
from coincide.source import SourceText


class Cdl(Language):
    name = "cdl"
    versioned = True  # a name may be defined again, in another file: the higher version is in force
    forms = ("xml", "yaml")

    def parse(self, source: SourceText) -> File:
        """YAML's library is imported with the first file that needs it."""
        if not source.name.endswith(".yaml"):
            return parse_xml_file(source)
        from coincide.lang.cdl.yaml import parse_file

        return parse_file(source)

    def printed(self, file: File, form: str) -> str:
        """As `xml` or as `yaml`."""
        if form != "yaml":
            return print_xml(file)
        from coincide.lang.cdl.print_yaml import print_file as print_yaml

        return print_yaml(file)

    def print_file(self, file: File) -> str:
        """In the form that the file was written in."""
        return self.printed(file, file.form)

    def names(self, file: File) -> Iterator[Diagnostic]:
        for cd_id, cd in {cd.id: cd for cd in file.descriptions}.items():
            yield Diagnostic(f"cd '{cd_id}' is defined twice", cd.span, name=cd_id)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        """Of the versions in force (CDL-01)."""
        current = in_force([file for _, file in files])
        check_circles([cd for some in current for cd in some])
        return [[_detector(cd) for cd in some] for some in current]

    def linked(self, own: Sequence[Detector], everyone: Sequence[Detector]) -> list[Detector]:
        """Of the messages that they would take from detectors, those that any makes. The others may come from other nodes."""
        made = frozenset(output for detector in everyone for output in detector.outputs)
        return [replace(d, inputs=_linked(d.inputs, made)) for d in own]

    def explained(self, detector: Detector) -> Iterator[tuple[str, str]]:
        return explained_description(detector.definition)

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        return correlation_plans(detectors)

    def printed_digest(self, detector: Detector) -> str:
        """In the one form that both can be written in. Versions count."""
        cd: Description = detector.definition
        return digest_of("cdl", print_xml(File((cd,), cd.shared, single=not cd.shared)))

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return [warning for detector in detectors for warning in warnings_of(detector.definition)]

    def reads(self, detector: Detector) -> Reads:
        """What its sources declare: a message without an attribute that is not optional is none of theirs."""
        cd: Description = detector.definition
        sources = [source for source in cd.sources if not isinstance(source, TimeEvent)]
        found = [Mention(TYPE, source.message_class, source.span) for source in sources if source.message_class != "*"]
        for source in sources:
            for a in source.attributes:
                if not a.optional and a.lookup is None and is_attribute(a.name):
                    found.append(Mention(ATTRIBUTE, a.name, a.span, KINDS[a.type]))
        return Reads(tuple(found), gives=frozenset(a.name for event in cd.events for a in event.attributes))

    def waits_by(self, detector: Detector) -> str:
        return "time event"

    def wants(self, detector: Detector) -> Wants:
        return wants_of(detector.definition)


def _linked(inputs: Inputs, made: frozenset[str]) -> Inputs:
    external = None if inputs.external is None else inputs.external | (inputs.detections - made)
    return Inputs(external, inputs.detections & made)


def _text_without_version(cd: Description) -> str:
    """A version that says the same as the one before goes on from its state; so does a description for which only the providers
    change that its file gives to all."""
    return print_xml(File((replace(cd, version=(1,)),), single=True))


def _detector(cd: Description) -> Detector:
    return Detector(
        name=cd.id,
        language="cdl",
        definition=cd,
        inputs=Inputs(external_classes(cd), detected_classes(cd)),
        outputs=tuple(dict.fromkeys(event.message_class for event in cd.events)),
        partition=partition_of(cd),
        text=partial(_text_without_version, cd),
        former=lambda: cd.document_digest,
        kind="cd",
        span=cd.span,
    )


LANGUAGE = Cdl()
