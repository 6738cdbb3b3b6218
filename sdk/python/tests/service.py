"""A real Paddock for the tests: one process for all tests; each test uses its own lock names."""

import atexit
import calendar
import functools
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


@functools.lru_cache(maxsize=None)
def url():
    """Returns the base URL of a Paddock that is stopped after the tests."""
    folder = tempfile.TemporaryDirectory(prefix="paddock-python-")
    atexit.register(folder.cleanup)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PADDOCK_")}
    process = subprocess.Popen([_binary(folder.name), "dev", "--ephemeral", "--listen", "127.0.0.1:0", "--log-level", "error"],
                               stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(_stop, process)
    guard = threading.Timer(2 * BOUND, process.kill)
    guard.start()
    line = process.stdout.readline()
    guard.cancel()
    found = re.search(r"http://[0-9.]+:[0-9]+", line)
    if not found:
        raise RuntimeError(f"paddock dev printed no URL but {line!r}; see its errors above")
    return found.group()


def _binary(folder):
    if "PADDOCK_BIN" in os.environ:
        return os.environ["PADDOCK_BIN"]
    binary = os.path.join(folder, "paddock")
    subprocess.run(["go", "build", "-o", binary, "./cmd/paddock"], cwd=SDK.parent.parent, check=True, timeout=300)
    return binary


def _stop(process):
    process.terminate()
    try:
        process.wait(BOUND)
    finally:
        process.kill()
        process.stdout.close()


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

    def client(self, base_url, **options):
        """Returns a Paddock that is closed after the test."""
        paddock = Paddock(base_url, **options)
        self.addCleanup(paddock.close)
        return paddock

    def proxy(self):
        """Returns a proxy in front of the service that is closed after the test."""
        parts = urllib.parse.urlsplit(url())
        proxy = Proxy((parts.hostname, parts.port))
        self.addCleanup(proxy.close)
        return proxy

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
