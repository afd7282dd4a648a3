"""The list of what is in an image is whole."""

from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from cdc.stack.artifacts.copy_sets import JOB
from cdc.stack.artifacts.lock_file import read_lock
from tests.containers.stack import Stack
from tools import go_programs
from tools.images.contents import write_contents

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]


def test_all_that_is_in_the_job_s_image_is_listed(stack: Stack, tmp_path: Path) -> None:
    """As dpkg and Python say it is; jars have no other list than their lock."""
    if (why := go_programs.why_none()) is not None:
        pytest.skip(f"the image's contents are not listed: {why}")
    image = stack.container("job")["Image"]
    find = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    packages = set(stack.compose("exec", "-T", "job", "python", "-c", find).split())
    debian = set(stack.shell("job", "dpkg-query --show --showformat '${Package} '").split())
    jars = {jar.name for group in JOB for jar in read_lock()[group]}

    kinds = write_contents(image, tmp_path / "job.cdx.json").kinds

    assert set(kinds["deb"]) == debian
    assert set(map(canonicalize_name, packages)) <= set(map(canonicalize_name, kinds["pypi"]))
    assert jars <= set(kinds["maven"])
    assert not {"ec2", "lambda", "dynamodb"} & set(kinds["maven"])
    assert not debian & {"binutils", "curl", "gcc", "git", "make", "openssh-client", "wget"}
