"""What a start of the container stack writes to .env, and what it leaves as it is."""

import stat
from pathlib import Path

import pytest

from tools.dot_env import PASSWORD, PROFILES, prepare, read
from tools.images.compose import ROOT

OF_STORE = ROOT / "deploy" / "s3.env"
KEYS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of a file that there is not."""
    for name in (PASSWORD, PROFILES):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / ".env"


def test_a_password_is_made_once_and_only_its_owner_may_read_it(file: Path) -> None:
    assert prepare(file, OF_STORE) == {""}
    first = file.read_text()
    prepare(file, OF_STORE)

    assert file.read_text() == first
    assert list(read(file)) == [PASSWORD]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_password_of_the_environment_is_not_written_down(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "given")
    prepare(file, OF_STORE)

    assert read(file) == {}


def test_the_store_of_a_profile_stays_where_the_lake_is(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later start without the profile has the store and its keys too."""
    file.write_text("# mine\nAWS_REGION=eu-central-1\n")
    monkeypatch.setenv(PROFILES, "observe,s3")
    assert prepare(file, OF_STORE) == {"observe", "s3"}
    first = file.read_text()
    monkeypatch.delenv(PROFILES)

    assert prepare(file, OF_STORE) == {"s3"}
    assert file.read_text() == first
    assert read(file).keys() == {PASSWORD, *read(OF_STORE), *KEYS}
    assert read(file)["WAL2LAKE_LAKE__PATH"].startswith("s3://lake/")
    assert read(file)["AWS_REGION"] == "eu-central-1"
