"""Jars and images are without what they do not need, and have all of the rest."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from cdc.stack.artifacts import aws_sdk
from deploy import trim

SDK = "software/amazon/awssdk"
POMS = "META-INF/maven/software.amazon.awssdk"
KEPT = {
    "META-INF/MANIFEST.MF",
    f"{POMS}/bundle/pom.properties",
    f"{POMS}/s3-transfer-manager/pom.properties",
    f"{POMS}/sts/pom.properties",
    f"{SDK}/core/Client.class",
    f"{SDK}/services/s3/S3Client.class",
    f"{SDK}/services/s3/execution.interceptors",
    f"{SDK}/services/sts/StsClient.class",
    # The service named so moves files for others; this is the manager of large puts.
    f"{SDK}/transfer/s3/S3TransferManager.class",
}
LEFT_OUT = {
    "codegen-resources/ec2.json",
    f"{POMS}/cloudwatch-logs/pom.properties",
    f"{SDK}/services/cloudwatchlogs/Client.class",
    f"{SDK}/services/s3control/Client.class",
    f"{SDK}/services/transfer/Client.class",
}


def jar_of(path: Path, names: Iterable[str]) -> Path:
    """Make a jar whose entries have their own names as content."""
    with zipfile.ZipFile(path, "w") as jar:
        for name in names:
            jar.writestr(name, name)
    return path


def entries_of(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as jar:
        assert all(jar.read(name).decode() == name for name in jar.namelist())
        return set(jar.namelist())


def test_of_the_sdk_the_store_and_what_gives_a_role_is_kept(tmp_path: Path) -> None:
    whole = jar_of(tmp_path / "bundle-2.jar", sorted(KEPT | LEFT_OUT))

    aws_sdk.trim(whole, tmp_path / "made.jar")

    assert entries_of(tmp_path / "made.jar") == KEPT


def test_the_same_jar_is_made_of_the_same_sdk(tmp_path: Path) -> None:
    whole = jar_of(tmp_path / "bundle-2.jar", sorted(KEPT | LEFT_OUT))

    for name in ("one", "two"):
        aws_sdk.trim(whole, tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return a folder with a package, and a jar in it."""
    folder = tmp_path / "packages"
    (folder / "p" / "tests").mkdir(parents=True)
    (folder / "p" / "code.py").touch()
    jar_of(folder / "p" / "zstd-1.jar", ["linux/amd64/z.so", "linux/arm/z.so", "win/x86/z.dll"])
    return folder


def trimmed(packages: Path, *patterns: str) -> int:
    (packages.parent / "list.txt").write_text("\n".join(("# why", "", *patterns)))
    return trim.main(packages.parent / "list.txt", packages)


def test_folders_and_parts_of_jars_are_left_out_of_an_image(packages: Path) -> None:
    assert trimmed(packages, "p/tests", "p/zstd-*.jar!win/*", "p/zstd-*.jar!linux/arm/*") == 0

    assert {path.name for path in (packages / "p").iterdir()} == {"code.py", "zstd-1.jar"}
    assert entries_of(packages / "p" / "zstd-1.jar") == {"linux/amd64/z.so"}


@pytest.mark.parametrize("pattern", ["p/more", "p/zstd-*.jar!aix/*", "p/lz4-*.jar!win/*"])
def test_a_pattern_that_matches_nothing_is_named(
    packages: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trimmed(packages, pattern) == 1
    assert f"{pattern} matches nothing" in capsys.readouterr().err
