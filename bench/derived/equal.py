"""Whether two Delta tables hold the same rows, whoever wrote them."""

from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.inputs import columns, rows
from cdc.derive.step.difference import typed
from cdc.events.values.sql_text import postgres_name

_MEMORY_MB: Final = 2048
_OURS, _OTHERS = "ours", "others"


def differing_rows(ours: Path, other: Path) -> int:
    """Return how many rows are in one table only, each as often as it is there.

    The other's values are taken in the types of ours, whose numbers may be of another size.
    """
    with calculator(_MEMORY_MB) as database:
        for name, path in ((_OURS, ours), (_OTHERS, other)):
            table = DeltaTable(str(path))
            database.keep(name, rows(table, columns(table)))
        outputs = database.outputs(f"FROM {_OURS}")
        listed = ", ".join(postgres_name(output.name) for output in outputs)
        theirs = typed(f"SELECT {listed} FROM {_OTHERS}", outputs)  # noqa: S608 - our names
        mine = f"SELECT {listed} FROM {_OURS}"  # noqa: S608
        return sum(
            database.count(f"({one} EXCEPT ALL {another})")
            for one, another in ((mine, theirs), (theirs, mine))
        )
