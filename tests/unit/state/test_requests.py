from pathlib import Path

import pytest

from cdc.state.requests import Request, pending, remove, remove_expired, write


def test_a_written_request_is_pending_until_removed(tmp_path: Path) -> None:
    folder = tmp_path / "requests"
    write(folder, Request(id="a1", expires_at=100.0))

    assert pending(folder, 99.0) == [Request(id="a1", expires_at=100.0, bound=None)]
    remove(folder, "a1")
    assert pending(folder, 99.0) == []


def test_writing_again_sets_the_bound(tmp_path: Path) -> None:
    write(tmp_path, Request(id="a1", expires_at=100.0))
    write(tmp_path, Request(id="a1", expires_at=100.0, bound=2**63 - 1))

    assert [request.bound for request in pending(tmp_path, 0)] == [2**63 - 1]
    assert [path.name for path in tmp_path.iterdir()] == ["a1.json"]


def test_an_expired_request_holds_nobody_and_is_swept(tmp_path: Path) -> None:
    write(tmp_path, Request(id="old", expires_at=10.0))
    write(tmp_path, Request(id="new", expires_at=20.0))

    assert [request.id for request in pending(tmp_path, 10.0)] == ["new"]
    remove_expired(tmp_path, 10.0)
    assert [path.name for path in tmp_path.iterdir()] == ["new.json"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"id": 1, "expires_at": 2e9}', '{"id": "x", "bound": 3}']
)
def test_a_file_that_is_no_request_is_passed_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    write(tmp_path, Request(id="good", expires_at=2e9))

    assert [request.id for request in pending(tmp_path, 0)] == ["good"]


def test_no_folder_means_no_request(tmp_path: Path) -> None:
    assert pending(tmp_path / "absent", 0) == []
    remove(tmp_path / "absent", "x")
    remove_expired(tmp_path / "absent", 0)


def test_an_id_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the id"):
        write(tmp_path, Request(id="../x", expires_at=1.0))
