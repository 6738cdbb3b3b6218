"""A file with the lease_id of a lease, so that the next process goes on with the same lease, token or place in the queue."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
from typing import Any, Optional, Tuple, Union

from ._arguments import Locks, names_of, wrong_type
from ._errors import InvalidRequest, LeaseFileInUse, PaddockError, invalid

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]


class LeaseFile:
    """A file that one process has at a time. A file beside it, with the suffix .lock, is locked until close, at the latest
    until the process ends, and stays. Only its owner may read them: a lease_id is a secret. The content is a JSON object,
    as that of the guard for Go and of paddock run, with the names of the locks in order:

    {"locks": ["jobs:billing"], "lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11", "holder": "pod-0"}
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], locks: Locks) -> None:
        self._names = [locks] if isinstance(locks, str) else sorted(names_of(locks))
        if fcntl is None:
            raise PaddockError("not_supported", "A lease_id_file needs file locks, which this platform does not have; leave it out.")
        self._path = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
        if not isinstance(self._path, str):
            raise wrong_type("lease_id_file", path, "a path as text")
        if not self._path:
            raise invalid("lease_id_file is empty; give the name of a file, or leave it out.")
        if os.path.exists(self._path) and not os.path.isfile(self._path):
            raise _unusable(f"{self._path} is not a regular file")
        self._closing = threading.RLock()  # a loss and a release close it in two threads
        try:
            self._lock: Any = os.fdopen(os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT, 0o600), "r+")
        except (OSError, ValueError) as e:
            raise _unusable(str(e)) from e
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.kept: Optional[Tuple[str, str]] = self._read()  # the lease_id and the holder of the process before
        except BlockingIOError:
            self._lock.close()
            raise LeaseFileInUse("lease_id_in_use", f"Another process, or another hold of this one, uses the lease_id_file {self._path} "
                                                    "now, so the same work is being done already. Give each work a file of its own.") from None
        except BaseException as e:
            self._lock.close()
            if isinstance(e, OSError):
                raise _unusable(str(e)) from e
            raise

    def _read(self) -> Optional[Tuple[str, str]]:
        try:
            with open(self._path, encoding="utf-8") as file:
                kept = json.load(file)
            names, lease_id, holder = kept["locks"], str(uuid.UUID(kept["lease_id"])), kept["holder"]
            if not names or not isinstance(names, list) or not holder or not isinstance(holder, str):
                raise ValueError("locks or holder is missing")
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise _unusable(f"{self._path} is not a JSON object with locks, lease_id and holder") from e
        if names != self._names:
            raise invalid(f"lease_id_file {self._path} keeps a lease of {','.join(map(str, names))}, not of {','.join(self._names)}; give each "
                          "work a file of its own, or remove the file: the lease in it then ends by itself.")
        return lease_id, holder

    def keep(self, lease_id: str, holder: str) -> None:
        """Writes the lease_id, before it is sent. The same acquire has the same holder."""
        beside = self._path + ".new"
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump({"locks": self._names, "lease_id": lease_id, "holder": holder}, file)
            os.replace(beside, self._path)
        except OSError as e:
            self.close(False)
            raise _unusable(str(e)) from e

    def is_of_another_mode(self) -> PaddockError:
        return PaddockError("lease_id_in_use", f"The lease_id_file {self._path} is of a lease with another mode, number of permits or on_expiry. Ask for "
                                               "the same, give this work a file of its own, or remove the file and wait for the end of that lease.")

    def close(self, ended: bool) -> None:
        """Lets the next process have the file. With ended, that gets a lease of its own; otherwise it goes on with this one."""
        with self._closing:
            if self._lock.closed:  # another process may have it by now
                return
            if ended:
                with contextlib.suppress(OSError):  # then the next process finds out that the lease has ended
                    os.remove(self._path)
            self._lock.close()


def _unusable(why: str) -> InvalidRequest:
    return invalid(f"lease_id_file cannot be used: {why}; give the name of a file that only this work uses and that this process can write.")
