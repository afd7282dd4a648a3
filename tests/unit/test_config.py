"""Tests of the configuration file: loading, the environment, errors and secrets."""

from pathlib import Path

import pytest

from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.state.endpoints import configured_http_url
from cdc.tables import TableId

GOOD = """\
source:
  url: postgresql://app@db.example:5432/app
  tables:
    - shop.*
lake:
  path: lake
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "w.yaml"
    path.write_text(text)
    return path


def failure(folder: Path, text: str, environ: dict[str, str] | None = None) -> tuple[str, str]:
    """Load the text and return the error's message, from the file's name on, and its remedy."""
    with pytest.raises(CdcError) as caught:
        load(written(folder, text), environ or {})
    assert caught.value.kind is ErrorKind.CONFIG
    assert caught.value.remedy
    return caught.value.message.replace(f"{folder}/", ""), caught.value.remedy


def test_defaults_and_paths_relative_to_the_file(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD + "kafka:\n  # all commented out\n"), {})

    assert config.name == "wal2lake"
    assert config.lake.path == str(tmp_path / "lake")
    assert config.state_dir == tmp_path / ".wal2lake"
    assert config.kafka.bootstrap_servers is None


def test_absolute_paths_and_urls_are_kept(tmp_path: Path) -> None:
    text = GOOD.replace("path: lake", "path: s3://bucket/lake") + "state_dir: /var/lib/w\n"
    config = load(written(tmp_path, text), {})

    assert (config.lake.path, config.state_dir) == ("s3a://bucket/lake", Path("/var/lib/w"))


def test_password_file_is_relative_to_the_file(tmp_path: Path) -> None:
    text = GOOD.replace("  tables:", "  password_file: secrets/pg\n  tables:")

    assert load(written(tmp_path, text), {}).source.password_file == tmp_path / "secrets/pg"


def test_the_first_matching_pattern_decides_a_schema_policy(tmp_path: Path) -> None:
    policies = '  schema_changes: {"shop.o*": stop, "shop.*": ignore}\n'
    source = load(written(tmp_path, GOOD.replace("  tables:", f"{policies}  tables:")), {}).source

    found = [source.schema_policy(TableId(*name)) for name in (("shop", "o"), ("shop", "p"))]
    assert [*found, source.schema_policy(TableId("a", "o"))] == ["stop", "ignore", "evolve"]


def test_the_environment_overrides_keys_of_every_type(tmp_path: Path) -> None:
    environ = {
        "WAL2LAKE_SOURCE__PASSWORD": "0123",
        "WAL2LAKE_SOURCE__TABLES": "a.b, c.*",
        "WAL2LAKE_STACK__PORTS": "{postgres: 5433}",
        "WAL2LAKE_KAFKA__REPLICATION_FACTOR": "3",
        "WAL2LAKE_LAKE__PATH": "elsewhere",
        "WAL2LAKE_NAME": "shop",
        "WAL2LAKE_STATE_DIR": "state",
        "WAL2LAKE_CACHE": "not a key of the file",
        "WAL2LAKE_STATE": "nor this",
        "OTHER_SOURCE__URL": "nor this",
    }
    config = load(written(tmp_path, GOOD), environ)

    assert config.source.password is not None
    assert config.source.password.get_secret_value() == "0123"
    assert config.source.tables == ["a.b", "c.*"]
    assert config.source.url == "postgresql://app@db.example:5432/app"
    assert config.stack.ports == {"postgres": 5433}
    assert config.kafka.replication_factor == 3
    assert config.lake.path == str(tmp_path / "elsewhere")
    assert (config.name, config.state_dir) == ("shop", tmp_path / "state")


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (
            GOOD.replace("tables", "tabels"),
            "w.yaml:1: source.tables: missing",
            "add it",
        ),
        (GOOD + "kafka:\n  zoo: x:1\n", "w.yaml:8: kafka.zoo: unknown key", "remove"),
        (
            GOOD + "kafka:\n  bootstrap: x:1\n",
            "w.yaml:8: kafka.bootstrap: unknown key",
            "did you mean bootstrap_servers?",
        ),
        (GOOD + "kafak: {}\n", "w.yaml:7: kafak: unknown key", "did you mean kafka?"),
        (
            GOOD + "job:\n  merge_thread: 2\n",
            "w.yaml:8: job.merge_thread: unknown key",
            "did you mean merge_threads?",
        ),
        ("lake:\n  path: x\n", "w.yaml: source: missing", "add it"),
        (
            GOOD + "job:\n  merge_threads: many\n",
            "w.yaml:8: job.merge_threads: input should be a valid integer",
            "correct the value",
        ),
        (
            GOOD + "job:\n  merge_threads: 0\n",
            "w.yaml:8: job.merge_threads: input should be greater than or equal to 1",
            "correct the value",
        ),
        (
            GOOD.replace("shop.*", "shop"),
            "w.yaml:3: source.tables: 'shop' is not of the form schema.table",
            "correct the value",
        ),
        (
            GOOD.replace("shop.*", "[1]"),
            "w.yaml:4: source.tables.0: input should be a valid string",
            "correct the value",
        ),
        (
            GOOD.replace("shop.*", "wal2lake.heartbeat"),
            "w.yaml:3: source.tables: 'wal2lake.heartbeat' is in the schema of wal2lake's own",
            "correct the value",
        ),
        (
            GOOD.replace("  tables:", "  schema_changes: {shop.*: follow}\n  tables:"),
            "w.yaml:3: source.schema_changes.shop.*: input should be 'evolve', 'ignore' or 'stop'",
            "correct the value",
        ),
        (
            GOOD.replace("postgresql:", "mysql:"),
            "w.yaml:2: source.url: must start with postgresql://",
            "correct the value",
        ),
        (GOOD + "name: Shop!\n", "w.yaml:7: name: must begin with a lower-case letter", "correct"),
        (GOOD + "lake:\n  path: y\n", "w.yaml:7: lake is given twice", "keep one"),
        (GOOD + "kafka: broker\n", "w.yaml:7: kafka: input should be a valid dictionary", ""),
        (
            GOOD.replace("shop.*", "*.orders"),
            "w.yaml:4: not YAML: ",
            "quote values",
        ),
        (GOOD + "\tjob: x\n", "w.yaml:7: not YAML: found character '\\t'", "indent with spaces"),
        ("", "w.yaml has no keys", "wal2lake init"),
        ("- a\n", "w.yaml has no keys", "wal2lake init"),
    ],
)
def test_an_error_names_key_line_and_remedy(
    tmp_path: Path, text: str, message: str, remedy: str
) -> None:
    found, advice = failure(tmp_path, text)

    assert found.startswith(message)
    assert remedy in advice


def test_an_error_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    message, _ = failure(tmp_path, GOOD, {"WAL2LAKE_KAFKA__REPLICATION_FACTOR": "x"})
    assert message.startswith("WAL2LAKE_KAFKA__REPLICATION_FACTOR: kafka.replication_factor: ")

    message, remedy = failure(tmp_path, GOOD, {"WAL2LAKE_SOURCE__PASWORD": "hunter2"})
    assert message == "WAL2LAKE_SOURCE__PASWORD: source.pasword: unknown key"
    assert remedy == "did you mean password?"


def test_a_missing_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="no configuration file") as caught:
        load(tmp_path / "absent.yaml", {})
    assert "wal2lake init" in caught.value.remedy


def test_a_folder_or_binary_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="cannot be read"):
        load(tmp_path, {})
    (tmp_path / "w.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CdcError, match="cannot be read"):
        load(tmp_path / "w.yaml", {})


WORKER = GOOD + "\nconnect:\n  url: http://connect:8083\n"


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ("  user: u\n", "go together"),
        ("  password: hunter2\n", "go together"),
        ("  user: u\n  password: hunter2\n  password_file: f\n", "more than once"),
    ],
)
def test_an_incomplete_or_doubled_login_is_refused(tmp_path: Path, keys: str, error: str) -> None:
    with pytest.raises(CdcError, match=error) as caught:
        load(written(tmp_path, WORKER + keys), {})
    assert "hunter2" not in str(caught.value)


def test_a_login_for_an_embedded_worker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="which is not set"):
        load(written(tmp_path, GOOD + "\nconnect:\n  user: u\n  password: p\n"), {})


REGISTRY = GOOD + "\nregistry:\n  url: https://registry:8443\n"
LOGIN = "  user: u\n  password: hunter2\n"
OWN_WORKER = "connect:\n  url: https://connect:8083\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (REGISTRY + "  user: u\n", "go together"),
        (REGISTRY + "  user: u\n  password: hunter2\n  password_file: f\n", "more than once"),
        (GOOD + "\nregistry:\n" + LOGIN, "registry.url, which is not set"),
        (GOOD + "\nregistry:\n  ca_file: c\n", "registry.url, which is not set"),
        (GOOD + "\nconnect:\n  ca_file: c\n", "connect.url, which is not set"),
        (WORKER + "  ca_file: c\n", "begins with https://"),
        (REGISTRY.replace("https", "http") + "  ca_file: c\n", "begins with https://"),
        (REGISTRY.replace("//registry", "//u:hunter2@registry"), "contains a login"),
        (WORKER + "  registry_url: http://u:hunter2@r\n", "contains a login"),
        (REGISTRY + LOGIN + OWN_WORKER, "connect.registry_password is missing"),
        (REGISTRY + LOGIN + OWN_WORKER + "  registry_password: hunter2\n", "must be a reference"),
        (REGISTRY + OWN_WORKER + "  registry_password: ${env:R}\n", "registry.user is not"),
    ],
)
def test_a_login_or_ca_that_could_not_be_used_is_refused(
    tmp_path: Path, text: str, error: str
) -> None:
    with pytest.raises(CdcError, match=error) as caught:
        load(written(tmp_path, text), {})
    assert "hunter2" not in str(caught.value)
    assert ": : " not in str(caught.value)


def test_files_of_certificates_are_relative_to_the_configuration(tmp_path: Path) -> None:
    text = REGISTRY + "  ca_file: ca.crt\nkafka:\n  bootstrap_servers: k:1\n  ca_file: tls/ca\n"
    config = load(written(tmp_path, text), {})
    assert config.registry.ca_file == tmp_path / "ca.crt"
    assert config.kafka.ca_file == tmp_path / "tls/ca"


@pytest.mark.parametrize("by", ["environment", "file"])
def test_the_worker_s_password_comes_from_environment_or_file(tmp_path: Path, by: str) -> None:
    (tmp_path / "login").write_text("p@ss\n")
    keys = "  user: u\n" + ("  password_file: login\n" if by == "file" else "")
    environ = {"WAL2LAKE_CONNECT__PASSWORD": "p@ss"} if by == "environment" else {}
    config = load(written(tmp_path, WORKER + keys), environ)

    assert configured_http_url("connect", config.connect) == "http://u:p%40ss@connect:8083"
    assert "p@ss" not in repr(config)


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("app@", "app:hunter2@").replace("postgresql", "mysql"),
        GOOD.replace("  tables:", "  password: [hunter2]\n  tables:"),
        GOOD.replace("  tables:", "  password: hunter2: x\n  tables:"),
        GOOD.replace("  tables:", '  password: "hunter2\n  tables:'),
        GOOD.replace("  tables:", "  password: hunter2\n  password_file: x\n  tables:"),
        GOOD.replace("app@", "app:hunter2@").replace("  tables:", "  password_file: x\n  tables:"),
    ],
)
def test_an_error_never_contains_the_password(tmp_path: Path, text: str) -> None:
    with pytest.raises(CdcError) as caught:
        load(written(tmp_path, text), {})
    error = caught.value
    assert "hunter2" not in f"{error} {error!r} {error.__cause__} {error.__context__!r}"


def test_the_configuration_can_be_printed_without_its_secrets(tmp_path: Path) -> None:
    text = GOOD.replace("app@", "app:hunter2@")
    by_url = load(written(tmp_path, text), {})
    by_variable = load(written(tmp_path, GOOD), {"WAL2LAKE_SOURCE__PASSWORD": "hunter2"})

    for config in (by_url, by_variable):
        assert isinstance(config, Config)
        assert "hunter2" not in f"{config} {config!r}"
