"""Every HTTP request of ours: with the credentials of its address, by a proxy or past it.

An address may hold user and password (``http://user:password@host:port``), as one of Postgres
does: it is then a secret, and ``shown()`` is what may be printed of it. They travel as basic
authentication, so an error of httpx quotes an address without them.

An address of this machine is asked directly, whatever the environment says of proxies: a proxy
elsewhere would ask its own loopback, and be told our credentials. For others HTTP_PROXY,
HTTPS_PROXY, ALL_PROXY and NO_PROXY mean what they mean to any program.
"""

from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from cdc.errors import CdcError, ErrorKind


def get(url: str, *, timeout: float) -> httpx.Response:
    """Raises httpx.HTTPError where no answer comes."""
    return request("GET", url, timeout=timeout)


def request(method: str, url: str, *, timeout: float, **arguments: Any) -> httpx.Response:  # noqa: ANN401 - httpx's
    """Raises httpx.HTTPError where no answer comes; any answer is returned.

    Raises CONFIG where the environment names a proxy that cannot be used.
    """
    try:
        client = httpx.Client(auth=_login(url), timeout=timeout, trust_env=not is_local(url))
    except (ImportError, ValueError) as error:
        raise _no_proxy(url, error) from None
    with client:
        return client.request(method, shown(url), **arguments)


def is_local(url: str) -> bool:
    """Whether the address is one of this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def shown(url: str) -> str:
    """The address without credentials."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def with_login(url: str, user: str, password: str) -> str:
    """The address with these credentials."""
    parts = urlsplit(shown(url))
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
        f"{shown(url)} cannot be asked by the proxy of the environment",
        detail=type(error).__name__,
        remedy="give HTTP_PROXY, HTTPS_PROXY and ALL_PROXY as http://host:port, or name the host "
        "in NO_PROXY",
    )
