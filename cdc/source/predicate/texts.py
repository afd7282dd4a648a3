"""What a predicate says, spelled for Postgres, for Spark and for a reader at the same time."""

from dataclasses import dataclass

from cdc.events.values.sql_text import (
    postgres_name,
    postgres_string,
    spark_name,
    spark_string,
    standard_string,
)


@dataclass(frozen=True, slots=True)
class Texts:
    """One thing in three spellings."""

    source: str
    lake: str
    text: str
    loose: bool = False  # stands in parentheses inside another one

    @property
    def closed(self) -> "Texts":
        return filled("({})", self) if self.loose else self


def filled(template: str, *parts: Texts, loose: bool = False) -> Texts:
    """The template with the parts in the place of ``{}``, in each spelling."""
    return Texts(
        template.format(*(part.source for part in parts)),
        template.format(*(part.lake for part in parts)),
        template.format(*(part.text for part in parts)),
        loose,
    )


def joined(word: str, parts: list[Texts]) -> Texts:
    """With the word between the parts; one part alone stays as it is."""
    if len(parts) == 1:
        return parts[0]
    closed = [part.closed for part in parts]
    return filled(f" {word} ".join(["{}"] * len(closed)), *closed, loose=True)


def string(text: str, pg: str = "text") -> Texts:
    """A string as a constant of a type of Postgres that is text in the lake."""
    return Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.{pg})",
        spark_string(text),
        standard_string(text),
    )


def column_name(name: str, typed: str) -> Texts:
    """The column; ``typed`` is how an operator writes its name."""
    return Texts(postgres_name(name), spark_name(name), typed)
