"""Add to a definition what its front matter says of late rows."""

import json
from dataclasses import replace
from hashlib import sha256

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.file_names import late_of
from cdc.derive.definition.front_matter import FrontMatter, key_place
from cdc.derive.definition.late_matter import LateQuery
from cdc.derive.definition.late_versions import of_versions, of_windowed
from cdc.derive.late.rule import FINAL, Bound, LateRule
from cdc.derive.sql import printing
from cdc.derive.sql.problem import Place, Problem

LATE_QUERY = 'SELECT * FROM "_cdc_late"."rows"'
"""What reads the rows that the log gives; it is there only where they are looked at."""
_TIMED = "name cut_time() in a table over this one: a final row changes no more with the time"


def with_late(
    definition: Definition, front: FrontMatter, text: str
) -> tuple[list[Definition], list[Problem]]:
    """Return the definition, and before it that of its late rows if there is one."""
    if front.late is None or definition.query is None:
        return [definition], []
    if definition.is_timed:
        place = key_place(text, "late")
        return [], [Problem(definition.file, *place, "late beside cut_time() is refused", _TIMED)]
    asked = LateQuery(front.late, front.emit, definition.query, late_of(definition.table))
    rule, wrong = asked.rule()
    if rule is None:
        return [], [
            Problem(definition.file, *key_place(text, *keys), what, remedy)
            for keys, what, remedy in wrong
        ]
    place = key_place(text, "late")
    rows = _rows(definition, rule, place)
    if rule.policy == "aside":
        query, is_bound = definition.query, isinstance(rule.window, Bound)
        read = of_versions(query, front.late.column) if is_bound else of_windowed(query, rule.table)
        definition = replace(definition, duckdb=printing.duckdb(read))
    return [rows, _judged(definition, rule, place, rows)], []


def _judged(definition: Definition, rule: LateRule, place: Place, rows: Definition) -> Definition:
    added = () if rule.emits_final else (FINAL,)
    waits = [rule.rest] if isinstance(rule.window, Bound) else []
    facts = json.dumps([definition.hash, rows.hash, rule.emits_final, rule.shown, *waits])
    return replace(
        definition,
        inputs=(*definition.inputs, rule.rows),
        places=(*definition.places, place),
        columns=(*definition.columns, *added),
        late=rule,
        hash=sha256(facts.encode()).hexdigest(),
    )


def _rows(definition: Definition, rule: LateRule, place: Place) -> Definition:
    """Return the definition of the late rows: it follows from the rule, whatever the query is."""
    facts = [str(rule.table), rule.allowed, rule.idle, rule.policy, rule.judged_by]
    return replace(
        definition,
        table=rule.rows,
        doc=f"The late rows of {definition.table}.",
        key=(),
        inputs=(rule.table,),
        places=(place,),
        columns=(),
        duckdb=LATE_QUERY,
        postgres="",
        query=None,
        late_rows=rule,
        hash=sha256(json.dumps(facts).encode()).hexdigest(),
    )
