"""A file with the lease_id of a lease, so that the next process goes on with the same lease, token or place in the queue."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from typing import Any, Optional, Tuple, Union

from ._errors import LeaseFileInUse, PaddockError, invalid

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]


class LeaseFile:
    """A file that one process has at a time. A file beside it, with the suffix .lock, is locked until close, at the latest
    until the process ends, and stays. Only its owner may read them: a lease_id is a secret."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        if fcntl is None:
            raise PaddockError("not_supported", "A lease_id_file needs file locks, which this platform does not have; leave it out.")
        self._path = os.fspath(path)
        try:
            self._lock: Any = os.fdopen(os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT, 0o600), "r+")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise LeaseFileInUse("lease_id_in_use", f"Another process, or another hold of this one, uses the lease_id_file {self._path!r} "
                                                        "now. Give each work a file of its own.") from None
            self.kept: Optional[Tuple[str, str]] = self._read()  # the lease_id and the holder of the process before
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise invalid(f"lease_id_file cannot be used: {e!r}; remove it, or give the name of a file that this process can write.") from e

    def _read(self) -> Optional[Tuple[str, str]]:
        try:
            with open(self._path, encoding="utf-8") as file:
                kept = json.load(file)
        except FileNotFoundError:
            return None
        except BaseException:
            self._lock.close()
            raise
        return str(uuid.UUID(kept["lease_id"])), str(kept["holder"])

    def keep(self, lease_id: str, holder: str) -> None:
        """Writes the lease_id, before it is sent. The same acquire has the same holder."""
        beside = self._path + ".new"
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"lease_id": lease_id, "holder": holder}, file)
        os.replace(beside, self._path)

    def close(self, ended: bool) -> None:
        """Lets the next process have the file. With ended, that gets a lease of its own; otherwise it goes on with this one."""
        if self._lock.closed:  # another process may have it by now
            return
        if ended:
            with contextlib.suppress(OSError):  # then the next process finds out that the lease has ended
                os.remove(self._path)
        self._lock.close()
