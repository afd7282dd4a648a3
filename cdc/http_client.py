"""Make every HTTP request of the project, with the address's credentials and the right proxy.

An address may contain user and password, and the file of the CA to trust
(``https://user:password@host:port?ca_file=/etc/ca.crt``), as a Postgres URL does. Then it is a
secret; print it with ``without_login()``. The credentials are sent as basic authentication, so an
error of httpx quotes an address without them.

Requests to this machine never use a proxy: a proxy elsewhere would call its own loopback address,
and would receive our credentials. For other machines, HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
NO_PROXY have their usual meaning.
"""

import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import httpx

from cdc.errors import CdcError, ErrorKind

_CA: Final = "ca_file"


def get(url: str, path: str = "", *, timeout: float) -> httpx.Response:
    """Send a GET request; see ``request``. ``timeout`` is in seconds."""
    return request("GET", url, path, timeout=timeout)


def request(
    method: str,
    url: str,
    path: str = "",
    *,
    timeout: float,
    **arguments: Any,  # noqa: ANN401 - httpx's
) -> httpx.Response:
    """Send a request to the path below the URL; return the response, whatever its status.

    Raises httpx.HTTPError if there is no response, and CONFIG if the server's certificate is not
    to be trusted or the environment names a proxy that cannot be used.
    """
    local = is_local(url)
    try:
        client = httpx.Client(
            auth=_login(url), timeout=timeout, trust_env=not local, verify=_trusted(url)
        )
    except (ImportError, ValueError) as error:
        raise _no_proxy(url, error) from None
    with client:
        try:
            return client.request(method, f"{without_login(url).rstrip('/')}{path}", **arguments)
        except httpx.ConnectError as error:
            raise _tls_refusal(url, error) or error from None


def is_local(url: str) -> bool:
    """Return whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def without_login(url: str) -> str:
    """Return the URL without credentials and parameters, safe to print."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def with_login(url: str, user: str, password: str) -> str:
    """Return the URL with these credentials in place of any others."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return parts._replace(netloc=f"{login}@{host}").geturl()


def with_ca(url: str, ca_file: Path | None) -> str:
    """Return the URL with the file of the CA certificates to trust; unchanged without one."""
    query = urlencode({_CA: str(ca_file)}) if ca_file else ""
    return urlsplit(url)._replace(query=query).geturl() if query else url


def refuse_unknown(answer: httpx.Response, url: str, server: str, remedy: str) -> None:
    """Raise CONFIG if ``server`` rejects our credentials, or requires some."""
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{server} at {without_login(url)} refuses our credentials",
            remedy=remedy,
        )


def _login(url: str) -> httpx.BasicAuth | None:
    parts = urlsplit(url)
    if parts.username is None:
        return None
    return httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))


def _trusted(url: str) -> ssl.SSLContext | bool:
    """Return the certificates to verify a server with; True stands for those of the system."""
    parts = urlsplit(url)
    ca_file = dict(parse_qsl(parts.query)).get(_CA)
    if ca_file:
        return ssl.create_default_context(cafile=ca_file)
    # Loading the certificates takes longer than a request to this machine that needs none.
    return not (parts.scheme == "http" and is_local(url))


def _tls_refusal(url: str, error: BaseException | None) -> CdcError | None:
    """Return the CONFIG error that TLS gives as the cause, None if it is none of TLS."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    where = without_login(url)
    if isinstance(error, ssl.SSLCertVerificationError):
        return CdcError(
            ErrorKind.CONFIG,
            f"{where} presents a certificate that is not trusted",
            detail=error.verify_message,
            remedy="set ca_file beside this URL in wal2lake.yaml to the CA's certificate, use the "
            "host name of the certificate, or renew the certificate",
        )
    return CdcError(
        ErrorKind.CONFIG,
        f"{where} does not speak TLS",
        detail=str(error.reason or ""),
        remedy="begin the URL with http://, or name the encrypted port",
    )


def _no_proxy(url: str, error: Exception) -> CdcError:
    return CdcError(
        ErrorKind.CONFIG,
        f"{without_login(url)} cannot be reached through the proxy set in the environment",
        detail=type(error).__name__,
        remedy="set HTTP_PROXY, HTTPS_PROXY and ALL_PROXY to http://host:port, or name the host "
        "in NO_PROXY",
    )
