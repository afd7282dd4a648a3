"""Make every HTTP request of the project, with the address's credentials and the right proxy.

An address may contain user and password (``http://user:password@host:port``), as a Postgres URL
does. Then it is a secret; print it with ``shown()``. The credentials are sent as basic
authentication, so an error of httpx quotes an address without them.

Requests to this machine never use a proxy: a proxy elsewhere would call its own loopback address,
and would receive our credentials. For other machines, HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
NO_PROXY have their usual meaning.
"""

from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from cdc.errors import CdcError, ErrorKind


def get(url: str, *, timeout: float) -> httpx.Response:
    """Send a GET request; see ``request``. ``timeout`` is in seconds."""
    return request("GET", url, timeout=timeout)


def request(method: str, url: str, *, timeout: float, **arguments: Any) -> httpx.Response:  # noqa: ANN401 - httpx's
    """Send a request and return the response, whatever its status.

    Raises httpx.HTTPError if there is no response, and CONFIG if the environment names a proxy
    that cannot be used.
    """
    local = is_local(url)
    # Loading the certificates takes longer than a request to this machine that needs none.
    plain = local and urlsplit(url).scheme == "http"
    try:
        client = httpx.Client(
            auth=_login(url), timeout=timeout, trust_env=not local, verify=not plain
        )
    except (ImportError, ValueError) as error:
        raise _no_proxy(url, error) from None
    with client:
        return client.request(method, without_login(url), **arguments)


def is_local(url: str) -> bool:
    """Return whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def without_login(url: str) -> str:
    """Return the URL without credentials, safe to print."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def with_login(url: str, user: str, password: str) -> str:
    """Return the URL with these credentials in place of any others."""
    parts = urlsplit(without_login(url))
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return parts._replace(netloc=f"{login}@{parts.netloc}").geturl()


def _login(url: str) -> httpx.BasicAuth | None:
    parts = urlsplit(url)
    if parts.username is None:
        return None
    return httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))


def _no_proxy(url: str, error: Exception) -> CdcError:
    return CdcError(
        ErrorKind.CONFIG,
        f"{without_login(url)} cannot be reached through the proxy set in the environment",
        detail=type(error).__name__,
        remedy="set HTTP_PROXY, HTTPS_PROXY and ALL_PROXY to http://host:port, or name the host "
        "in NO_PROXY",
    )
