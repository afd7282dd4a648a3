"""A bill of materials is read by the kinds and names of its packages."""

import json

from tools.images.contents import Contents


def test_packages_are_known_by_their_kind() -> None:
    found = [("deb/debian/libc6@2.36", "libc6"), ("pypi/pyspark@4.1.1", "pyspark")]
    components = [{"purl": f"pkg:{url}", "name": name, "version": "1"} for url, name in found]
    again = {**components[0], "version": "2"}
    file = {"name": "/etc/os-release", "version": ""}  # a file has no package URL

    contents = Contents.parse(json.dumps({"components": [*components, again, file]}))

    assert contents.kinds == {"deb": {"libc6": {"1", "2"}}, "pypi": {"pyspark": {"1"}}}
    assert Contents.parse("{}").kinds == {}
