"""Compare source and lake by an independent reader: rows, and values in every column."""

from deltalake import DeltaTable

from tests.e2e.installation import Installation
from tests.soak.schema.facts import identifier


def counts_differing(installation: Installation, table: str) -> str:
    """Return how the numbers of rows and values differ; empty if they do not."""
    schema, _, name = table.partition(".")
    lake = DeltaTable(str(installation.folder / "lake" / schema / name))
    names = [f.name for f in lake.schema().fields if not f.name.startswith("_cdc_")]
    counts = ", ".join(f"count({identifier(c)}) AS n{i}" for i, c in enumerate(names))
    query = f"SELECT count(*) AS rows, {counts} FROM "
    (in_lake,) = installation.lake_query(schema, name, query + "t")
    # ONLY: a parent's table in the lake has no rows of its children (docs/semantics.md).
    with installation.connect() as connection:
        quoted = f"{identifier(schema)}.{identifier(name)}"
        expected = connection.execute(f"{query}ONLY {quoted}".encode()).fetchone()
    titles = ["rows", *names]
    differing = [
        f"{title}: {a} in the source, {b} in the lake"
        for title, a, b in zip(titles, expected or (), in_lake, strict=True)
        if a != b
    ]
    return "; ".join(differing)
