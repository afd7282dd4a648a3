import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc.__main__ import report
from cdc.cli import COMMANDS, app
from cdc.config import load
from cdc.errors import POLICY, CdcError, ErrorKind


def wal2lake(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cdc", *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_names_every_command_and_imports_none() -> None:
    script = (
        "import sys, contextlib\n"
        "from cdc.cli import app\n"
        "with contextlib.suppress(SystemExit): app(['--help'])\n"
        "heavy = {'pyspark', 'deltalake', 'psycopg', 'confluent_kafka', 'pyarrow', 'httpx'}\n"
        "print('loaded', sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert run.stderr.strip() == "loaded []"
    assert all(f" {name} " in run.stdout for name in COMMANDS)


def test_every_command_of_the_table_exists_and_answers_help() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0, (name, result.output)
        assert "--config" in result.output, name


def test_init_writes_a_file_that_loads(tmp_path: Path) -> None:
    assert wal2lake("init", cwd=tmp_path).returncode == 0

    config = load(tmp_path / "wal2lake.yaml", {})
    assert config.source.url is None
    assert config.source.tables == ["public.*"]
    assert config.lake.path == str(tmp_path / "lake")


def test_init_takes_url_and_tables(tmp_path: Path) -> None:
    url = "postgresql://o'neil@db.example:5433/app?sslmode=require"
    run = wal2lake("init", "--source-url", url, "--tables", "*.orders", cwd=tmp_path)

    assert run.returncode == 0, run.stderr
    config = load(tmp_path / "wal2lake.yaml", {})
    assert (config.source.url, config.source.tables) == (url, ["*.orders"])


def test_init_overwrites_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("mine")

    refused = wal2lake("init", "-c", "other.yaml", cwd=tmp_path)
    assert refused.returncode == POLICY[ErrorKind.CONFIG].exit_code
    assert refused.stderr.splitlines() == [
        "error: other.yaml already exists",
        "remedy: edit it, or overwrite it with --force",
    ]
    assert file.read_text() == "mine"
    assert wal2lake("init", "-c", "other.yaml", "--force", cwd=tmp_path).returncode == 0
    assert load(file, {}).name == "wal2lake"


def test_init_refuses_a_password_and_does_not_repeat_it(tmp_path: Path) -> None:
    run = wal2lake("init", "--source-url", "postgresql://u:hunter2@h/d", cwd=tmp_path)

    assert run.returncode == POLICY[ErrorKind.CONFIG].exit_code
    assert "hunter2" not in run.stdout + run.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_in_a_folder_that_is_not_there_is_an_error_without_traceback(tmp_path: Path) -> None:
    run = wal2lake("init", "-c", "no/such/folder/w.yaml", cwd=tmp_path)

    assert run.returncode == POLICY[ErrorKind.CONFIG].exit_code
    assert run.stderr.startswith("error: no/such/folder/w.yaml cannot be written")
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["init", "--nonsense"], ["init", "extra"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    run = wal2lake(*arguments, cwd=tmp_path)

    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_two_lines_and_the_code_of_its_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = CdcError(ErrorKind.TIMEOUT, "it hangs", detail="at 3", remedy="look there")

    assert report(error) == 7
    assert capsys.readouterr().err == "error: it hangs; at 3\nremedy: look there\n"


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        ("OSError(28, 'No space left on device', 'x/log')", 10, "error: no space left on the disk"),
        ("OSError(13, 'Permission denied')", 70, "PermissionError"),
        ("OSError('Error performing GET http://a/b: 503')", 4, "error: the object store of the"),
        ("ValueError('defect')", 70, "in init\nValueError\n"),
        ("KeyboardInterrupt()", 130, ""),
    ],
)
def test_an_unexpected_error_is_reported_without_its_values(
    raised: str, code: int, said: str
) -> None:
    script = (
        "import cdc.cli.init as command\n"
        "from cdc.__main__ import main\n"
        f"def init(): raise {raised}\n"
        "command.init = init\n"
        "import sys; sys.argv = ['wal2lake', 'init']; main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert (run.returncode, said in run.stderr) == (code, True), run.stderr
