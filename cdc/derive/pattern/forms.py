"""List what a definition of a pattern may have, for the reference page."""

from typing import Final

CLAUSES: Final = (
    ("PARTITION BY a, b", "columns; may be left out"),
    ("ORDER BY ts, a", "columns, ascending; the first is a time where there is within"),
    ("MEASURES x AS name", "of the rows of the whole match"),
    ("ONE ROW PER MATCH", "may be left out"),
    ("AFTER MATCH SKIP PAST LAST ROW", "the default"),
    ("AFTER MATCH SKIP TO NEXT ROW", ""),
    ("AFTER MATCH SKIP TO FIRST A, TO LAST A", "A is after the first row, or the table stops"),
    ("PATTERN (A B)", "A, and then B"),
    ("PATTERN (A | B)", "A or, if that leads to no match, B"),
    ("PATTERN ((A B)+)", "a group; what repeats matches a row each time"),
    ("A*, A+, A?, A{2}, A{2,}, A{2,5}", "as many rows as lead to a match"),
    ("A*?, A+?, A??, A{2,}?", "as few rows as lead to a match"),
    ("DEFINE A AS condition", "a variable that is not defined takes every row"),
)  # fmt: skip
VALUES: Final = (
    ("a", "in DEFINE of the current row, in MEASURES of the last row of the match"),
    ("A.a", "of the last row of A so far; in the condition of A, of the current row"),
    ("prev(a), prev(A.a, 2)", "of the row before it in the partition; in DEFINE"),
    ("first(A.a), last(A.a)", "NULL too, if that row has it"),
    ("first(a), last(a)", "of all rows of the match"),
    ("count(*), count(A.a)", "of all rows, and of those of A, so far"),
    ("sum(A.a), min(A.a), max(A.a)", "columns of one variable only, or of none"),
    ("expressions and functions of above", "over one row, and over the measures"),
    ("comparisons, IS, BETWEEN, IN, CASE, coalesce, AND, OR, NOT", "over values of several rows"),
    ("a + b, a - b, a * b", "over values of several rows: numbers, and times with intervals"),
)  # fmt: skip
