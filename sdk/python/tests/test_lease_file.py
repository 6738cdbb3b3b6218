"""A lease_id in a file: the next process goes on with the same lease and token."""

import os
import pathlib
import subprocess
import sys
import tempfile

from service import BOUND, SDK, ServiceTest, eventually, url

from paddock import InvalidRequest, LeaseFileInUse, LeaseLost

HOLDER = """
import sys, time
from paddock import Paddock
lease = Paddock(sys.argv[1]).hold(sys.argv[2], ttl=float(sys.argv[4]), wait=30, lease_id_file=sys.argv[3])
print(lease.token, flush=True)
time.sleep(600)
"""


class Files(ServiceTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="paddock-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "lease")

    def start(self, ttl=60, read=True):
        """Starts a process that holds the lock, and returns it and its token."""
        process = subprocess.Popen([sys.executable, "-c", HOLDER, url(), self.name, str(self.file), str(ttl)], text=True, cwd=SDK, stdout=subprocess.PIPE)
        for cleanup in (process.wait, process.kill, process.stdout.close):
            self.addCleanup(cleanup)
        return process, int(process.stdout.readline()) if read else None

    def crash(self, process):
        process.kill()
        process.wait(BOUND)

    def test_a_process_that_is_started_again_has_the_same_lease_and_token(self):
        first, token = self.start()
        self.crash(first)
        second, again = self.start()
        self.crash(second)
        with self.paddock.hold(self.name, ttl=90, lease_id_file=self.file) as lease:
            self.assertEqual((again, lease.token), (token, token))
            self.assertGreater(lease.remaining(), 80, "it was not renewed")
        self.assertEqual(self.kinds(), ["granted", "released"])
        with self.paddock.hold(self.name, lease_id_file=self.file) as lease:
            self.assertGreater(lease.token, token)

    def test_a_waiter_that_is_started_again_has_its_place(self):
        with self.paddock.hold(self.name):
            first, _ = self.start(read=False)
            self.await_waiters(1)
            self.crash(first)
            place = self.paddock.queue(self.name)["waiters"][0]["place"]
            self.start(read=False)
            eventually(lambda: [(w["place"], w["attached"]) for w in self.paddock.queue(self.name)["waiters"]] == [(place, True)], "the place was lost")

    def test_a_lease_that_has_ended_is_not_taken_up(self):
        first, token = self.start()
        self.crash(first)
        self.paddock.revoke(self.name, token=token, reason="out")
        with self.paddock.hold(self.name, lease_id_file=self.file) as lease:
            self.assertGreater(lease.token, token)

    def test_a_hold_with_other_arguments_is_another_lease(self):
        first, token = self.start(ttl=2)
        self.crash(first)
        with self.paddock.hold(self.name, lease_id_file=self.file, mode="shared", wait=BOUND) as lease:
            self.assertGreater(lease.token, token)

    def test_two_processes_with_one_file_are_told(self):
        first, _ = self.start()
        with self.assertRaisesRegex(LeaseFileInUse, "lease"):
            self.paddock.hold(self.name, lease_id_file=self.file)
        self.crash(first)
        with self.paddock.hold(self.name, lease_id_file=self.file):
            with self.assertRaises(LeaseFileInUse):
                self.paddock.hold(self.name, lease_id_file=self.file)

    def test_after_a_loss_and_after_a_failed_acquire_the_file_is_free(self):
        with self.assertRaises(LeaseLost):
            with self.paddock.hold(self.name, ttl=60, lease_id_file=self.file) as lease:
                self.paddock.revoke(self.name, token=lease.token, reason="out")
                self.assertTrue(lease.lost.wait(BOUND))
                self.assertFalse(self.file.exists(), "the work may still run when the next process begins")
        self.assertRaises(InvalidRequest, self.paddock.hold, "a/b", lease_id_file=self.file)
        self.file.write_text("nonsense")
        with self.assertRaisesRegex(InvalidRequest, "remove it"):
            self.paddock.hold(self.name, lease_id_file=self.file)
        self.file.unlink()
        with self.paddock.hold(self.name, lease_id_file=self.file):
            self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        self.assertEqual([path.name for path in self.file.parent.iterdir()], ["lease.lock"])
        with self.paddock.hold_session() as session, self.assertRaises(InvalidRequest):
            self.paddock.hold(self.name, session=session, lease_id_file=self.file)
