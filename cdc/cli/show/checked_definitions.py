"""Show checked definitions of derived tables, on the terminal or as JSON."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.client.derived.check import Checked, CheckedTable


def checked_facts(checked: Checked) -> dict[str, Any]:
    """Return the checked definitions as an object for JSON."""
    return {
        "tables": [_table_facts(table) for table in checked.tables],
        "problems": [asdict(problem) for problem in checked.problems],
    }


def _table_facts(table: CheckedTable) -> dict[str, Any]:
    definition = table.definition
    return {
        "table": str(definition.table),
        "file": definition.file,
        "inputs": [str(one) for one in definition.inputs],
        "key": list(definition.key),
        "refresh": definition.refresh,
        "time_dependent": definition.is_timed,
        "columns": {output.name: output.type for output in table.outputs},
    }


def show_checked(checked: Checked, console: Console) -> None:
    """Print each problem, then a table of the valid definitions."""
    for problem in checked.problems:
        console.print(Text(f"! {problem}", "red"), soft_wrap=True)
        if problem.remedy:
            console.print(Text(f"    remedy: {problem.remedy}", "dim"), soft_wrap=True)
    table = Table(show_edge=False)
    for name in ("table", "inputs", "key", "columns"):
        table.add_column(name)
    for one in checked.tables:
        facts = _table_facts(one)
        columns = ", ".join(f"{name} {kind.lower()}" for name, kind in facts["columns"].items())
        named = ", ".join(facts["inputs"]), ", ".join(facts["key"])
        table.add_row(facts["table"], *named, columns)
    if checked.tables:
        console.print(table)
        _show_timed(checked, console)
    elif not checked.problems:
        console.print("no table is defined")


def _show_timed(checked: Checked, console: Console) -> None:
    for one in checked.tables:
        if one.definition.is_timed:
            said = "depends on cut_time(): each cut calculates its whole query"
            console.print(Text(f"{one.definition.table} {said}"), soft_wrap=True)
