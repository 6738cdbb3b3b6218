"""A process that is paused beyond its TTL and resumes."""

import pathlib
import signal
import subprocess
import sys

from service import BOUND, SDK, ServiceTest, eventually, url

WORKER = pathlib.Path(__file__).with_name("worker.py")


class Paused(ServiceTest):
    arguments = ()

    def setUp(self):
        super().setUp()
        self.worker = subprocess.Popen([sys.executable, str(WORKER), url(), self.name, *self.arguments], text=True,
                                       env={"PYTHONPATH": str(SDK)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for cleanup in (self.worker.wait, self.worker.kill, self.worker.stdin.close, self.worker.stdout.close):
            self.addCleanup(cleanup)
        self.token = int(self.output())

    def output(self):
        return self.worker.stdout.readline().strip()

    def command(self, line):
        self.worker.stdin.write(line + "\n")
        self.worker.stdin.flush()

    def pause_until_another_has_written(self):
        self.worker.send_signal(signal.SIGSTOP)
        status = pathlib.Path(f"/proc/{self.worker.pid}/stat")
        eventually(lambda: ") T " in status.read_text(), "the worker was not stopped")
        lease = self.paddock.hold(self.name, wait=BOUND, ttl=60)
        self.addCleanup(lease.release)
        self.assertGreater(lease.token, self.token)
        written = self.paddock.write_fenced(self.name, lock=self.name, token=lease.token, value="by another holder")
        self.worker.send_signal(signal.SIGCONT)
        return written

    def test_its_check_fails_and_its_token_is_rejected(self):
        self.command("guarded")
        self.assertEqual(self.output(), "written")
        written = self.pause_until_another_has_written()
        self.command("guarded")
        self.assertEqual(self.output(), "lease_lost")
        self.command("bare")
        self.assertEqual(self.output(), "stale_token")
        self.assertEqual(self.paddock.read_fenced(self.name), written)

    def test_paused_between_writes_no_later_write_succeeds(self):
        self.command("all")
        self.assertEqual(self.output(), "written")
        written = self.pause_until_another_has_written()
        self.assertIn(self.output(), ("lease_lost", "stale_token"))
        self.assertEqual(self.paddock.read_fenced(self.name), written)


class PausedInASession(Paused):
    arguments = ("session",)


class PausedLeader(Paused):
    arguments = ("leader",)
