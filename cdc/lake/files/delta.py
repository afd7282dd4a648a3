"""Opens Delta tables by delta-rs, which asks an object store again for as long as all others do.

By itself it gives up after ten attempts, which may be two seconds.
"""

from deltalake import DeltaTable

from cdc.lake.layout import is_local


def delta_table(path: str, version: int | None = None) -> DeltaTable:
    """Open the table at the path, at a version or at its newest; raises what delta-rs raises."""
    return DeltaTable(path, version=version, storage_options=storage_options(path))


def storage_options(path: str) -> dict[str, str] | None:
    """Return the options with which delta-rs is to reach the files below the path."""
    if is_local(path):
        return None
    from cdc.lake.files import s3_access  # noqa: PLC0415 - only an object store needs it

    return {
        "max_retries": "1000",
        "retry_timeout": f"{s3_access.PATIENCE.total_seconds():.0f}s",
        "backoff_config.init_backoff": "50ms",
        "backoff_config.max_backoff": "5s",
        "timeout": f"{s3_access.REQUEST.total_seconds():.0f}s",
        "connect_timeout": f"{s3_access.REQUEST.total_seconds():.0f}s",
    }
