"""Reaches an object store by AWS' own environment variables, and no others.

So wal2lake has no credentials to keep: delta-rs, obstore, Arrow and Spark each find them by
themselves, and renew those that expire.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from obstore.store import S3Store
from pyarrow import fs

from cdc.errors import CdcError, ErrorKind

ENDPOINT: Final = "AWS_ENDPOINT_URL"
PLAIN_HTTP: Final = "AWS_ALLOW_HTTP"
REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
REQUEST: Final = timedelta(seconds=10)
"""After so long without an answer a request is made again."""
PATIENCE: Final = timedelta(seconds=30)
"""For so long a request is made again, while the store fails."""
_TRUE: Final = frozenset({"1", "true", "yes", "on", "y"})


class Place(NamedTuple):
    """Names a place in a bucket."""

    bucket: str
    prefix: str  # without a slash at either end; empty for all of the bucket

    def key(self, name: str) -> str:
        """Return the key of an object below this place."""
        return f"{self.prefix}/{name}".strip("/")


def place_of(path: str) -> Place:
    """Return the bucket and the prefix of ``s3a://bucket/prefix``."""
    url = urlsplit(path)
    return Place(url.netloc, url.path.strip("/"))


def endpoint(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the URL of a store other than AWS; None for AWS.

    Raises CONFIG for one without TLS that is not allowed by name, as by all four libraries.
    """
    url = environ.get(ENDPOINT) or None
    if url and urlsplit(url).scheme != "https" and not _is_set(environ, PLAIN_HTTP):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{ENDPOINT} has no TLS: {url}",
            remedy=f"use https, or set {PLAIN_HTTP}=true where nobody else is on the way",
        )
    return url


def region(environ: Mapping[str, str] = os.environ) -> str:
    """Return the region of the store."""
    return next((environ[name] for name in REGIONS if environ.get(name)), "us-east-1")


@cache
def bucket_store(bucket: str) -> S3Store:
    """Return the bucket, to write and to list."""
    allowed = (endpoint() or "").startswith("http:")
    return S3Store(
        bucket,
        client_options={"timeout": REQUEST, "connect_timeout": REQUEST, "allow_http": allowed},
        retry_config={"max_retries": 0},  # cdc/lake/files/requests.py makes them again
    )


@cache
def arrow_files() -> fs.S3FileSystem:
    """Return the store for Arrow, which reads parts of files; buckets are folders of it."""
    url = endpoint()
    seconds = REQUEST.total_seconds()
    other = {} if url is None else _other(url)
    return fs.S3FileSystem(
        region=region(),
        request_timeout=seconds,
        connect_timeout=seconds,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=8),
        **other,
    )


def spark_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings of a Spark session that reads and writes the store."""
    url = endpoint(environ)
    seconds = f"{REQUEST.total_seconds():.0f}s"
    settings = {
        "delta.logStore.s3a.impl": "wal2lake.OneWriterLogStore",
        # The SDK's usual order: environment, profile, web identity, container, instance.
        "fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
        "fs.s3a.endpoint.region": region(environ),
        "fs.s3a.connection.establish.timeout": seconds,
        "fs.s3a.connection.timeout": seconds,
        "fs.s3a.connection.request.timeout": seconds,
        # Directories do not exist, and nothing here asks for one.
        "fs.s3a.performance.flags": "mkdir",
    }
    if url is not None:
        settings |= {
            "fs.s3a.endpoint": url,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": str(url.startswith("https:")).lower(),
        }
    return {f"spark.{_hadoop(name)}": value for name, value in settings.items()}


def _hadoop(name: str) -> str:
    return name if name.startswith("delta.") else f"hadoop.{name}"


def _other(url: str) -> dict[str, str]:
    found = urlsplit(url)
    return {"scheme": found.scheme, "endpoint_override": found.netloc + found.path.rstrip("/")}


def _is_set(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in _TRUE
