"""Bugs of lanes, of the inputs that they share, and of tables that lag."""

from typing import Final

from tests.mutants.mutant import Mutant

_LANES: Final = ("tests/unit/derive/turns/test_lanes.py",)
_OPENED: Final = ("tests/unit/derive/turns/test_opened_inputs.py",)
_STATES: Final = ("tests/unit/derive/keep/test_states.py",)
_SHARED_OUT: Final = "cdc/derive/keep/lanes.py"
_INPUTS: Final = "cdc/derive/engine/opened_inputs.py"
_TABLES: Final = "cdc/derive/keep/derived_tables.py"
LANES: Final = (
    Mutant(
        name="lanes: a table is calculated beside its inputs",
        file=_SHARED_OUT,
        old="    return earlier.table in later.inputs or (",
        new="    return (",
        tests=_LANES,
    ),
    Mutant(
        name="lanes: two threads read the log",
        file=_SHARED_OUT,
        old=" or (earlier.is_of_events and later.is_of_events)",
        new="",
        tests=_LANES,
    ),
    Mutant(
        name="lanes: each keeps its share of the memory, however small",
        file=_SHARED_OUT,
        old="        if len(self._lanes) > 1 and any(",
        new="        if False and any(",
        tests=_LANES,
    ),
    Mutant(
        name="lanes: tables that lag have all cores",
        file=_SHARED_OUT,
        old="        if in_turn:\n",
        new="        if False:\n",
        tests=_LANES,
    ),
    Mutant(
        name="lanes: what ends another lane is not told",
        file=_SHARED_OUT,
        old="            each.result()\n",
        new="            each.exception()\n",
        tests=_LANES,
    ),
    Mutant(
        name="lanes: whole queries take their memory at the same time",
        file="cdc/derive/step/step.py",
        old="        with self.alone, calculator(",
        new="        with calculator(",
        tests=_LANES,
    ),
    Mutant(
        name="lanes: an input that was made anew is brought on",
        file=_INPUTS,
        old="        if opened is None or str(opened.metadata().id) != one.delta_id:\n",
        new="        if opened is None:\n",
        tests=_OPENED,
    ),
    Mutant(
        name="lanes: an input is read beyond the cut",
        file=_INPUTS,
        old="        return opened if opened.version() == one.version else None\n",
        new="        return opened\n",
        tests=_OPENED,
    ),
    Mutant(
        name="lanes: an input is brought on while another table reads it",
        file=_INPUTS,
        old="        opened = self._before.pop(one.path, None)\n",
        new="        opened = self._before.get(one.path)\n",
        tests=_OPENED,
    ),
    Mutant(
        name="lanes: tables that lag take all time",
        file=_TABLES,
        old="            if in_turn:\n",
        new="            if False:\n",
        tests=_STATES,
    ),
    Mutant(
        name="lanes: after a cut without changes the next one waits again",
        file=_TABLES,
        old="        if self._calculates:  # ",
        new="        if True:  # ",
        tests=_STATES,
    ),
)
