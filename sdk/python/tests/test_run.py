"""Child processes under a lease."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from service import BOUND, ServiceTest, url

from paddock import InvalidRequest, LeaseLost

# A child and a grandchild that ignore SIGTERM and keep stdout open while they live.
STUBBORN = "trap '' TERM; (trap '' TERM; sleep 600) & echo ready; wait; sleep 600"


class Running(ServiceTest):
    def test_the_exit_code_is_the_child_s(self):
        with self.paddock.hold(self.name) as lease:
            self.assertEqual(lease.run([sys.executable, "-c", ""]), 0)
            self.assertEqual(lease.run(["sh", "-c", "exit 3"]), 3)
            self.assertEqual(lease.run(["sh", "-c", "kill -KILL $$"]), -signal.SIGKILL)
            self.assertRaises(FileNotFoundError, lease.run, ["/nowhere"])
            with tempfile.NamedTemporaryFile() as text:
                self.assertRaises(PermissionError, lease.run, [text.name])
            self.assertRaises(InvalidRequest, lease.run, ["true"], kill_after=20)
        self.assertRaises(LeaseLost, lease.run, ["true"])

    def test_the_environment_describes_only_the_innermost_lease(self):
        outer, inner = self.paddock.hold(self.name), self.paddock.hold(self.name + ":inner", mode="permit", capacity=2, holder="inner")
        inherited = {**os.environ, "PADDOCK_LOCK": self.name, "PADDOCK_SLOT": "7", "PADDOCK_LEASE_ID": "x", "PADDOCK_EXPIRES_AT": "y",
                     "PADDOCK_HOLDER": "me", "MINE": "z"}
        script = 'echo "$PADDOCK_LOCK $PADDOCK_FENCING_TOKEN ${PADDOCK_SLOT-no} ${PADDOCK_LEASE_ID-no} ${PADDOCK_EXPIRES_AT-no} $PADDOCK_URL $MINE"; echo $PADDOCK_LEASE_HOLDER $PADDOCK_HOLDER'
        read, write = os.pipe()
        with outer, inner, os.fdopen(read) as output:
            inner.run(["sh", "-c", script], env=inherited, stdout=write)
            outer.run(["sh", "-c", script], env=inherited, stdout=write)
            os.close(write)
            self.assertEqual(output.read().splitlines(), [
                f"{self.name}:inner {inner.token} 1 no no {url()} z", "inner me",
                f"{self.name} {outer.token} no no no {url()} z", f"{self.paddock.holds(self.name)['holds'][0]['holder']} me",
            ])

    def test_the_child_reads_its_stdin(self):
        read, write = os.pipe()
        os.write(write, b"7")
        os.close(write)
        with self.paddock.hold(self.name) as lease:
            self.assertEqual(lease.run(["sh", "-c", "exit $(cat)"], stdin=read), 7)
        os.close(read)

    def test_child_and_grandchild_are_gone_before_the_next_grant(self):
        for kill_after in (None, 1.0):
            with self.subTest(kill_after=kill_after):
                name, proxy = self.new_name(), self.proxy()
                with self.assertRaises(LeaseLost), self.client(proxy.url).hold(name, ttl=8) as lease:
                    granted = self.await_next(name, 1)
                    gone = self.run_stubborn(lease, proxy.fall_silent, kill_after=kill_after)
                    proxy.refuse()
                self.assertLess(gone, granted())

    def test_they_are_stopped_after_a_revocation(self):
        with self.assertRaises(LeaseLost) as lost, self.paddock.hold(self.name, ttl=600) as lease:
            self.run_stubborn(lease, lambda: self.paddock.revoke(self.name, token=lease.token, reason="out"))
        self.assertEqual(lost.exception.fields["ended"], "revoked")

    def test_sigterm_comes_before_sigkill(self):
        read, write = os.pipe()
        script = "trap 'echo stopping; sleep 0.4; echo stopped; exit' TERM; echo ready; while :; do sleep 0.5; done"
        proxy = self.proxy()
        with os.fdopen(read) as output, self.assertRaises(LeaseLost), self.client(proxy.url).hold(self.name, ttl=3) as lease:
            threading.Thread(target=self.once_ready, args=(output, proxy.refuse), daemon=True).start()
            try:
                lease.run(["sh", "-c", script], stdout=write, stderr=subprocess.DEVNULL, kill_after=1)
            finally:
                os.close(write)
                self.assertEqual(output.read(), "stopping\nstopped\n")

    def test_processes_left_by_the_child_are_stopped(self):
        read, write = os.pipe()
        with os.fdopen(read) as held, self.paddock.hold(self.name) as lease:
            self.assertEqual(lease.run(["sh", "-c", "sleep 600 & exit 0"], stdout=write), 0)
            os.close(write)
            self.assertEqual(held.read(), "")  # no process has the pipe open

    def test_ctrl_c_stops_them(self):
        with self.assertRaises(KeyboardInterrupt), self.paddock.hold(self.name) as lease:
            self.run_stubborn(lease, lambda: os.kill(os.getpid(), signal.SIGINT), kill_after=0.2)
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_ctrl_c_right_after_the_start_stops_the_child(self):
        submit = ThreadPoolExecutor.submit

        def interrupted(pool, start):
            submit(pool, start).result()  # the child runs
            raise KeyboardInterrupt

        read, write = os.pipe()
        with mock.patch.object(ThreadPoolExecutor, "submit", interrupted), os.fdopen(read) as output:
            with self.assertRaises(KeyboardInterrupt), self.paddock.hold(self.name) as lease:
                lease.run(["sleep", "600"], stdout=write)
            os.close(write)
            self.assertEqual(output.read(), "")  # no process has the pipe open

    def run_stubborn(self, lease, once_ready, **options):
        """Runs a stubborn child, calls once_ready when it is ready, and returns when all its processes were gone; run must raise."""
        read, write = os.pipe()
        gone = []

        def watch():
            with os.fdopen(read) as output:
                self.once_ready(output, once_ready)
                output.read()
            gone.append(time.time())

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            with self.assertRaises((LeaseLost, KeyboardInterrupt)) as ended:
                lease.run(["sh", "-c", STUBBORN], stdout=write, **options)
        finally:
            os.close(write)
        watcher.join(BOUND)
        self.assertEqual(len(gone), 1, "the child or grandchild still runs")
        if isinstance(ended.exception, KeyboardInterrupt):
            raise ended.exception
        return gone[0]

    def once_ready(self, output, then):
        self.assertEqual(output.readline(), "ready\n")
        then()
