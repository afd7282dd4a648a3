"""Keeps of the AWS SDK what a lake in an object store needs: its one jar has some 400 services.

With all of them it has 640 MB, of which an image and a disk would be full for nothing.
"""

import re
import zipfile
from pathlib import Path
from typing import Final

NEEDED: Final = frozenset({"s3", "sso", "ssooidc", "sts"})
"""The store, and the services by which a machine, a profile or a web identity has a role."""
_SERVICE: Final = re.compile(r"software/amazon/awssdk/services/([^/]+)/")
_LISTED: Final = re.compile(r"META-INF/maven/software\.amazon\.awssdk/([^/]+)/")
_GENERATOR: Final = "codegen-resources/"
"""What the classes of the services were generated from."""


def trim(jar: Path, target: Path) -> None:
    """Copy the jar of the SDK without the services that are not needed."""
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(target, "w") as kept:
        entries = whole.infolist()
        unneeded = {_named(_SERVICE, entry.filename) for entry in entries} - NEEDED - {""}
        for entry in entries:
            name = entry.filename
            service = _named(_SERVICE, name) or _named(_LISTED, name).replace("-", "")
            if service not in unneeded and not name.startswith(_GENERATOR):
                kept.writestr(entry, whole.read(entry))


def _named(pattern: re.Pattern[str], name: str) -> str:
    """Return what the pattern finds in the name of an entry; empty if nothing."""
    found = pattern.match(name)
    return found[1] if found else ""
