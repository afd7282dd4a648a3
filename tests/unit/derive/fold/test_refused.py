"""What a fold's file may not have is refused at its place, and nothing of the file runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.definition.folder import read_file
from cdc.derive.fold.program import program
from cdc.errors import CdcError
from tests.unit.derive.fold.bank import BALANCE, fold, problems_of

HEADER = """\
table = {"events": "s.e", "stream": "a", "version": "v", "columns": {"n": "bigint"}}
"""
APPLY = """\
def apply(state, event):
    return state
"""
HEADERS = {
    "": (1, 1, "the file has no header", "write table = {"),
    "table = dict(events='s.e')\n": (1, 1, "table is no dictionary", "write table = {"),
    HEADER + HEADER: (2, 1, "table is given twice", "keep one"),
    HEADER.replace('"s.e"', 'name + "e"'): (1, 20, "the header is read without running", "write"),
    HEADER.replace('"v"', 'f"v"'): (1, 53, "the header is read without running", "write texts"),
    HEADER.replace('"events"', "events"): (1, 10, "a key of the header is no text", "write the"),
    HEADER.replace('{"events"', '{**x, "events"'): (1, 12, "a key of the header is no text", "w"),
    HEADER.replace('"events"', '"event"'): (1, 19, "unknown key event", "did you mean events?"),
    HEADER.replace('"events": "s.e", ', ""): (1, 9, "the header has no events", "write table ="),
    HEADER.replace('"v"', '"v", "key": "a"'): (1, 65, "unknown key key", "keys are events, st"),
    HEADER.replace('"v"', '"v", "version": "w"'): (1, 58, "version is given twice", "keep one"),
    HEADER.replace('"n": "bigint"', '"n": "text", "n": "text"'): (
        1, 83, "n is given twice", "keep one"),
    HEADER.replace('"s.e"', '"e"'): (1, 20, "events: write it as schema.table", "correct the"),
    HEADER.replace('"s.e"', '"d.s.e"'): (1, 20, "events: write it as schema.table", "correct"),
    HEADER.replace('"a"', "[]"): (1, 37, "stream: list should have at least 1", "correct the"),
    HEADER.replace('"a"', '["a", 1]'): (1, 37, "stream: input should be a valid str", "correct"),
    HEADER.replace('"v"', "1"): (1, 53, "version: input should be a valid string", "correct"),
    HEADER.replace('"v"', '"v", "first": -1'): (1, 67, "first: input should be greater", "corr"),
    HEADER.replace('"v"', '"v", "first": True'): (1, 67, "first: input should be a valid", "c"),
    HEADER.replace('"v"', '"v", "refresh": "no"'): (1, 69, "refresh: input should be 'incr", "c"),
    HEADER.replace('"bigint"', '"money"'): (1, 69, "columns: n is of type money; types", "cor"),
    HEADER.replace('"bigint"', '"numeric"'): (1, 69, "columns: n is of type numeric; ty", "c"),
    HEADER.replace('"bigint"', '"numeric(39,2)"'): (1, 69, "columns: n is of type numer", "co"),
    HEADER.replace('"bigint"', '"numeric(4,5)"'): (1, 69, "columns: n is of type numer", "cor"),
    HEADER.replace('{"n": "bigint"}', "{}"): (1, 69, "columns: dictionary should have at", "co"),
    HEADER.replace('"n"', '"A"'): (1, 69, "two columns are called A", "choose another name"),
    HEADER.replace('"n"', '"version"'): (1, 69, "two columns are called version", "choose an"),
    HEADER.replace('"a"', '"fault"'): (1, 37, "two columns are called fault", "choose another"),
    HEADER.replace('"a"', '["a", "A"]'): (1, 37, "two columns are called A", "choose another"),
    HEADER.replace('"n"', '"_cdc_n"'): (1, 69, "_cdc_n is a name of wal2lake's own", "choose"),
    HEADER.replace('"n"', '"a b"'): (1, 69, "'a b' is no name", "use letters, digits and _"),
}  # fmt: skip
FUNCTIONS = {
    "": (1, 1, "the file has no function apply", "write def apply(state, event):"),
    "apply = lambda state, event: state": (1, 1, "the file has no function apply", "write def"),
    "def apply(state): pass": (2, 1, "apply has other parameters than state", "write def"),
    "def apply(event, state): pass": (2, 1, "apply has other parameters than", "write def"),
    "def apply(state, event, n=1): pass": (2, 1, "apply has other parameters", "write def"),
    "def apply(state, event=None): pass": (2, 1, "apply has other parameters", "write def"),
    "def apply(state, event, *more): pass": (2, 1, "apply has other parameters", "write def"),
    "def apply(state, event, **more): pass": (2, 1, "apply has other parameters", "write def"),
    "def apply(state, event, *, a): pass": (2, 1, "apply has other parameters", "write def"),
    "class apply: pass": (2, 1, "apply is no plain function", "write def apply(state, event):"),
    APPLY + APPLY: (4, 1, "apply is given twice", "keep one"),
    "import functools\n@functools.cache\n" + APPLY: (3, 2, "apply has a decorator", "remove it"),
}
STATEMENTS = {
    "import os": (1, "import of os is refused", "use collections"),
    "import datetime, random": (1, "import of random is refused", "use collections"),
    "from time import time": (1, "import of time is refused", "use collections"),
    "from . import other": (1, "import of . is refused", "use collections"),
    "from math import *": (1, "import of * is refused", "name what you use"),
    "from decimal import getcontext": (1, "getcontext changes how others", "use quantize"),
    "for i in (): pass": (1, "this statement is refused outside", "keep imports, constants"),
    "if True: x = 1": (1, "this statement is refused outside", "keep imports, constants"),
    "del apply": (1, "this statement is refused outside", "keep imports, constants"),
    "x = open": (5, "open is refused in a fold", "a fold knows its state"),
    "x = exec": (5, "exec is refused in a fold", "a fold knows"),
    "x = eval": (5, "eval is refused in a fold", "a fold knows"),
    "x = input": (5, "input is refused in a fold", "a fold knows"),
    "x = print": (5, "print is refused in a fold", "a fold knows"),
    "x = globals": (5, "globals is refused in a fold", "a fold knows"),
    "x = getattr": (5, "getattr is refused in a fold", "a fold knows"),
    "x = __import__": (5, "__import__ is refused in a fold", "a fold knows"),
    "x = __name__": (5, "__name__ is refused in a fold", "a fold knows"),
    "x = BaseException": (5, "BaseException is refused in a fold", "a fold knows"),
    "x = nothing": (5, "unknown name nothing", "define or import it"),
    "ä = 'ä' + nothing": (11, "unknown name nothing", "define or import it"),
    "x = hash": (5, "hash differs from run to run", "compare the values"),
    "x = set": (5, "the order of a set differs", "write a tuple"),
    "x = {1, 2}": (5, "the order of a set differs", "write a tuple"),
    "x = {i for i in (1, 2)}": (5, "the order of a set differs", "write a tuple"),
    "def f(t): return t.now()": (18, "now reads the clock", "use a column of the event"),
    "def f(t): return t.utcnow": (18, "utcnow reads the clock", "use a column of the event"),
    "def f(t): return t.today()": (18, "today reads the clock", "use a column of the event"),
    "def f(t): return t.astimezone()": (18, "astimezone depends on the time zone", "add a"),
    "def f(t): return t.fromtimestamp(1)": (18, "fromtimestamp depends on", "add a timedelta"),
    "def f(t): return t.timestamp()": (18, "timestamp depends on the time zone", "add a"),
    "def f(t): return t.__class__": (18, "__class__ is a name of Python's own", "a fold knows"),
    "def f(t): global x": (11, "a fold keeps nothing beside its state", "return it as"),
    "def f(a, b=[]): pass": (12, "a default that can change is kept", "write None"),
    "def f(*, b={}): pass": (12, "a default that can change is kept", "write None"),
    "x = (": (5, "it is not Python: '(' was never closed", "correct it: try it with python"),
    "x = 1 is 1": (5, 'it is not Python: "is" with a literal', "correct it"),
    "return 1": (1, "it is not Python: 'return' outside function", "correct it"),
}  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_refused_at_its_place(header: str) -> None:
    line, column, message, remedy = HEADERS[header]

    found = problems_of(header + APPLY)
    there = [each for each in found if (each.line, each.column) == (line, column)]
    assert [each for each in there if each.message.startswith(message)], found
    assert [each for each in there if each.remedy.startswith(remedy)], found


@pytest.mark.parametrize("functions", FUNCTIONS)
def test_the_function_is_one_and_has_its_parameters(functions: str) -> None:
    line, column, message, remedy = FUNCTIONS[functions]

    (found,) = problems_of(HEADER + functions)

    assert (found.line, found.column) == (line, column), str(found)
    assert found.message.startswith(message)
    assert found.remedy.startswith(remedy)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_a_fold_could_depend_on_is_refused(statement: str) -> None:
    column, message, remedy = STATEMENTS[statement]

    found = problems_of(f"{HEADER}{APPLY}{statement}")[0]

    assert (found.line, found.column) == (4, column), str(found)
    assert found.message.startswith(message)
    assert found.remedy.startswith(remedy)


def test_what_is_asynchronous_is_refused() -> None:
    found = problems_of(HEADER + APPLY + "async def f(): pass")

    assert {each.message for each in found} == {
        "a fold waits for nothing",
        "this statement is refused outside a function",
    }


def test_all_problems_are_told_at_once_and_in_order() -> None:
    text = HEADER.replace('"bigint"', '"money"') + "import os\ndef apply(state): return open\n"

    assert [(each.line, each.column) for each in problems_of(text)] == [
        (1, 69), (2, 1), (3, 1), (3, 26),
    ]  # fmt: skip


def test_what_is_pure_is_taken() -> None:
    fold(f'''
"""What a fold may have."""
import collections.abc, dataclasses, enum, functools, itertools, json, math, re, typing
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
{HEADER}
RATES = {{"a": [Decimal(1)]}}

class Kind(enum.StrEnum):
    A = "a"

@dataclasses.dataclass(frozen=True)
class Pair:
    one: int
    def twice(self):
        return self.one * 2

def helper(kind, *more, other=None, **rest):
    try:
        if kind in {{"a", "b"}}:
            return [x for x in range(3) if x not in {{1}}]
    except (KeyError, Exception) as error:
        raise Refused(str(error)) from None
    match kind:
        case {{"k": [first, *others], **remains}} | [first, others, remains]:
            return lambda q: (q, first, others, remains)
        case Kind.A as found:
            return found
{APPLY}''')


def test_nothing_of_the_file_runs_when_it_is_read() -> None:
    states, _ = fold(f"{HEADER}x = 1 / 0\n{APPLY}")

    assert states.fold is not None
    with pytest.raises(CdcError, match="line 2 fails outside apply: ZeroDivisionError"):
        program(states.fold.code)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\0", "it is not Python: source code string cannot contain null bytes"),
        ("x = 1\n" * 20_000, "it is longer than 100000 characters"),
        ("x = " + "(" * 5_000 + ")" * 5_000, "it is n"),
        ("x = " + "-" * 40_000 + "1", "it is nested too deeply"),
    ],
)
def test_a_text_that_python_refuses(text: str, message: str) -> None:
    assert problems_of(text)[0].message.startswith(message)


def test_comments_and_layout_change_no_hash_and_meaning_does() -> None:
    one, faults = fold()
    same = [
        BALANCE.replace('"""The balance of each account, and whether it is open."""\n', "# Why\n"),
        BALANCE.replace("def apply(state, event):", 'def apply( state,event ):\n    "Words."'),
        BALANCE.replace("What each account has.", "Else."),
        BALANCE.replace("numeric(20,2)", "decimal( 20, 2 )").replace('"text"', "'string'"),
        BALANCE.replace('"doc"', '"refresh": "full", "doc"'),
    ]
    others = [
        BALANCE.replace("balance < 0", "balance <= 0"),
        BALANCE.replace("numeric(20,2)", "numeric(20,3)"),
        BALANCE.replace('"doc"', '"first": 0, "doc"'),
        BALANCE.replace("not enough money", "too little money"),
        BALANCE.replace("shop.account_events", "shop.events"),
        BALANCE.replace('"account_id"', '"account"'),
    ]

    assert {fold(text)[0].hash for text in same} == {one.hash}
    assert len({one.hash, faults.hash, *(fold(text)[0].hash for text in others)}) == 8


def test_a_file_makes_two_definitions_with_their_columns_and_keys() -> None:
    states, faults = fold(name="bank.balance.py")

    assert [str(each.table) for each in (states, faults)] == [
        "bank.balance", "bank.balance__faults",
    ]  # fmt: skip
    assert (states.key, faults.key) == (("account_id",), ("account_id", "version", "fault"))
    assert states.columns == ("account_id", "version", "balance", "state")
    assert faults.columns == ("account_id", "version", "fault", "detail")
    assert states.doc == "What each account has."
    assert states.places == faults.places == ((7, 15),)


def test_the_name_of_the_file_names_a_table() -> None:
    (found,) = problems_of(BALANCE, "balance.py")

    assert found.message == "the file's name names no table"
    assert found.remedy == "call it <schema>.<table>.py; the schema wal2lake is taken"


WORDS = """
    table = { } "events" : "s.e" , "stream" "version" "columns" "n" "bigint" def apply ( state event
    ) : return None pass lambda import os from math class set { 1 } in not global x f"{x}" @ async
    await yield match case _ try except * ** [ ] . now -1 # \\ ''' ä \t
"""


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([*WORDS.split(), "\n", "\n    "])),
    st.sampled_from(["", HEADER, HEADER + APPLY, "def apply(state, event):\n    "]),
)
def test_no_text_makes_it_fail(words: list[str], begin: str) -> None:
    read, found = read_file("a.x.py", "a.x.py", begin + " ".join(words))

    assert bool(read) != bool(found)
