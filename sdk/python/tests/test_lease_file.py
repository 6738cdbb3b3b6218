"""A lease_id in a file: the next process goes on with the same lease and token."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

from service import BOUND, ENVIRONMENT, SDK, ServiceTest, binary, eventually, in_threads, url

from paddock import InvalidRequest, LeaseFileInUse, LeaseLost, PaddockError
from paddock._lease_file import LeaseFile

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

    def test_the_file_of_a_lease_in_another_mode_is_left_alone(self):
        first, token = self.start()
        self.crash(first)
        with self.assertRaisesRegex(PaddockError, "lease_id_file .* is of a lease with another mode") as refused:
            self.paddock.hold(self.name, lease_id_file=self.file, mode="shared", wait=BOUND)
        self.assertEqual(refused.exception.code, "lease_id_in_use")
        with self.paddock.hold(self.name, lease_id_file=self.file) as lease:
            self.assertEqual(lease.token, token)

    def test_the_file_of_other_locks_is_refused(self):
        first, _ = self.start()
        self.crash(first)
        kept = self.file.read_text()
        for locks in (self.new_name(), [self.name + ":b", self.name]):
            names = locks if isinstance(locks, str) else ",".join(sorted(locks))
            with self.assertRaisesRegex(InvalidRequest, f"lease_id_file {self.file} keeps a lease of {self.name}, not of {names}; give each work a file"):
                self.paddock.hold(locks, lease_id_file=self.file)
        self.assertEqual((self.file.read_text(), self.kinds()), (kept, ["granted"]))

    def test_several_locks_are_in_the_file_in_order(self):
        lease = self.paddock.hold([self.name + ":b", self.name], lease_id_file=self.file, holder="pod-0")
        self.assertEqual(json.loads(self.file.read_text()), {"locks": [self.name, self.name + ":b"], "lease_id": lease._granted.lease_id, "holder": "pod-0"})
        lease.release()

    def test_paddock_run_goes_on_with_the_lease_and_the_other_way_round(self):
        first, token = self.start()
        self.crash(first)
        command = [binary(), "run", "--lease-id-file", str(self.file), self.name, "--", "sh", "-c", "echo $PADDOCK_FENCING_TOKEN; kill -9 $PPID"]
        run = subprocess.run(command, env={**ENVIRONMENT, "PADDOCK_URL": url()}, capture_output=True, text=True, timeout=BOUND)
        self.assertEqual(run.stdout, f"{token}\n", run.stderr)
        with self.paddock.hold(self.name, lease_id_file=self.file) as lease:
            self.assertEqual(lease.token, token)

    def test_it_is_closed_once_by_several_threads(self):
        for _ in range(200):
            file = LeaseFile(self.file, self.name)
            file.keep("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "me")
            in_threads([lambda: file.close(True)] * 4)

    def test_unusable_files_are_refused(self):
        self.file.write_text("nonsense")
        fifo, list_of_ids = self.file.with_name("fifo"), self.file.with_name("list")
        os.mkfifo(fifo)
        list_of_ids.write_text('["lease_id"]')
        no_lock = self.file.with_name("no-lock")
        no_lock.write_text('{"lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11", "holder": "pod-0"}')
        for file, why in (("", "^lease_id_file is empty; give the name of a file, or leave it out.$"),
                          (self.file.parent, "is not a regular file; give the name of a file"), (fifo, "is not a regular file"),
                          (self.file, "is not a JSON object with locks, lease_id and holder; give"), (list_of_ids, "is not a JSON object"),
                          (no_lock, "is not a JSON object with locks"),
                          (self.file / "lease", "Not a directory.*; give the name of a file that only this work uses and that this process can write.$"),
                          ("a\0b", "embedded null")):
            with self.subTest(file), self.assertRaises(InvalidRequest) as refused:
                self.paddock.hold(self.name, lease_id_file=file)
            self.assertRegex(refused.exception.detail, why)
            self.assertRegex(refused.exception.detail, "^lease_id_file ")
        for file in (1, b"lease"):
            with self.assertRaisesRegex(TypeError, "^lease_id_file is of the type"):
                self.paddock.hold(self.name, lease_id_file=file)
        other = self.file.with_name("other")
        for _ in range(2):  # the second one is not told that another process uses the file
            with mock.patch("os.replace", side_effect=OSError(28, "No space left on device")), self.assertRaisesRegex(InvalidRequest, "No space left"):
                self.paddock.hold(self.name, lease_id_file=other)
        self.assertEqual(self.kinds(), [])

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
                eventually(lambda: not self.file.exists(), "the work may still run when the next process begins")
        self.assertRaises(InvalidRequest, self.paddock.hold, "a/b", lease_id_file=self.file)
        with self.paddock.hold(self.name, lease_id_file=self.file):
            self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        self.assertEqual([path.name for path in self.file.parent.iterdir()], ["lease.lock"])
        with self.paddock.hold_session() as session, self.assertRaises(InvalidRequest):
            self.paddock.hold(self.name, session=session, lease_id_file=self.file)
