"""Define the common base of the configuration file's sections."""

from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr


class Section(BaseModel):
    """Serves as the base of every section of the configuration file.

    The docstrings of sections and keys become the reference, docs/reference/configuration.md.
    """

    # A validation error must not repeat its input, which may be a secret.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )


class HttpAccess(Protocol):
    """Declares the keys by which a section says how a server is reached by HTTP."""

    @property
    def url(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...
    @property
    def password(self) -> SecretStr | None: ...
    @property
    def password_file(self) -> Path | None: ...
    @property
    def ca_file(self) -> Path | None: ...


def refuse_unfit_access(server: str, given: HttpAccess) -> None:
    """Raise ValueError if login and CA of a server do not go with its URL, or with each other.

    ``server`` says in the message whose they are: "a registry at registry.url".
    """
    others = (given.user, given.password, given.password_file, given.ca_file)
    if given.url is None and any(value is not None for value in others):
        raise ValueError(f"user, password and ca_file belong to {server}, which is not set")
    refuse_unfit_url(given.url, given.user, given.ca_file)
    refuse_half_login(given.user, given.password, given.password_file)


def refuse_half_login(
    user: str | None, password: SecretStr | None, password_file: Path | None
) -> None:
    """Raise ValueError if a login lacks its user or password, or has two passwords."""
    given = sum(value is not None for value in (password, password_file))
    if given > 1:
        raise ValueError("the password is given more than once (password, password_file)")
    if bool(given) != (user is not None):
        raise ValueError("user and password (or password_file) go together")


def refuse_unfit_url(url: str | None, user: str | None, ca_file: Path | None) -> None:
    """Raise ValueError if the URL has a login besides ``user``, or a CA that it does not use."""
    parts = urlsplit(url or "")
    if user is not None and parts.username is not None:
        raise ValueError("the login is given more than once (url, user)")
    if ca_file is not None and parts.scheme != "https":
        raise ValueError("ca_file is for a URL that begins with https://")


def refuse_login_in_url(url: str | None) -> None:
    """Raise ValueError if the URL, which others than wal2lake get to see, has a login."""
    if urlsplit(url or "").username is not None:
        raise ValueError("contains a login: set registry.user and registry.password instead")
