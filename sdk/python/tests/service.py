"""A real Paddock for the tests: one process for all tests; each test uses its own lock names."""

import atexit
import calendar
import functools
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import uuid

SDK = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SDK))  # the package in this folder, not an installed one

from paddock import Paddock  # noqa: E402
from proxy import Proxy  # noqa: E402

BOUND = 30.0  # seconds, far more than any step takes

# A process that starts with SIGINT ignored, as under nohup in a script, raises no KeyboardInterrupt. Tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("PADDOCK_")}


def url():
    """Returns the base URL of a Paddock that is stopped after the tests."""
    return _dev()[0]


@functools.lru_cache(maxsize=None)
def _dev():
    """Returns the base URL of paddock dev and the URL of its database."""
    process = subprocess.Popen([binary(), "dev", "--ephemeral", "--listen", "127.0.0.1:0", "--log-level", "error"],
                               stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    atexit.register(_stop, process)
    guard = threading.Timer(2 * BOUND, process.kill)
    guard.start()
    lines = [process.stdout.readline() for _ in range(3)]
    guard.cancel()
    base_url, database = re.search(r"http://[0-9.]+:[0-9]+", lines[0]), re.search(r"postgres://\S+", lines[2])
    if not base_url or not database:
        raise RuntimeError(f"paddock dev printed no URLs but {lines!r}; see its errors above")
    return base_url.group(), database.group()


@functools.lru_cache(maxsize=None)
def binary():
    """Returns the path of paddock: PADDOCK_BIN, or a binary that is built once."""
    if "PADDOCK_BIN" in os.environ:
        return os.environ["PADDOCK_BIN"]
    folder = tempfile.TemporaryDirectory(prefix="paddock-python-")
    atexit.register(folder.cleanup)
    path = os.path.join(folder.name, "paddock")
    subprocess.run(["go", "build", "-o", path, "./cmd/paddock"], cwd=SDK.parent.parent, check=True, timeout=300)
    return path


def _stop(process):
    process.terminate()
    try:
        process.wait(BOUND)
    finally:
        process.kill()
        process.stdout.close()


class Replica:
    """A paddock serve with the database of the other tests. Its log has the requests with an unknown key, too."""

    def __init__(self, *flags, listen="127.0.0.1:0"):
        self._lines, self._changed = [], threading.Condition()
        self._process = subprocess.Popen(
            [binary(), "serve", "--database-url", _dev()[1], "--listen", listen, "--log-level", "debug", *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.address = self.await_log("listening")["address"]
        except BaseException:
            self.close()
            raise

    def _read(self):
        for line in self._process.stderr:
            with self._changed:
                self._lines.append(json.loads(line))
                self._changed.notify_all()

    def log(self, message):
        """Returns the lines of the log with the message."""
        with self._changed:
            return [line for line in self._lines if line["msg"] == message]

    def await_log(self, message, matches=lambda line: True):
        """Waits for a line with the message that matches, and returns it."""
        return eventually(lambda: next(filter(matches, self.log(message)), None), f"no line {message!r} in the log")

    @property
    def url(self):
        return f"http://{self.address}"

    def freeze(self):
        """Stops the process, without a word to its clients, and returns when it has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        status = pathlib.Path(f"/proc/{self._process.pid}/stat")
        eventually(lambda: ") T " in status.read_text(), "the replica was not stopped")

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait(BOUND)

    def close(self):
        self._process.terminate()
        self.thaw()
        try:
            self._process.wait(BOUND)
        finally:
            self._process.kill()
            self._reader.join(BOUND)
            self._process.stderr.close()


def eventually(condition, failure):
    """Waits until the condition is true and returns its value; fails after BOUND."""
    until = time.monotonic() + BOUND
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"{failure}, after {BOUND:.0f} s")
        time.sleep(0.01)


def client_threads():
    """Returns the threads of all clients and guards that are in use. Those of earlier tests may still end."""
    gc.collect()  # an error with its traceback keeps a guard in a cycle
    return {thread for thread in threading.enumerate() if thread.name.startswith("paddock")}


def in_threads(jobs):
    """Runs the jobs concurrently and returns their results in order; raises the first exception."""
    results = [None] * len(jobs)

    def work(number, job):
        try:
            results[number] = job()
        except BaseException as e:
            results[number] = e

    threads = [threading.Thread(target=work, args=numbered, daemon=True) for numbered in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    for result, thread in zip(results, threads):
        if thread.is_alive():
            raise AssertionError("a thread did not end")
        if isinstance(result, BaseException):
            raise result
    return results


def instant(text):
    """Returns the seconds since 1970 of a timestamp of the service."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction or 0}")


class ServiceTest(unittest.TestCase):
    """A test against the service, with its own lock."""

    def setUp(self):
        self.paddock = self.client(url())
        self.name = self.new_name()

    def client(self, base_url=None, **options):
        """Returns a Paddock that is closed after the test."""
        paddock = Paddock(base_url, **options)
        self.addCleanup(paddock.close)
        return paddock

    def proxy(self, target=None):
        """Returns a proxy in front of the service, or of another one, that is closed after the test."""
        parts = urllib.parse.urlsplit(target or url())
        proxy = Proxy((parts.hostname, parts.port))
        self.addCleanup(proxy.close)
        return proxy

    def replica(self, *flags, **options):
        """Returns a Replica that is stopped after the test."""
        replica = Replica(*flags, **options)
        self.addCleanup(replica.close)
        return replica

    def new_name(self):
        return f"test:{self._testMethodName[5:60]}:{uuid.uuid4().hex[:8]}"

    def kinds(self, name=None):
        """Returns the kinds of the lock's events, oldest first."""
        return [event["kind"] for event in self.paddock.events(lock=name or self.name)["events"]]

    def await_next(self, name, waiters):
        """Waits for the lock in a thread, without a proxy, and returns a function that waits for the grant and returns its
        time on the database's clock. waiters is the number of waiters of the lock, this one included."""
        granted = []

        def wait():
            lease = self.client(url()).hold(name, wait=BOUND)
            granted.append(instant(self.client(url()).lock(name)["leases"][0]["acquired_at"]))
            lease.release()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self.await_waiters(waiters, name)

        def result():
            thread.join(BOUND)
            self.assertEqual(len(granted), 1, "the lock was not granted again")
            return granted[0]

        return result

    def await_waiters(self, number, name=None):
        eventually(lambda: self.paddock.lock(name or self.name)["waiters"] == number, f"the lock does not have {number} waiters")
