"""The file of a store: created for its owner only, and recognised again.

SQLite keeps the file open. If the path is deleted or gets another file, SQLite goes on writing into
one that no other process can find: what is acknowledged then is lost with the last open connection.
"""

from __future__ import annotations

import os

from sprat.core.errors import InvalidInput, StoreMismatch, StoreUnavailable


class DatabaseFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self._identity: tuple[int, int] | None = None  # device and inode

    def prepare(self) -> None:
        """Before it is opened. Later openings (after a fork) get the same file or an error."""
        if self._identity is None:
            self._identity = _create_private(self.path)
        self.check()

    def size(self) -> int:
        """In bytes, with its log."""
        return os.path.getsize(self.path) + os.path.getsize(self.path + "-wal")

    def check(self) -> None:
        """Raise StoreMismatch if the path no longer leads to this file."""
        try:
            found = os.stat(self.path)
            if (found.st_dev, found.st_ino) == self._identity:
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise StoreUnavailable(f"{self.path} cannot be opened: {error.strerror}") from None
        raise StoreMismatch(
            f"the file {self.path} was deleted or replaced while it was open: "
            "restart the program to use what is there now"
        )


def _create_private(path: str) -> tuple[int, int]:
    """A new file is readable by its owner only; SQLite gives -wal and -shm the same mode."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        raise InvalidInput(f"the directory of {path} does not exist: create it first") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a directory: name a file in it") from None
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from None
    found = os.fstat(descriptor)
    os.close(descriptor)
    return found.st_dev, found.st_ino
