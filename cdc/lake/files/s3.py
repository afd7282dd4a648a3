"""Keeps a table's files in an object store with the S3 API: an entry is a conditional put.

A request may fail although the store has done it, so that nobody can tell from the answer. What a
put would have written is unlike that of any other writer: whoever finds it there has put it.
"""

from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError
from pyarrow import fs

from cdc.lake.files import fence
from cdc.lake.files.file_store import FileStore, Stamp
from cdc.lake.files.requests import NoAnswerError, again
from cdc.lake.files.s3_access import arrow_files, bucket_store, place_of

if TYPE_CHECKING:
    from obstore import ObjectMeta


class S3Store:
    """Reads and writes the objects below a prefix of a bucket."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._place = place_of(path)
        self._bucket = bucket_store(self._place.bucket)

    @property
    def tree(self) -> fs.FileSystem:
        """Return the files as a file system for Arrow."""
        return fs.SubTreeFileSystem(f"{self._place.bucket}/{self._place.prefix}", arrow_files())

    def write(self, name: str, content: bytes) -> None:
        """Write a new file, durably; nothing is left of one that cannot be written."""
        self.put_if_absent(name, content)

    def settle(self) -> None:
        """Do nothing: an object's name is durable with it."""

    def put_if_absent(self, name: str, content: bytes) -> None:
        """Write a file whole and durably if there is none of this name.

        Raises FileExistsError if there is one with other content.
        """
        key = self._place.key(name)
        again(lambda: self._put(key, content), f"put {key}")

    def _put(self, key: str, content: bytes) -> None:
        fence.refuse_fenced(self.path)
        try:
            obstore.put(self._bucket, key, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            self._refuse_other(key, content)

    def _refuse_other(self, key: str, content: bytes) -> None:
        try:
            found = bytes(obstore.get(self._bucket, key).bytes())
        except FileNotFoundError:  # another put is under way, and may fail yet
            raise NoAnswerError(f"put {key}: the object store is between two answers") from None
        if found != content:
            raise FileExistsError(f"{key} is there already")

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""
        key = self._place.key(name)
        return again(lambda: bytes(obstore.get(self._bucket, key).bytes()), f"read {key}")

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None if there is none."""
        found = self._head(name)
        return None if found is None else found["size"]

    def stamp(self, name: str) -> Stamp | None:
        """Return what tells the file from any other; None if there is none."""
        found = self._head(name)
        if found is None:
            return None
        return str(found["e_tag"]), found["last_modified"].isoformat(), found["size"]

    def _head(self, name: str) -> "ObjectMeta | None":
        key = self._place.key(name)
        try:
            return again(lambda: obstore.head(self._bucket, key), f"look at {key}")
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none if there are no such files."""
        return list(self.times(folder))

    def times(self, folder: str) -> dict[str, float]:
        """Return when the files in a folder were written, in seconds since 1970, by name."""
        key = self._place.key(folder)
        found = again(lambda: obstore.list_with_delimiter(self._bucket, f"{key}/"), f"list {key}")
        return {
            one["path"].rpartition("/")[2]: one["last_modified"].timestamp()
            for one in found["objects"]
        }

    def delete(self, name: str) -> bool:
        """Delete a file; return whether it was there, as far as the store says."""
        fence.refuse_fenced(self.path)
        key = self._place.key(name)
        try:
            again(lambda: obstore.delete(self._bucket, key), f"delete {key}")
        except FileNotFoundError:
            return False
        return True

    def touch(self, name: str) -> None:
        """Write an empty file, or make an existing one as new."""
        key = self._place.key(name)
        again(lambda: obstore.put(self._bucket, key, b"", use_multipart=False), f"put {key}")

    def make_folder(self, name: str, *, parents: bool = True) -> None:
        """Do nothing: there are no folders."""

    def take(self, source: FileStore, name: str) -> None:
        """Have the store copy a file of ``source``."""
        fence.refuse_fenced(self.path)
        key, origin = self._place.key(name), place_of(source.path).key(name)
        again(lambda: obstore.copy(self._bucket, origin, key), f"copy {origin}")

    def finish(self, name: str) -> int:
        """Return the bytes of a file that was written by ``tree``."""
        size = self.size(name)
        if size is None:
            raise FileNotFoundError(name)
        return size
