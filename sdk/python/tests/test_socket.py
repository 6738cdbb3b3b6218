"""A service that listens on a socket in the file system."""

import os
import sys
import tempfile
import threading
import uuid

from service import BOUND, ServiceTest

from paddock import Paddock, Unavailable


class Socket(ServiceTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="paddock-")
        self.addCleanup(folder.cleanup)
        self.url = f"unix:{folder.name}/paddock.sock"
        self.service = self.replica(listen=self.url)
        self.local = self.client(self.url)

    def test_a_lease_is_held_renewed_and_released(self):
        with self.local.hold(self.name, ttl=3) as lease:
            self.assertFalse(lease.lost.wait(4))
            lease.check()
            program = "import os; from paddock import Paddock; print(Paddock(os.environ['PADDOCK_URL']).lock(os.environ['PADDOCK_LOCK'])['state'])"
            read, write = os.pipe()
            with os.fdopen(read) as output:
                self.assertEqual(lease.run([sys.executable, "-c", program], stdout=write, env={**os.environ, "PYTHONPATH": sys.path[0]}), 0)
                os.close(write)
                self.assertEqual(output.read(), "held\n")
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_calls_wait(self):
        held = self.local.acquire(self.name, ttl=60)
        lease_id = str(uuid.uuid4())
        granted, seen = [], []
        cursor = self.local.events(lock=self.name)["next_cursor"]
        threads = [
            threading.Thread(target=lambda: granted.append(self.local.acquire(self.name, lease_id=lease_id, wait=BOUND)), daemon=True),
            threading.Thread(target=lambda: seen.extend(self.local.events(lock=self.name, kind="released", cursor=cursor, wait=BOUND)["events"]),
                             daemon=True),
        ]
        for thread in threads:
            thread.start()
        self.await_waiters(1)
        self.local.release(self.name, held.lease_id)
        for thread in threads:
            thread.join(BOUND)
        self.assertEqual([grant.lease_id for grant in granted], [lease_id])
        self.assertEqual([event["kind"] for event in seen], ["released"])

    def test_connections_are_reused_and_without_a_service_nothing_is_sent(self):
        self.local.lock(self.name)
        kept = self.local._transport._addresses[0]._idle[0][2].sock
        self.local.lock(self.name)
        self.assertIs(self.local._transport._addresses[0]._idle[0][2].sock, kept)
        self.service.close()
        with self.assertRaises(Unavailable) as refused:
            self.local.acquire(self.name)
        self.assertIsInstance(refused.exception.__cause__, FileNotFoundError)

    def test_a_path_that_is_not_absolute_is_rejected(self):
        for base_url in ("unix:", "unix:paddock.sock", "unix:@paddock"):
            with self.subTest(base_url), self.assertRaisesRegex(ValueError, "absolute path"):
                Paddock(base_url)
