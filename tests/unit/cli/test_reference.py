from pathlib import Path

import pytest

from cdc.cli.reference.pages import pages
from cdc.config import Config
from cdc.errors import ErrorKind

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_page_in_docs_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text() == pages()[name], (
        "make it anew: python -m cdc.cli.reference docs/reference"
    )


def test_every_key_is_on_the_page_with_a_meaning() -> None:
    rows = [line for line in pages()["configuration.md"].splitlines() if line.startswith("| `")]

    assert any(line.startswith("| `source.url` |") for line in rows)
    assert len(rows) > len(Config.model_fields)
    assert [line for line in rows if line.endswith("|  |")] == []


def test_every_kind_of_error_is_on_the_page() -> None:
    text = pages()["exit-codes.md"]
    assert all(f"| {kind.value.replace('_', ' ')} |" in text for kind in ErrorKind)
