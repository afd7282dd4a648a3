"""Makes tables of special values: beyond limits, large, in keys, of refused types."""

from hypothesis import strategies as st

from tests.kinds.columns import SCHEMA, Kind, kind
from tests.kinds.pipeline import Pipeline

NESTED = {
    **dict.fromkeys(("text", "varchar(5)", "char(3)", "bytea"), "{{a,b}}"),
    **dict.fromkeys(("int4", "int8", "json", "jsonb"), "{{1,2},{3,4}}"),
    "uuid": "{{00000000-0000-0000-0000-00000000000a}}",
    "date": "{{2020-01-01}}",
}
NULLS = ("int4", "int8", "bytea", "date")
LIMITS: dict[str, tuple[str, list[str]]] = {
    "numeric": ("numeric(10,2)", ["NaN"]),
    "date": ("date", ["infinity", "-infinity", "0001-12-31 BC", "10000-01-01"]),
    "timestamp": ("timestamp", ["infinity", "-infinity", "0044-03-15 00:00 BC", "294276-12-31"]),
    "timestamptz": ("timestamptz", ["infinity", "0044-03-15 00:00+00 BC", "10000-01-01 00:00+00"]),
    "far_text": ("timestamp", ["294276-12-31 23:59:59.999999"]),
    "d_numeric": (f"{SCHEMA}.d_numeric", ["NaN"]),
    "d_text": (f"{SCHEMA}.d_text", ["NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY"]),
    **{
        f"a_{name.partition('(')[0]}": (
            f"{name}[]",
            [nested, *(["{NULL}", "{NULL,NULL}"] if name in NULLS else [])],
        )
        for name, nested in NESTED.items()
    },
}
"""Column -> its type and values that the lake cannot hold."""

ALTERED = {
    "i": ("interval", "infinity"),
    "d": ("date[]", "{0044-03-15 BC}"),
    "a": ("int[]", "[0:1]={1,2}"),
    "far_text": ("timestamp", "294276-12-31 00:00:00"),  # its microseconds exceed 64 bits
}
"""Values that arrive altered without a sign in the event; ``verify`` must report them."""

REFUSED: dict[str, str] = {
    "timetz": "12:00:00+01:00:30",
    "varbit": "",
    "bit(129)": "1" * 129,
    "point": "(1,2)",
    "line": "{1,-1,0}",
    "lseg": "[(0,0),(1,1)]",
    "box": "(1,1),(0,0)",
    "path": "[(0,0),(1,1)]",
    "polygon": "((0,0),(1,1),(1,0))",
    "circle": "<(0,0),1>",
    "int2vector": "1 2",
    "oidvector": "1 2",
    "refcursor": "no such cursor",
    "aclitem": "postgres=r/postgres",
    "regclass": "pg_class",
    "regtype": "integer",
    "regproc": "now",
    "regprocedure": "now()",
    "regoper": "||/",
    "regoperator": "*(integer,integer)",
    "regrole": "postgres",
    "regnamespace": "pg_catalog",
    "regconfig": "english",
    "regdictionary": "simple",
    "regcollation": '"C"',
    **dict.fromkeys(("bool[]", "float8[]", "float4[]", "int2[]", "oid[]"), "{1,NULL}"),
    "numeric[]": "{NaN,NULL}",
    "timestamp[]": "{1500-01-01,NULL}",
    "timestamptz[]": "{0044-03-15 00:00+00 BC,NULL}",
    "time[]": "{24:00:00}",
    "timetz[]": "{12:00:00+01}",
    "interval[]": "{infinity}",
    "inet[]": "{10.0.0.1,NULL}",
    "int4range[]": '{"[1,2)",NULL}',
    "int4multirange[]": "{NULL}",
    "hstore[]": "{a=>1}",
    "ltree[]": "{a,NULL}",
    "bit(3)[]": "{101}",
    "pg_lsn[]": "{NULL}",
    "int4[][]": "{{1,2},{3,4}}",
    f"{SCHEMA}.mood[]": "{sad,NULL}",
    f"{SCHEMA}.pair[]": "{NULL}",
    f"{SCHEMA}.d_int[]": "{1,NULL}",
    f"{SCHEMA}.d_array": "{{1,2},{3,4}}",
    f"{SCHEMA}.d_bytea": "\\x00",
    f"{SCHEMA}.d_bit1": "1",
}


_FROM = "FROM generate_series(2, 2000) g"
_HASHES = "SELECT string_agg(md5(g::text), '{}') FROM generate_series(1, 600) g"


def _many(item: str) -> str:
    return f"SELECT array_agg({item}) FROM generate_series(1, 3000) g"


LARGE: dict[str, tuple[str, str]] = {
    "t": ("text", _HASHES.format("")),
    "by": ("bytea", f"SELECT decode(({_HASHES.format('')}), 'hex')"),
    "nu": ("numeric", "SELECT repeat('1234567', 3000)::numeric"),
    "jb": ("jsonb", f"SELECT to_jsonb(({_HASHES.format('')}))"),
    "jp": ("jsonpath", f"SELECT ('$.\"' || ({_HASHES.format('')}) || '\"')::jsonpath"),
    "x": ("xml", f"SELECT xmlparse(content '<a>' || ({_HASHES.format('')}) || '</a>')"),
    "tsv": ("tsvector", f"SELECT ({_HASHES.format(' ')})::tsvector"),
    "ct": ("citext", f"SELECT ({_HASHES.format('')})::citext"),
    "lt": ("ltree", f"SELECT ({_HASHES.format('.')})::ltree"),
    "h": ("hstore", f"SELECT hstore('k', ({_HASHES.format('')}))"),
    "c": (f"{SCHEMA}.pair", f"SELECT (1, ({_HASHES.format('')}))::{SCHEMA}.pair"),
    "m": ("int4multirange", "SELECT range_agg(int4range(g * 3, g * 3 + 1)) " + _FROM),
    "r": ("numrange", "SELECT numrange(0, repeat('9', 10000)::numeric)"),
    "snap": ("pg_snapshot", "SELECT ('1:9999:' || string_agg(g::text, ','))::pg_snapshot " + _FROM),
    "dt": (f"{SCHEMA}.d_text", _HASHES.format("")),
    "dh": (f"{SCHEMA}.d_hstore", f"SELECT hstore('k', ({_HASHES.format('')}))"),
    "dc": (f"{SCHEMA}.d_pair", f"SELECT (1, ({_HASHES.format('')}))::{SCHEMA}.pair"),
    "a_t": ("text[]", _many("md5(g::text)")),
    "a_vc": ("varchar(32)[]", _many("md5(g::text)::varchar(32)")),
    "a_ch": ("char(32)[]", _many("md5(g::text)::char(32)")),
    "a_u": ("uuid[]", _many("md5(g::text)::uuid")),
    "a_jb": ("jsonb[]", _many("to_jsonb(md5(g::text))")),
    "a_j": ("json[]", _many("to_json(md5(g::text))")),
    "a_by": ("bytea[]", _many("decode(md5(g::text), 'hex')")),
    "a_i4": ("int4[]", _many("g")),
    "a_i8": ("int8[]", _many("g::int8")),
    "a_d": ("date[]", _many("date '2020-01-01' + g")),
}  # fmt: skip
"""Column -> its type and a query for a value that is stored out of line."""

KEYS: dict[str, tuple[str, str]] = {
    "a": ("numeric(10,2)", "g::numeric / 4"),
    "b": ("pg_lsn", "('0/' || to_hex(g))::pg_lsn"),
    "c": ("date", "date '1582-10-01' + g"),
    "d": ("timestamptz", "timestamptz '2020-01-01 00:00:00.000001Z' + g * interval '1 s'"),
    "e": ("bytea", "decode(md5(g::text), 'hex')"),
    "f": ("uuid", "md5(g::text)::uuid"),
    "g": ("bit(5)", "g::bit(5)"),
    "h": (f"{SCHEMA}.mood", f"'sad'::{SCHEMA}.mood"),
    "i": (f"{SCHEMA}.d_pair", f"(g, 'x')::{SCHEMA}.pair"),
    "j": ("interval", "g * interval '1 day'"),
    "k": ("xid8", "g::text::xid8"),
    "l": ("char(5)", "'ab'"),
    "m": (f"{SCHEMA}.d_numeric", "g::numeric / 4"),
}


DEFAULTS: dict[str, tuple[str, str]] = {
    "a": ("pg_lsn", "'16/B374D848'"),
    "b": ("jsonpath", "'$.a'"),
    "c": (f"{SCHEMA}.pair", "(1, 'x')"),
    "d": ("int4multirange", "'{[1,2)}'"),
    "e": ("bit(5)", "B'00101'"),
    "f": (f"{SCHEMA}.mood", "'hap py'"),
    "g": ("interval", "'1 day'"),
    "h": ("date", "'1582-10-10'"),
    "i": ("date", "current_date"),
    "j": ("timestamptz", "now()"),
    "k": ("timestamp", "'1000-01-01 00:00'"),
    "l": ("numeric(5,-2)", "1200"),
    "m": ("bytea", "'\\x00ff'"),
    "n1": ("text[]", "'{a,NULL}'"),
    "o": ("hstore", "'a=>1'"),
    "p": ("ltree", "'a.b'"),
    "q": ("xid8", "pg_current_xact_id()"),
    "r": (f"{SCHEMA}.d_d_numeric", "1.5"),
    "s": ("time", "'24:00:00'"),
    "t": ("uuid", "gen_random_uuid()"),
    "u": ("money", "1.5"),
    "v": ("inet", "'10.0.0.1/8'"),
    "w": ('"char"', "'z'"),
    "x": ("xml", "'<a/>'"),
    "y": ("float8", "'-Infinity'"),
}
"""Column -> its type and default, which is never NULL."""


def kinds(columns: dict[str, tuple[str, str]]) -> dict[str, Kind]:
    """Return kinds that only compare; Postgres makes the values."""
    return {name: kind(declared, st.nothing()) for name, (declared, _) in columns.items()}


def create(pipeline: Pipeline) -> None:
    """Create the tables with the rows for the snapshot."""
    limits = ", ".join(f"v_{name} {declared}" for name, (declared, _) in LIMITS.items())
    altered = ", ".join(f"{name} {declared}" for name, (declared, _) in ALTERED.items())
    large = ", ".join(f"{name} {declared}" for name, (declared, _) in LARGE.items())
    external = ", ".join(f"ALTER {name} SET STORAGE EXTERNAL" for name in LARGE)
    keys = ", ".join(f"{name} {declared}" for name, (declared, _) in KEYS.items())
    defaults = ", ".join(
        f"{name} {declared} NOT NULL DEFAULT {value}"
        for name, (declared, value) in DEFAULTS.items()
    )
    nullable = ", ".join(
        f"{name} {declared} DEFAULT {value}" for name, (declared, value) in DEFAULTS.items()
    )
    made = ", ".join(made for _, made in KEYS.values())
    pipeline.execute(f"""
        CREATE DOMAIN {SCHEMA}.d_array AS int[]; CREATE DOMAIN {SCHEMA}.d_bytea AS bytea;
        CREATE DOMAIN {SCHEMA}.d_bit1 AS bit;
        CREATE TABLE {SCHEMA}.limits (id int PRIMARY KEY, n int, {limits});
        CREATE TABLE {SCHEMA}.altered (id int PRIMARY KEY, n int, {altered});
        CREATE TABLE {SCHEMA}.large (id int PRIMARY KEY, n int, {large});
        ALTER TABLE {SCHEMA}.large {external};
        CREATE TABLE {SCHEMA}.keyed (id int, n int, {keys}, PRIMARY KEY ({", ".join(KEYS)}));
        CREATE TABLE {SCHEMA}.defaults (id int PRIMARY KEY, n int, {defaults});
        INSERT INTO {SCHEMA}.defaults VALUES (1, 0);
        CREATE TABLE {SCHEMA}.nulls (id int PRIMARY KEY, n int, {nullable});
        INSERT INTO {SCHEMA}.nulls (id) VALUES (1);
        INSERT INTO {SCHEMA}.keyed SELECT g, 0, {made} FROM generate_series(1, 30) g;
    """)
    columns = ", ".join(f"c{number} {declared}" for number, declared in enumerate(REFUSED))
    pipeline.execute(f"CREATE TABLE {SCHEMA}.refused (id int PRIMARY KEY, n int, {columns})")
    insert_nulls(pipeline, 2)
    insert_limits(pipeline, 0)
    insert_refused(pipeline, 1)
    insert_altered(pipeline, 1)
    insert_large(pipeline, 1)


def insert_limits(pipeline: Pipeline, first: int) -> None:
    """Insert a row that the lake can keep, and one for each value that it cannot."""
    with pipeline.connect() as connection:
        connection.execute(f"INSERT INTO {SCHEMA}.limits (id, n) VALUES ({first}, 0)".encode())
        for number, (name, text) in enumerate(limit_values(), start=first + 1):
            query = f"INSERT INTO {SCHEMA}.limits (id, n, v_{name}) VALUES (%s, 0, %s)"
            connection.execute(query.encode(), (number, text))


def insert_nulls(pipeline: Pipeline, number: int) -> None:
    """Insert a row that is NULL in every column with a default."""
    nulls = ", ".join(["NULL"] * len(DEFAULTS))
    pipeline.execute(f"INSERT INTO {SCHEMA}.nulls VALUES ({number}, 0, {nulls})")


def limit_values() -> list[tuple[str, str]]:
    """Return each value beyond a limit with its column."""
    return [(name, text) for name, (_, texts) in LIMITS.items() for text in texts]


def insert_refused(pipeline: Pipeline, number: int) -> None:
    """Insert a row with a value of every refused type."""
    with pipeline.connect() as connection:
        marks = ", ".join(["%s"] * len(REFUSED))
        query = f"INSERT INTO {SCHEMA}.refused VALUES ({number}, 0, {marks})"
        connection.execute(query.encode(), tuple(REFUSED.values()))


def insert_altered(pipeline: Pipeline, first: int) -> None:
    """Insert a row for each value that arrives altered, and one without."""
    with pipeline.connect() as connection:
        for number, (name, (_, text)) in enumerate(ALTERED.items(), start=first):
            query = f"INSERT INTO {SCHEMA}.altered (id, n, {name}) VALUES (%s, 0, %s)"
            connection.execute(query.encode(), (number, text))
        connection.execute(f"INSERT INTO {SCHEMA}.altered VALUES ({first + 50}, 0)".encode())


def insert_large(pipeline: Pipeline, number: int) -> None:
    """Insert a row of large values."""
    listed = ", ".join(f"({query})" for _, query in LARGE.values())
    pipeline.execute(f"INSERT INTO {SCHEMA}.large VALUES ({number}, 0, {listed})")
