"""API keys that are replaced while a program works, at a service that requires them."""

import pathlib
import subprocess
import tempfile

from service import BOUND, ENVIRONMENT, ServiceTest, binary, eventually

from paddock import LeaseLost, NotAllowed, SessionLost, Unavailable


def _id(key):
    return key.split("_")[1]


class Keys(ServiceTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="paddock-keys-")
        self.addCleanup(folder.cleanup)
        self.auth_file, self.file = pathlib.Path(folder.name, "keys.json"), pathlib.Path(folder.name, "key")
        self.auth_file.write_text('{"keys": []}')
        self.service = self.replica("--auth-file", self.auth_file)
        self.url = f"http://{self.service.address}"

    def new_key(self):
        """Makes a key, and returns it when the service knows it."""
        key = self.run_key("new", "--role", "lock", "tests")
        self.service.await_log("loaded the auth file", lambda line: _id(key) in (line["added"] or []))
        return key

    def revoke(self, key):
        """Revokes the key, and returns when the service refuses it."""
        self.run_key("revoke", _id(key))
        self.service.await_log("loaded the auth file", lambda line: _id(key) in (line["dropped"] or []))

    def run_key(self, verb, *arguments):
        return subprocess.run([binary(), "key", verb, "--auth-file", self.auth_file, *arguments], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT).stdout.strip()

    def replace_file(self, key):
        following = self.file.with_suffix(".next")
        following.write_text(key + "\n")
        following.replace(self.file)

    def read_file(self):
        return self.file.read_text().strip()

    def answered(self):
        """Returns the requests so far: the id of the key, if the service accepted it, and the status."""
        with_key = self.client(self.url, key=self.new_key())
        with_key.lock("last")
        self.service.await_log("request", lambda line: line["path"].endswith("/last"))
        return [(line.get("key"), line["status"]) for line in self.service.log("request") if not line["path"].endswith("/last")]

    def await_renewal(self, lease):
        """Waits until the lease lasts for longer than it can without a renewal that is sent after this call."""
        until = lease.deadline + 4
        eventually(lambda: lease.lost.is_set() or lease.deadline >= until, "the lease was not renewed")
        lease.check()

    def test_work_continues_when_its_key_is_replaced_before_the_revocation(self):
        first, second = self.new_key(), self.new_key()
        self.replace_file(first)
        states = []
        with self.client(self.url, key=self.read_file).hold(self.name, ttl=4, on_state=lambda state, _: states.append(state)) as lease:
            self.replace_file(second)
            self.revoke(first)
            self.await_renewal(lease)
        self.assertEqual(self.kinds(), ["granted", "released"])
        self.assertNotIn("at_risk", states)
        self.assertNotIn((None, 401), self.answered())

    def test_work_continues_when_its_key_is_replaced_after_the_revocation(self):
        first, second = self.new_key(), self.new_key()
        self.replace_file(first)
        with self.client(self.url, key=self.read_file).hold(self.name, ttl=8) as lease:
            self.revoke(first)
            eventually(lambda: lease.state == "at_risk", "the key is still accepted")
            self.assertIsInstance(lease.error, NotAllowed)
            self.replace_file(second)
            eventually(lambda: lease.state == "held", "the new key is not used")
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_a_loss_names_the_key_that_revoked_the_lease(self):
        holder, operator = self.new_key(), self.run_key("new", "--role", "admin", "ops")
        self.service.await_log("loaded the auth file", lambda line: _id(operator) in (line["added"] or []))
        client, session = self.client(self.url, key=holder), self.client(self.url, key=holder).hold_session(ttl=600)
        lease = client.hold(self.name, ttl=600)
        admin = self.client(self.url, key=operator)
        admin.revoke(self.name, token=lease.token, reason="db-3 is being replaced")
        admin.revoke_session(session.ref, reason="all out")
        for guard, lost, reason in ((lease, LeaseLost, "db-3 is being replaced"), (session, SessionLost, "all out")):
            self.assertTrue(guard.lost.wait(BOUND))
            with self.assertRaises(lost) as told:
                guard.check()
            self.assertEqual((told.exception.ended, told.exception.reason, told.exception.revoked_by), ("revoked", reason, "ops"))
            self.assertIn("ops", str(told.exception))

    def test_a_request_is_sent_again_with_the_key_that_replaced_a_refused_one(self):
        revoked, valid = self.new_key(), self.new_key()
        self.revoke(revoked)
        keys = [revoked, valid]  # replaced while the request is on its way
        self.client(self.url, key=lambda: keys.pop(0)).acquire(self.name)
        self.assertEqual(self.kinds(), ["granted"])
        self.assertEqual(self.answered(), [(None, 401), (_id(valid), 201)])

    def test_a_refused_key_is_not_sent_twice(self):
        revoked = self.new_key()
        self.revoke(revoked)
        with self.assertRaises(NotAllowed) as refused:
            self.client(self.url, key=lambda: revoked).acquire(self.name)
        self.assertEqual(refused.exception.code, "key_invalid")
        self.assertEqual(self.answered(), [(None, 401)])

    def test_a_key_that_cannot_be_read_again_is_used_until_it_is_refused(self):
        key = self.new_key()
        client = self.client(self.url, key=self.read_file)
        with self.assertRaisesRegex(Unavailable, "not sent.*No such file"):
            client.lock(self.name)
        self.replace_file(key)
        client.lock(self.name)
        self.file.unlink()
        client.lock(self.name)
        self.assertEqual(self.answered(), [(_id(key), 200)] * 2)
        self.revoke(key)
        with self.assertRaisesRegex(Unavailable, "refused.*No such file"):
            client.lock(self.name)
