"""The converter's plugin folder: what the worker finds in it, and when it is not built."""

import zipfile
from pathlib import Path

import pytest

from cdc.errors import CdcError
from cdc.stack.artifacts import converter
from cdc.stack.artifacts.lock_file import CONVERTER, jars, set_dir
from cdc.stack.artifacts.prerequisites import find_java

pytestmark = pytest.mark.integration


def test_the_worker_s_settings_name_a_class_that_the_folder_has() -> None:
    with zipfile.ZipFile(set_dir(CONVERTER) / converter.FOLDER / "wal2lake.jar") as jar:
        [service] = [name for name in jar.namelist() if name.startswith("META-INF/services/")]
        services = jar.read(service).decode().split()
        classes = {name.replace("/", ".").removesuffix(".class") for name in jar.namelist()}

    assert converter.CLASS in services
    assert converter.CLASS in classes
    assert converter.BASE in services


def test_a_folder_without_the_worker_s_classes_builds_no_plugin(tmp_path: Path) -> None:
    empty, target = tmp_path / "jars", tmp_path / "target"
    empty.mkdir()
    target.mkdir()

    with pytest.raises(CdcError) as caught:
        converter.build_plugin(empty, target, worker=jars("spark"), java=find_java().path)

    assert "does not compile" in caught.value.message
    assert not (target / converter.FOLDER / "wal2lake.jar").exists()
