"""The soak walk: a seed always gives the same steps, and every kind of step occurs."""

from collections import Counter
from itertools import islice

from tests.faults.bank.marts import MARTS
from tests.faults.scenes.disturbances import DISTURBANCES
from tests.faults.scenes.scenarios import SCENARIOS
from tests.soak import acting
from tests.soak.asking import PAUSE
from tests.soak.definitions import NAMES
from tests.soak.own_tables import MOST_COLUMNS, ROWS, Shifting
from tests.soak.steps import CASES, DURING, FAULTS, KINDS, READ_AGAIN, WHERE, Step, steps

MANY = list(islice(steps(3), 4000))


def of(kind: str) -> list[Step]:
    return [step for step in MANY if step.kind == kind]


def test_a_seed_gives_the_same_steps_again() -> None:
    again = list(islice(steps(3), 4000))

    assert again == MANY
    assert list(islice(steps(4), 20)) != MANY[:20]
    assert [step.number for step in MANY] == list(range(1, 4001))


def test_a_longer_walk_begins_like_a_shorter_one() -> None:
    assert list(islice(steps(9), 30))[:10] == list(islice(steps(9), 10))


def test_everything_comes_up() -> None:
    assert {step.name for step in of("fault")} == set(FAULTS) == set(SCENARIOS)
    assert {step.name for step in of("case")} == set(CASES)
    assert {step.name for step in of("rows")} == set(ROWS)
    assert {step.name for step in of("structure")} == {
        *("add column", "drop column", "rename column")
    }
    assert {step.name for step in of("command")} == {"verify", "sync"}
    assert {step.kind for step in MANY} == {
        *("fault", "case", "rows", "structure", "operation", "command"),
        *("rest", "restart", "upkeep", "define", "witness"),
    }
    assert {step.name for step in of("define")} == set(NAMES)
    assert {step.arguments[:2] for step in of("witness")} == {
        *(("verify", "--source"), ("verify", "--engine")),
        *(("rebuild", name) for name, mart in MARTS.items() if mart.text),
    }


def test_everything_can_be_done() -> None:
    assert set(acting._ACTS) == {step.kind for step in MANY} > acting.OTHER_COMMITS
    assert set(acting._CASES) == set(CASES)
    assert set(DURING) - {"", PAUSE} < set(DISTURBANCES)


def test_every_operation_comes_up_on_every_table_and_under_every_fault() -> None:
    found = of("operation")
    resnapshots = [step for step in found if step.arguments[0] == "resnapshot"]

    assert {step.during for step in found} == set(DURING)
    assert {step.arguments[0] for step in found} == {"resnapshot", "replay"}
    assert {step.arguments[1] for step in resnapshots} == {f"bank.{name}" for name in READ_AGAIN}
    assert {step.arguments[2:] for step in resnapshots} == {
        (),
        ("--shadow",),
        *(("--where", condition) for condition in WHERE.values()),
    }


def test_what_weighs_more_comes_more_often() -> None:
    kinds = Counter(step.kind for step in MANY)
    faults = Counter(step.name for step in of("fault"))
    share = kinds["fault"] / len(MANY)

    assert abs(share - max(KINDS.values()) / sum(KINDS.values())) < 0.05
    assert kinds["fault"] > kinds["rows"] > kinds["rest"] > kinds["restart"]
    assert faults["kill job"] > 2 * faults["kafka away"] > 0


def test_only_columns_that_are_there_are_dropped_and_renamed() -> None:
    known: set[str] = set()
    for step in of("structure"):
        words = step.sql.partition("ALTER TABLE bank.shifting ")[2].partition(";")[0].split()
        name = words[2]
        if words[0] == "ADD":
            assert name not in known
            known.add(name)
        else:
            known.remove(name)
            known |= {words[4]} if words[0] == "RENAME" else set()
        assert len(known) <= MOST_COLUMNS


def test_a_table_without_columns_of_ours_gets_one() -> None:
    for seed in range(20):
        first = next(step for step in steps(seed) if step.kind == "structure")
        assert first.name == "add column"
    assert Shifting().columns == []


def test_a_step_says_what_it_is() -> None:
    step = Step(number=7, kind="operation", name="replay bank.ring", during="kill job")

    assert step.text == "step 7: operation: replay bank.ring, under it: kill job"
