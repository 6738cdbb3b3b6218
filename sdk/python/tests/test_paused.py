"""A process that is paused past its TTL, and wakes up."""

import pathlib
import signal
import subprocess
import sys

from service import BOUND, SDK, ServiceTest, eventually, url

WORKER = pathlib.Path(__file__).with_name("worker.py")


class Paused(ServiceTest):
    def setUp(self):
        super().setUp()
        self.worker = subprocess.Popen([sys.executable, str(WORKER), url(), self.name], text=True, env={"PYTHONPATH": str(SDK)},
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for cleanup in (self.worker.wait, self.worker.kill, self.worker.stdin.close, self.worker.stdout.close):
            self.addCleanup(cleanup)
        self.token = int(self.said())

    def said(self):
        return self.worker.stdout.readline().strip()

    def tell(self, order):
        self.worker.stdin.write(order + "\n")
        self.worker.stdin.flush()

    def pause_until_another_has_written(self):
        self.worker.send_signal(signal.SIGSTOP)
        status = pathlib.Path(f"/proc/{self.worker.pid}/stat")
        eventually(lambda: ") T " in status.read_text(), "the worker was not stopped")
        lease = self.paddock.hold(self.name, wait=BOUND, ttl=60)
        self.addCleanup(lease.release)
        self.assertGreater(lease.token, self.token)
        written = self.paddock.write_fenced(self.name, lock=self.name, token=lease.token, value="by another")
        self.worker.send_signal(signal.SIGCONT)
        return written

    def test_it_is_told_before_it_writes_again_and_its_token_is_refused(self):
        self.tell("guarded")
        self.assertEqual(self.said(), "written")
        written = self.pause_until_another_has_written()
        self.tell("guarded")
        self.assertEqual(self.said(), "lease_lost")
        self.tell("bare")
        self.assertEqual(self.said(), "stale_token")
        self.assertEqual(self.paddock.read_fenced(self.name), written)

    def test_paused_in_the_middle_of_its_writes_it_gets_none_through_afterwards(self):
        self.tell("all")
        self.assertEqual(self.said(), "written")
        written = self.pause_until_another_has_written()
        self.assertIn(self.said(), ("lease_lost", "stale_token"))
        self.assertEqual(self.paddock.read_fenced(self.name), written)
