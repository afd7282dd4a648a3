"""Fifty definitions are checked without an engine."""

import subprocess
import sys
from pathlib import Path

from tests.test_layers import ENGINES, ROOT

QUERY = """\
SELECT o.country, date_trunc('day', o.at) AS day, sum(o.amount) AS revenue
FROM shop.orders AS o LEFT JOIN shop.customers AS c ON c.id = o.customer_id
GROUP BY 1, 2
"""
CHECK = """\
import sys
from pathlib import Path
from cdc.derive.definition.folder import read_definitions
from cdc.derive.definition.graph import in_order
definitions, problems = read_definitions(Path(sys.argv[1]))
ordered, circles = in_order(definitions)
print(len(ordered), len(problems) + len(circles), *sorted(set(sys.modules) & set(sys.argv[2:])))
"""


def test_fifty_files_are_checked_without_an_engine(tmp_path: Path) -> None:
    for i in range(50):
        (tmp_path / f"marts.t{i}.sql").write_text(QUERY)

    run = subprocess.run(
        [sys.executable, "-c", CHECK, str(tmp_path), *ENGINES, "duckdb"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.split() == ["50", "0"]
