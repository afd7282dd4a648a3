"""Test the connector's configuration: the values filled in, and the form of the password."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from cdc.capture.change_captured import settings_for
from cdc.capture.continuity import marker_topic
from cdc.capture.topic_specs import topic_specs
from cdc.config import Config, Connect, Lake, Registry, Source
from cdc.events.structure.declared import DeclaredType, source_column
from cdc.job.topics_seen import connector_topics
from cdc.kafka.broker import Broker
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector.settings import (
    FIRST,
    clear_password,
    configured_tables,
    passed_over_tables,
    pattern,
    settings,
    with_excluded,
    with_passed_over,
)
from cdc.source.notes.triggers import script
from cdc.source.server.finding import Finding, Level
from cdc.source.server.printing import PRINTING
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE, TableId, TableMode

ROOT = Path(__file__).resolve().parents[3]
SECRET = "s3cr$t%21"
ENDPOINTS = Endpoints(
    source_url="postgresql://app:s3cr%24t%2521@db:5433/shop?sslmode=require",
    kafka=Broker("broker:9092"),
    connect="http://connect:8083",
    registry="http://registry:8080",
)


def config(connect: Connect | None = None) -> Config:
    return Config(
        name="pipe",
        source=Source(tables=["shop.*"]),
        lake=Lake(path="/lake"),
        connect=connect or Connect(),
        state_dir=Path("/state"),
    )


def pipeline(connect: Connect | None = None) -> Pipeline:
    return Pipeline(config(connect), ENDPOINTS)


def table(name: str, **generated: bool) -> SourceTable:
    columns = (
        source_column(
            column, DeclaredType(name="int4", kind="b"), not_null=True, generated=is_generated
        )
        for column, is_generated in {"id": False, **generated}.items()
    )
    return SourceTable(
        table=TableId("shop", name),
        oid=1,
        columns=tuple(columns),
        key=("id",),
        mode=TableMode.KEYED,
        replica_identity="d",
    )


def test_an_unfit_table_is_passed_over_and_still_counts_as_captured() -> None:
    unfit = Finding.error("shop.twins", "two columns have one name", remedy="rename one of them")
    twins = replace(table("twins"), unfit=unfit)
    unpublished = [
        replace(twins, in_publication=False),
        replace(table("gone"), unfit=unfit, in_publication=False, oid=0),
        replace(table("new"), in_publication=False),
    ]
    made = settings(pipeline(), [table("orders"), *unpublished], placeholder="t")
    names = {TableId("shop", name) for name in ("orders", "twins", "gone", "new")}
    assert configured_tables(made) == names
    assert passed_over_tables(made) == {TableId("shop", "twins")}
    assert "twins" not in made["table.include.list"]
    assert with_passed_over(made, ()) == settings(
        pipeline(), [table("orders"), twins, *unpublished[1:]], placeholder="t"
    )


def test_a_new_column_that_does_not_arrive_is_left_out_once() -> None:
    before = settings(pipeline(), [table("orders")], placeholder="t")
    after = with_excluded(before, table("orders", total=True))
    assert after == settings(pipeline(), [table("orders", total=True)], placeholder="t")
    assert with_excluded(after, table("orders", total=True)) == after


def test_filled_in() -> None:
    made = settings(pipeline(), [table("orders", total=True), table("a-b")], placeholder="token")
    expected = {
        "database.hostname": "db",
        "database.port": "5433",
        "database.user": "app",
        "database.dbname": "shop",
        "database.sslmode": "require",
        "topic.prefix": "pipe",
        "slot.name": "pipe",
        "publication.name": "pipe",
        "table.include.list": r"(?-i:wal2lake[.]heartbeat),(?-i:wal2lake[.]structure),"
        r"(?-i:shop[.]a\x{2d}b),(?-i:shop[.]orders)",
        "column.exclude.list": r"(?-i:shop[.]orders[.]total)",
        "unavailable.value.placeholder": "token",
        "transforms.key.type": "org.apache.kafka.connect.transforms.HoistField$Key",
        "value.converter.apicurio.registry.url": "http://registry:8080/apis/registry/v2",
    }
    assert {key: made[key] for key in expected} == expected
    assert not [text for text in made.values() if re.search(r"\$[a-z]", text)]


def test_nothing_excluded_is_no_list() -> None:
    made = settings(pipeline(), [table("orders")], placeholder="token")
    assert "column.exclude.list" not in made


def with_columns(name: str, declared: dict[str, str]) -> SourceTable:
    columns = tuple(
        source_column(n, DeclaredType(name=t, kind="b"), not_null=False, generated=False)
        for n, t in declared.items()
    )
    return replace(table(name), columns=columns)


def test_the_snapshot_reads_dates_as_numbers() -> None:
    """Names cannot escape their quotes, and Kafka Connect finds no reference in them."""
    odd = 'a"${x}'
    tables = [with_columns("a-b", {odd: "date", "v": "int4", "lost": "timetz"}), table("orders")]

    made = settings(pipeline(), tables, placeholder="token")

    assert made["snapshot.select.statement.overrides"] == "shop.a-b"
    select = made["snapshot.select.statement.overrides.shop.a-b"]
    name = r'U&"a\+000022\+000024\+00007Bx\+00007D"'
    assert select == (
        f"SELECT CASE WHEN {name} = 'infinity' THEN 2146033979 WHEN {name} = '-infinity'"
        f" THEN -2147472691 ELSE {name} - date '1970-01-01' END AS {name}, U&\"v\""
        r' FROM ONLY U&"shop".U&"a\+00002Db"'
    )
    assert "$" not in select


def test_the_snapshot_reads_a_parent_without_its_children() -> None:
    parent = replace(with_columns("t", {"id": "int4"}), has_children=True)
    made = settings(pipeline(), [parent, table("orders")], placeholder="token")

    assert made["snapshot.select.statement.overrides"] == "shop.t"
    select = made["snapshot.select.statement.overrides.shop.t"]
    assert select == 'SELECT U&"id" FROM ONLY U&"shop".U&"t"'


def test_without_either_no_select_is_replaced() -> None:
    made = settings(pipeline(), [table("orders")], placeholder="token")

    assert not [key for key in made if key.startswith("snapshot.select")]


@pytest.mark.parametrize(
    ("connect", "expected"),
    [
        (Connect(), "${file:/state/secrets/source.properties:password}"),
        (Connect(url="http://c", source_password="${env:PG}"), "${env:PG}"),
        (Connect(url="http://c"), SECRET),
    ],
)
def test_password(connect: Connect, expected: str) -> None:
    made = settings(pipeline(connect), [table("orders")], placeholder="token")
    assert made["database.password"] == expected
    others = {key: text for key, text in made.items() if key != "database.password"}
    assert SECRET not in json.dumps(others)


def _converters(made: dict[str, str], names: tuple[str, ...]) -> dict[str, str | None]:
    """Return these settings of the converters, which must be the same for keys and values."""
    of_keys, of_values = (
        {name: made.get(f"{of}.converter.apicurio.{name}") for name in names}
        for of in ("key", "value")
    )
    assert of_keys == of_values
    return of_keys


_REACHING = (
    "registry.url",
    "auth.username",
    "auth.password",
    "rest.request.ssl.ca-bundle.location",
)


@pytest.mark.parametrize(
    ("connect", "expected"),
    [
        (Connect(), ("${file:/state/secrets/source.properties:registry_password}", "/ca.crt")),
        (
            Connect(
                url="http://c", registry_password="${env:REGISTRY}", registry_ca_file="/worker/ca"
            ),
            ("${env:REGISTRY}", "/worker/ca"),
        ),
    ],
)
def test_the_converters_log_in_at_the_registry(connect: Connect, expected: tuple[str, str]) -> None:
    registry = Registry(
        url="https://r:8443", user="reader", password=SecretStr("r3ad"), ca_file=Path("/ca.crt")
    )
    url = "https://reader:r3ad@r:8443?ca_file=%2Fca.crt"
    both = config().model_copy(update={"registry": registry, "connect": connect})
    given = Pipeline(both, replace(ENDPOINTS, registry=url))

    made = settings(given, [table("orders")], placeholder="token")

    found = _converters(made, _REACHING)
    assert list(found.values()) == ["https://r:8443/apis/registry/v2", "reader", *expected]
    assert "r3ad" not in json.dumps(made)


def test_a_registry_without_login_leaves_nothing_to_set() -> None:
    made = settings(pipeline(), [table("orders")], placeholder="token")
    found = _converters(made, _REACHING)
    assert list(found.values()) == ["http://registry:8080/apis/registry/v2", None, None, None]


@pytest.mark.parametrize(
    ("connect", "source_url", "warned"),
    [
        (Connect(), ENDPOINTS.source_url, False),
        (Connect(url="http://c", source_password="${env:PG}"), ENDPOINTS.source_url, False),
        (Connect(url="http://c"), "postgresql://app@db/shop", False),
        (Connect(url="http://c"), ENDPOINTS.source_url, True),
    ],
)
def test_a_password_in_clear_is_warned_of(
    connect: Connect, source_url: str, *, warned: bool
) -> None:
    """The warning appears exactly if the connector's settings hold the password."""
    given = Pipeline(config(connect), replace(ENDPOINTS, source_url=source_url))
    found = clear_password(given)
    assert (found is not None) is warned
    made = settings(given, [table("orders")], placeholder="token")
    assert (made["database.password"] == SECRET) is warned
    if found is not None:
        assert found.level is Level.WARNING
        assert SECRET not in f"{found.message}{found.remedy}"


def test_other_addresses_for_the_worker() -> None:
    connect = Connect(
        url="http://c", source_url="postgresql://app@postgres/shop", registry_url="http://r/"
    )
    made = settings(pipeline(connect), [table("orders")], placeholder="token")
    assert (made["database.hostname"], made["database.port"]) == ("postgres", "5432")
    assert made["key.converter.apicurio.registry.url"] == "http://r/apis/registry/v2"


def test_pattern_names_one_table() -> None:
    assert re.fullmatch(pattern(TableId("a.b", "c")).replace(r"\x{2e}", r"\x2e"), "a.b.c")
    assert not re.fullmatch(pattern(TableId("shop", "orders")), "shopXorders")
    assert not re.fullmatch(pattern(TableId("shop", "orders")), "shop.Orders", re.IGNORECASE)


def test_captured_tables_are_read_back_from_the_settings() -> None:
    tables = [replace(table("a"), table=TableId("sh,op", "a.b[.]\\x{2c} é")), table("orders")]
    made = settings(pipeline(), tables, placeholder="token")

    assert configured_tables(made) == {found.table for found in tables}
    assert configured_tables(None) == frozenset()


def test_captured_tables_are_read_back_from_an_earlier_version_s_settings() -> None:
    listed = r"wal2lake[.]heartbeat,shop[.]orders,shop[.]a\x{2d}b"

    found = configured_tables({"table.include.list": listed})

    assert found == {TableId("shop", "orders"), TableId("shop", "a-b")}


def test_every_setting_is_explained() -> None:
    """connectors/README.md explains every setting that is not a name or an address."""
    readme = (ROOT / "connectors" / "README.md").read_text()
    template = json.loads((ROOT / "connectors" / "postgres-source.json").read_text())
    plain = re.compile(r"\$(host|port|user|password|database|sslmode|name)$")
    obvious = {"connector.class", "tasks.max", "plugin.name"}
    unexplained = [
        key
        for key, text in template.items()
        if not plain.fullmatch(text)
        and key not in obvious
        and not any(part in readme for part in (f"`{key}`", f"`{key}=", f"`{key},"))
        and not key.startswith(("key.converter", "value.converter", "transforms", "producer."))
    ]
    assert unexplained == []


def test_postgres_prints_for_the_connector_as_it_does_for_us() -> None:
    made = settings(pipeline(), [table("a")], placeholder="p")
    options = re.findall(r"-c (\w+)=(\S+)", made["driver.options"])
    statements = re.findall(r"SET (\w+) = '(\w+)'", made["database.initial.statements"])
    given = {name.lower(): value for name, value in options + statements}

    # The order of a date's parts is of what Postgres reads, and the connector gives it none.
    wanted = {name: value.removesuffix(", YMD") for name, value in PRINTING.items()}
    assert wanted.items() <= given.items()


def test_the_script_for_a_superuser_is_what_up_runs() -> None:
    """Run ``python -m cdc.source.notes.triggers > connectors/structure.sql`` to regenerate it."""
    assert (ROOT / "connectors" / "structure.sql").read_text() == script()


def test_every_topic_that_the_connector_can_write_to_is_created_and_watched() -> None:
    """Topics for messages, notifications and schema changes are impossible here."""
    made = settings(pipeline(), [table("orders")], placeholder="token")
    topics = {spec.name for spec in topic_specs(config(), [table("orders")])}
    landing = ["pipe.shop.orders", STRUCTURE.topic("pipe"), marker_topic(config())]
    assert topics == set(connector_topics("pipe", landing))
    others = ("notification.", "topic.creation.", "signal.data.", "signal.kafka.")
    assert not any(name.startswith(others) for name in made)
    assert made["signal.enabled.channels"] == "source"
    excluded = re.compile(made["message.prefix.exclude.list"])
    prefixes = ("", "app", "a\nb", "a\r\u2028b", "x" * 99)
    assert all(excluded.fullmatch(prefix) for prefix in prefixes)
    assert "," not in excluded.pattern  # a comma would split it


def test_a_change_of_the_tables_keeps_who_reads_the_first_snapshot() -> None:
    """Otherwise the job, started again before the rows are read, takes them for lost."""
    before = settings(pipeline(), [table("a")], placeholder="p", snapshot=False, first="copy")

    after = settings_for(pipeline(), [table("a"), table("b")], before)

    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert after[FIRST] == "copy"
    assert changed == {"name", "table.include.list"}
