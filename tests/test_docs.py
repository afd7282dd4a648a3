"""Check that the links, commands, options, keys and files in the documents exist."""

import re
import runpy
from pathlib import Path

import pytest

from cdc.cli import COMMANDS
from cdc.config import load
from tests.documents import CHECKS, DOCUMENTS, ROOT, anchors, broken_links, code


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_document_lead_somewhere(document: Path) -> None:
    assert broken_links(document, document.read_text()) == []


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_a_document_exist(document: Path, check: str) -> None:
    assert CHECKS[check](document.read_text()) == []


@pytest.mark.parametrize(
    ("check", "text", "wrong"),
    [
        ("commands", "`wal2lake refresh`", "refresh"),
        ("commands", "`wal2lake up --epoch`", "up --epoch"),
        (
            "commands",
            "```\n.venv/bin/wal2lake sync && wal2lake quarantine drop T\n```\n",
            "quarantine drop",
        ),
        ("commands", "`wal2lake quarantine list --everything`", "quarantine list --everything"),
        ("options", "with `--into-path`", "--into-path"),
        ("targets", "```\nmake install wheels\n```\n", "wheels"),
        ("keys", "`job.merge_workers`", "job.merge_workers"),
        ("keys", "WAL2LAKE_SOURCE__PASSWD", "WAL2LAKE_SOURCE__PASSWD"),
        ("files", "`cdc/events/orders.py`", "cdc/events/orders.py"),
        ("files", "`cdc/events/{order,orders}.py`", "cdc/events/{order,orders}.py"),
        ("files", "`test_docs.py::test_nothing`", "test_docs.py::test_nothing"),
        ("files", "`python -m cdc.demonstration`", "cdc.demonstration"),
        ("reasons", "`[slot-stolen]`", "slot-stolen"),
        ("width", "word " * 25, "word " * 25),
    ],
)
def test_a_check_finds_the_wrong_name(check: str, text: str, wrong: str) -> None:
    assert CHECKS[check](text) == [wrong]


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (
            "commands",
            "```\nwal2lake down   # --not an option\nwal2lake sql \"select '--x'\" --at 17\n```\n",
        ),
        ("commands", "`drop publication wal2lake;`, the schema `wal2lake` and its tables"),
        ("commands", "`wal2lake\nup --new-epoch`"),
        ("keys", "`source.tables`, `connectors/source.sql` and `WAL2LAKE_SOURCE__PASSWORD`"),
        ("files", "`cdc/events/`, `cdc/*.py` and `tests/test_docs.py`"),
        ("width", f"| {'cell ' * 30} |\n```\n{'word ' * 25}\n```\n"),
    ],
)
def test_a_check_accepts_correct_text(check: str, text: str) -> None:
    assert CHECKS[check](text) == []


def test_a_link_to_a_heading_needs_the_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n## What `up` does\n")
    links = "[a](page.md#what-up-does) [b](page.md#what-down-does) [c](other.md) [d](#a-page)"

    assert broken_links(page, links) == ["page.md#what-down-does", "other.md"]


def test_anchors_are_those_of_github() -> None:
    assert anchors("## What `status --check` ends with\n") == {"what-status---check-ends-with"}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    listed = set(re.findall(r"\]\(([^)#]+\.md)\)", index))

    assert {page for page in pages - listed if not page.startswith("decisions/")} == {"README.md"}


def test_the_configuration_of_the_readme_is_valid(tmp_path: Path) -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "wal2lake.yaml").write_text(text)

    assert load(tmp_path / "wal2lake.yaml").source.tables == ["shop.*"]


def test_the_picture_is_drawn_from_the_recorded_output() -> None:
    pictures = ROOT / "docs" / "pictures"
    drawing = runpy.run_path(str(pictures / "draw.py"))["drawing"]
    drawn = drawing((pictures / "terminal.txt").read_text())

    assert drawn == (pictures / "terminal.svg").read_text(), "draw it again: make pictures"


def test_the_documents_name_commands_at_all() -> None:
    text = "\n".join(code(document.read_text()) for document in DOCUMENTS)

    assert {name for name in COMMANDS if f"wal2lake {name}" not in text} == set()
