"""Spell the parts of a predicate for Postgres, for Spark and for a human at the same time."""

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
    """Holds one part of a predicate in three spellings."""

    source: str
    lake: str
    text: str
    loose: bool = False  # needs parentheses inside another part

    @property
    def closed(self) -> "Texts":
        """Return the part, in parentheses if it needs them inside another part."""
        return fill_template("({})", self) if self.loose else self


def fill_template(template: str, *parts: Texts, loose: bool = False) -> Texts:
    """Return the template with its ``{}`` replaced by the parts, in each spelling."""
    return Texts(
        template.format(*(part.source for part in parts)),
        template.format(*(part.lake for part in parts)),
        template.format(*(part.text for part in parts)),
        loose,
    )


def joined(word: str, parts: list[Texts]) -> Texts:
    """Join the parts with the word; a single part stays as it is."""
    if len(parts) == 1:
        return parts[0]
    closed = [part.closed for part in parts]
    return fill_template(f" {word} ".join(["{}"] * len(closed)), *closed, loose=True)


def string(text: str, pg: str = "text") -> Texts:
    """Return a string constant of the Postgres type ``pg``, which must be text in the lake."""
    return Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.{pg})",
        spark_string(text),
        standard_string(text),
    )


def column_name(name: str, typed: str) -> Texts:
    """Return a column's name; ``typed`` is the name as a user would write it."""
    return Texts(postgres_name(name), spark_name(name), typed)
