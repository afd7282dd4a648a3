"""A value that is wrong, or that would put a secret into a ConfigMap, is refused by its name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr

from cdc.config import Config, Section
from tests.chart.rendered import CHART, VALUES, Chart, named
from tools.kubernetes import values_schema

CANARY: Final = "canary-8f1c"
OWN_WORKER: Final = ("--set", "worker.enabled=false,config.connect.url=http://c:8083")
REFERENCE: Final = "--set=config.connect.source_password=${env:X}"

WRONG: Final = [
    (["replicas=2"], "'replicas'"),
    (["config.kafka.bootstrap_server=k:1"], "'/config/kafka': additional properties"),
    (["config.kafka.bootstrap_servers=null"], "missing property 'bootstrap_servers'"),
    (["config.registry.url=null"], "missing property 'url'"),
    (["config.registry=null"], "missing property 'registry'"),
    (["config.source.url=null"], "missing property 'url'"),
    (["config.source.tables=null"], "missing property 'tables'"),
    (["config.source.tables=shop"], "'/config/source/tables': got string"),
    (["config.source.snapshot=both"], "'/config/source/snapshot'"),
    (["config.job.merge_threads=0"], "'/config/job/merge_threads': minimum"),
    (["config.lake.path=/data"], "'/config/lake/path'"),
    (["config.state_dir=/elsewhere"], "'state_dir'"),
    (["config.monitor.listen=0.0.0.0:1"], "'monitor'"),
    (["config.stack.ports.kafka=1"], "'stack'"),
    (["monitor.port=80"], "'/monitor/port'"),
    (["lease.seconds=5"], "'/lease/seconds'"),
    (["podDisruptionBudget.maxUnavailable=2"], "'/podDisruptionBudget/maxUnavailable'"),
    (["persistence.state.accessMode=ReadWriteMany"], "'/persistence/state/accessMode'"),
    (["persistence.lake.size=much"], "'/persistence/lake/size'"),
    (["image.tags=1"], "'/image': additional properties 'tags'"),
    (["secrets={Not A Name}"], "'/secrets/0'"),
    (["networkPolicy.sources.to=null"], "'/networkPolicy': additional properties 'sources'"),
    (["worker.enabled=false"], "config.connect.url: missing"),
    (["worker.enabled=false", "config.connect.url=http://c"], "config.connect.source_password"),
    (["config.connect.url=http://c"], "config.connect: url and source_password are the chart's"),
    (["secrets={other}"], "config.source.password_file: /run/secrets/wal2lake-source/password"),
    (["config.source.password_file=/state/password"], "config.source.password_file: /state"),
]
LEAKS: Final = [
    ("'/config/source/url'", f"config.source.url=postgresql://me:{CANARY}@db/app"),
    ("'/config/source/url'", f"config.source.url=postgresql://me@db/app?sslpassword={CANARY}"),
    ("'/config/source/url'", f"config.source.url=postgresql://me@db/app?password={CANARY}"),
    ("'/config/registry/url'", f"config.registry.url=http://me:{CANARY}@registry"),
    ("'/config/connect/url'", f"config.connect.url=http://me:{CANARY}@connect"),
    ("'/config/connect/source_url'", f"config.connect.source_url=postgresql://a:{CANARY}@b/c"),
    ("'/config/connect/source_password'", f"config.connect.source_password={CANARY}"),
    ("'/config/lake/path'", f"config.lake.path=s3://me:{CANARY}@bucket/lake"),
    ("'fs.s3a.secret.key'", rf"config.spark.conf.fs\.s3a\.secret\.key={CANARY}"),
    ("'fs.s3a.access.key'", rf"config.spark.conf.fs\.s3a\.access\.key={CANARY}"),
    ("sasl.jaas.config", rf"worker.properties.sasl\.jaas\.config={CANARY}"),
    ("'ssl.key.password'", rf"worker.properties.ssl\.key\.password={CANARY}"),
]


def secret_keys(section: type[Any], above: str = "config") -> Iterator[str]:
    """Yield every key of the configuration whose value is a secret, by its type."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from secret_keys(kind, f"{above}.{name}")
        elif SecretStr in {kind, *getattr(kind, "__args__", ())}:
            yield f"{above}.{name}"


SECRET_KEYS: Final = sorted(secret_keys(Config))


def refusal(chart: Chart, *options: str) -> str:
    done = chart.render(*options)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.integration
@pytest.mark.parametrize(("wrong", "name"), WRONG, ids=lambda part: "+".join(part)[:50])
def test_a_wrong_value_is_refused_by_its_name(chart: Chart, wrong: list[str], name: str) -> None:
    assert name in refusal(chart, *(f"--set={one}" for one in wrong))


@pytest.mark.integration
@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_secret_is_no_value(chart: Chart, key: str) -> None:
    said = refusal(chart, "--set", f"{key}={CANARY}")

    assert f"additional properties '{key.rpartition('.')[2]}' not allowed" in said
    assert CANARY not in said


@pytest.mark.integration
@pytest.mark.parametrize(("name", "leak"), LEAKS, ids=lambda part: part.partition("=")[0])
def test_a_secret_in_another_value_is_refused_and_not_repeated(
    chart: Chart, name: str, leak: str
) -> None:
    said = refusal(chart, *OWN_WORKER, REFERENCE, "--set", leak)

    assert name in said
    assert CANARY not in said


@pytest.mark.integration
@pytest.mark.parametrize(
    "good",
    [
        "config.lake.path=abfss://lake@account.dfs.core.windows.net/shop",
        "config.source.url=postgres://me@[::1]:5432/app?sslmode=verify-full",
        "config.connect.source_url=postgresql://me@db:5432/app",
        r"config.spark.conf.fs\.s3a\.aws\.credentials\.provider=a.Class",
    ],
)
def test_what_looks_like_a_secret_and_is_none_is_accepted(chart: Chart, good: str) -> None:
    done = chart.render(*OWN_WORKER, REFERENCE, "--set", good)

    assert done.returncode == 0, done.stderr


def test_there_are_secret_keys() -> None:
    assert {"config.source.password", "config.connect.password"} <= set(SECRET_KEYS)


def test_the_schema_is_made_from_the_configuration() -> None:
    again = "make it anew: python -m tools.kubernetes.values_schema"
    assert values_schema.text() == (CHART / "values.schema.json").read_text(), again


@pytest.mark.integration
@pytest.mark.parametrize("values", VALUES, ids=named)
def test_no_secret_is_made_and_none_is_in_a_config_map(chart: Chart, values: Path | None) -> None:
    manifests = chart.manifests(values)
    maps = [text for m in manifests if m["kind"] == "ConfigMap" for text in m["data"].values()]
    lines = [line.strip() for text in maps for line in text.splitlines()]
    secret = [line for line in lines if "password" in line and not line.startswith("#")]

    assert [m for m in manifests if m["kind"] == "Secret"] == []
    assert secret or named(values) == "bare"
    assert [
        line for line in secret if "_file: /run/secrets/" not in line and "${" not in line
    ] == []
