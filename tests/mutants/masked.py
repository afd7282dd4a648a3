"""Rules of masked columns to remove one at a time."""

from typing import Final

from tests.mutants.mutant import Mutant

_STRUCTURE: Final = ("tests/unit/events/test_masked_structure.py",)
_CONVERTER: Final = ("tests/unit/source/test_converter_masks.py",)

MASKED: Final = (
    Mutant(
        name="masked: a column that is masked otherwise goes on",
        file="cdc/events/structure/column_steps.py",
        old="    yield from _masked_otherwise(old, new)\n",
        new="",
        tests=_STRUCTURE,
    ),
    Mutant(
        name="masked: older rows show the default in clear",
        file="cdc/events/structure/masked.py",
        old="masks.masked(mask, column.missing)",
        new="column.missing",
        tests=_STRUCTURE,
    ),
    Mutant(
        name="masked: a masked column may become a key",
        file="cdc/events/structure/derive_steps.py",
        old="    yield from _masked_key(new)\n",
        new="",
        tests=_STRUCTURE,
    ),
    Mutant(
        name="masked: a table with rows takes another mask",
        file="cdc/events/structure/masked.py",
        old="        if was != now:\n",
        new="        if was != now and not was:\n",
        tests=_STRUCTURE,
    ),
    Mutant(
        name="masked: a new name is not compared with the old one",
        file="cdc/source/connector/converter_masks.py",
        old="            if old != column.name and not",
        new="            if False and not",
        tests=_CONVERTER,
    ),
    Mutant(
        name="masked: the salt is in clear in the connector's configuration",
        file="cdc/source/connector/converter_masks.py",
        old="        return salt_reference(config.state_dir)\n",
        new="        return masks_of(config.source).salt\n",
        tests=_CONVERTER,
    ),
    Mutant(
        name="masked: the converter passes on what comes with headers",
        file="cdc/stack/artifacts/java/MaskingAvroConverter.java",
        old="Headers headers, Schema schema, Object value) {\n"
        "        Object kept = masked(topic, schema, value);\n",
        new="Headers headers, Schema schema, Object value) {\n        Object kept = value;\n",
        tests=("tests/masked",),
    ),
)
