"""Bugs of scoped steps: a scope that is too small, and rows that it leaves out."""

from typing import Final

from tests.mutants.mutant import Mutant

_NET: Final = ("tests/unit/derive/keep/test_net.py",)
_CASES: Final = ("tests/unit/derive/scoped/test_scoped_cases.py",)
_KEPT: Final = ("tests/unit/derive/keep/test_resident.py",)
_RESIDENT: Final = "cdc/derive/step/resident.py"
_REACH: Final = "cdc/derive/step/reach.py"
SCOPED: Final = (
    Mutant(
        name="scoped: the rows as they were are left out",
        file=_REACH,
        old="        for side in self._sides:\n            self._join(side)\n",
        new="        self._join(self._sides[-1])\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: other tables are looked at only as they are now",
        file=_REACH,
        old="is_changed = among(named(table)), table in self._changed\n",
        new="is_changed = among(named(table)), False\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: links are followed to one table only",
        file=_REACH,
        old="            known.add(there)\n            yield link, here, there\n",
        new="            yield link, here, there\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: a session is looked at without its neighbours",
        file=_REACH,
        old="        if names:\n",
        new="        if False:\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: sessions of no key are forgotten",
        file=_REACH,
        old='names, "IS NOT DISTINCT FROM")',
        new='names, "=")',
        tests=_CASES,
    ),
    Mutant(
        name="scoped: NULL is no value of the scope key",
        file="cdc/derive/scope/printed.py",
        old="exp.NullSafeEQ(",
        new="exp.EQ(",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: stored rows with NULL in the scope key are not compared",
        file="cdc/derive/step/difference.py",
        old='f"d.{column(n)} IS NOT DISTINCT FROM s.',
        new='f"d.{column(n)} = s.',
        tests=_CASES,
    ),
    Mutant(
        name="scoped: what a condition asks may change unseen",
        file="cdc/derive/step/reach.py",
        old="            if occurrence.table in changed:\n",
        new="            if occurrence.table in changed and not occurrence.is_condition:\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: values that are equal and print differently are no change",
        file="cdc/derive/engine/net.py",
        old="SELECT *, {digest(outputs)} AS {_DIGEST} FROM",
        new="SELECT *, 1 AS {_DIGEST} FROM",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: equal rows are one change",
        file="cdc/derive/engine/net.py",
        old="USING ({_MARKS})",
        new="USING (_cdc_digest)",
        tests=_NET,
    ),
    Mutant(
        name="scoped: changes have more columns than were asked for",
        file="cdc/derive/engine/net.py",
        old='    listed = ", ".join(map(postgres_name, columns))\n',
        new='    listed = "*"\n',
        tests=_NET,
    ),
    Mutant(
        name="scoped: rows with NULL are never equal",
        file="cdc/derive/engine/net.py",
        old="a.{name} IS NOT DISTINCT FROM b.{name}",
        new="a.{name} = b.{name}",
        tests=_NET,
    ),
    Mutant(
        name="scoped: columns of an input that others read too are taken by their places",
        file=_REACH,
        old='listed = self._columns(table) if table in self._changed else "r.*"',
        new='listed = "r.*"',
        tests=("tests/unit/derive/keep/test_shared_inputs.py",),
    ),
    Mutant(
        name="scoped: an input that is kept has rows that are gone",
        file="cdc/derive/step/following.py",
        old="    is_whole = not wanted\n    if wanted:\n",
        new="    is_whole = True\n    if False:\n",
        tests=_KEPT,
    ),
    Mutant(
        name="scoped: all rows that equal a removed one are gone",
        file="cdc/derive/step/following.py",
        old="        is_whole = list(deleted) == [(wanted,)]\n",
        new="        is_whole = True\n",
        tests=_KEPT,
    ),
    Mutant(
        name="scoped: changes that are kept for all steps are those of an older cut",
        file=_RESIDENT,
        old="        if self._net.get(table) is known:\n",
        new="        if table in self._net:\n",
        tests=_KEPT,
    ),
    Mutant(
        name="scoped: an input that was made anew is taken for the old one",
        file=_RESIDENT,
        old="(identity(wanted.opened), wanted.at.path)",
        new="(self.identity, wanted.at.path)",
        tests=_KEPT,
    ),
    Mutant(
        name="scoped: what a step has done to its inputs stays",
        file=_RESIDENT,
        old='            database.run("ROLLBACK")\n',
        new='            database.run("COMMIT")\n',
        tests=_KEPT,
    ),
    Mutant(
        name="scoped: a table calculated over copies keeps the types of its columns",
        file="cdc/derive/step/step.py",
        old="                if not mark.is_of(table):\n",
        new="                if False:\n",
        tests=("tests/unit/derive/keep/test_shared_inputs.py",),
    ),
    Mutant(
        name="scoped: stored rows that are kept are those of the last build",
        file=_RESIDENT,
        old='        self._database.run(f"INSERT INTO {name} {new}")\n',
        new="",
        tests=_KEPT,
    ),
    Mutant(
        name="scoped: an equality in WHERE links tables beside an outer join",
        file="cdc/derive/scope/links.py",
        old='    if all(is_inner(each) for each in leaf.select.args["joins"]):\n',
        new="    if True:\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: a condition beside a FULL join may name any table",
        file="cdc/derive/scope/links.py",
        old="    _refuse_third(leaf, join, link)\n",
        new="",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: GROUP BY does not bound the scope key",
        file="cdc/derive/scope/together.py",
        old="        return all(value in each for each in sets)\n",
        new="        return True\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: outer joins are followed for both sides at once",
        file="cdc/derive/scope/printed.py",
        old='        is_inner=all(map(is_inner, leaf.select.args.get("joins") or []))\n',
        new="        is_inner=True\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: sessions are followed for both sides at once",
        file="cdc/derive/scope/printed.py",
        old="        and not any(one.together for one in leaf.occurrences),\n",
        new="        and True,\n",
        tests=_CASES,
    ),
    Mutant(
        name="scoped: inner joins are followed without the rows that are gone",
        file=_REACH,
        old='            self._create(number, f"{new}{gone}")\n',
        new="            self._create(number, new)\n",
        tests=_CASES,
    ),
)
