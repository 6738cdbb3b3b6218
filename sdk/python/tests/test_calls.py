"""The single calls: what they send, return and raise."""

import http.server
import json
import pickle
import socket
import ssl
import subprocess
import tempfile
import threading
import uuid

from service import BOUND, ServiceTest, url

import paddock
from paddock import InvalidRequest, LeaseLost, LockHeld, NotAllowed, Paddock, PaddockError, StaleToken, Unavailable, UnknownOutcome


# A complete response, but of another lock.
OTHER_LOCK = '{"name":"other","state":"free","lease_id":"x","fencing_token":1,"slot":0,"ttl_ms":1,"expires_in_ms":1}'


class Calls(ServiceTest):
    def test_tokens_grow_from_grant_to_grant(self):
        tokens = []
        for _ in range(3):
            grant = self.paddock.acquire(self.name, ttl=60)
            tokens.append(grant.token)
            self.assertEqual(grant.ttl, 60)
            self.paddock.release(self.name, grant.lease_id)
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_a_repeated_acquire_returns_the_same_lease(self):
        lease_id = str(uuid.uuid4())
        first = self.paddock.acquire(self.name, lease_id=lease_id.upper())
        again = self.paddock.acquire(self.name, lease_id=lease_id)
        self.assertEqual(first.token, again.token)
        self.assertEqual(self.kinds(), ["granted"])

    def test_a_wait_without_a_lease_id_leaves_the_queue_when_it_is_given_up(self):
        held = self.paddock.acquire(self.name, ttl=60)
        client = self.client(url(), timeout=BOUND)
        waiting = threading.Thread(target=lambda: self.assertRaises(PaddockError, client.acquire, self.name, wait=0.5, timeout=0.2))
        waiting.start()
        self.await_waiters(1)
        waiting.join(BOUND)
        self.await_waiters(0)
        left = self.paddock.events(lock=self.name, kind="dequeued")["events"]
        self.assertEqual([event["reason"] for event in left], ["client disconnected"])
        self.paddock.release(self.name, held.lease_id)

    def test_a_renewal_moves_the_end_and_keeps_the_token(self):
        grant = self.paddock.acquire(self.name, ttl=20)
        renewed = self.paddock.renew(self.name, grant.lease_id, ttl=60)
        self.assertEqual((renewed.token, renewed.ttl), (grant.token, 60))
        self.assertGreater(renewed.until, grant.until)

    def test_a_release_may_be_repeated(self):
        grant = self.paddock.acquire(self.name)
        self.paddock.release(self.name, grant.lease_id)
        self.paddock.release(self.name, grant.lease_id)
        self.assertEqual(self.paddock.lock(self.name)["state"], "free")

    def test_names_with_colons_reach_the_right_lock(self):
        self.name = f"a:b@c.{uuid.uuid4().hex}:d"
        self.paddock.acquire(self.name)
        self.assertEqual(self.paddock.lock(self.name)["state"], "held")
        self.assertEqual([lock["name"] for lock in self.paddock.locks(prefix=self.name)["locks"]], [self.name])
        self.assertEqual([lock["name"] for lock in self.paddock.locks(contains=self.name[5:], sort="age")["locks"]], [self.name])
        self.assertEqual(self.paddock.locks(prefix=self.name, contended=True)["locks"], [])

    def test_reads_return_leases_waiters_and_events(self):
        self.paddock.acquire(self.name, holder="worker-1", metadata={"host": "db-3"})
        self.assertEqual(self.paddock.lock(self.name)["leases"][0]["metadata"], {"host": "db-3"})
        self.assertEqual(self.paddock.queue(self.name)["waiters"], [])
        page = self.paddock.events(lock=self.name)
        self.assertEqual(page["events"][0]["holder"], "worker-1")
        self.assertEqual(self.paddock.events(lock=self.name, cursor=page["next_cursor"], wait=0.05)["events"], [])
        newest = self.paddock.events(lock=self.name, order="desc", kind="granted,released", since=page["events"][0]["at"])
        self.assertNotIn("next_cursor", newest)
        self.assertEqual(newest["events"], [e for e in reversed(page["events"]) if e["kind"] in ("granted", "released")])
        held = self.paddock.holds(self.name, at=page["events"][0]["at"])
        self.assertEqual([hold["fencing_token"] for hold in held["holds"]], [page["events"][0]["fencing_token"]])

    def test_permits_have_slots_and_readers_share_a_token(self):
        slots = {self.paddock.acquire(self.name, mode="permit", capacity=2).slot for _ in range(2)}
        self.assertEqual(slots, {1, 2})

    def test_several_permits_are_one_lease(self):
        two = self.paddock.acquire(self.name, mode="permit", capacity=3, permits=2)
        self.assertEqual((two.slot, two.slots), (1, {self.name: [1, 2]}))
        with self.assertRaises(LockHeld):
            self.paddock.acquire(self.name, mode="permit", capacity=3, permits=2)
        other = {"name": self.name + ":b", "mode": "permit", "capacity": 8, "permits": 3}
        self.assertEqual(self.paddock.acquire([self.name, other], mode="permit", capacity=3).slots, {self.name: [3], self.name + ":b": [1, 2, 3]})
        self.assertEqual(self.paddock.lock(self.name)["leases"][0].get("slots", [3]), [1, 2])
        with self.assertRaises(InvalidRequest) as refused:
            self.paddock.acquire(self.name, mode="permit", capacity=3, permits=4)
        self.assertIn("permits is 4; give 1 to 3", str(refused.exception))
        other = self.new_name()
        tokens = {self.paddock.acquire(other, mode="shared").token for _ in range(2)}
        self.assertEqual(len(tokens), 1)

    def test_a_fenced_write_needs_the_newest_token(self):
        old = self.paddock.acquire(self.name)
        self.paddock.write_fenced(self.name, lock=self.name, token=old.token, value={"balance": 100})
        self.paddock.release(self.name, old.lease_id)
        new = self.paddock.acquire(self.name)
        with self.assertRaises(StaleToken) as refused:
            self.paddock.write_fenced(self.name, lock=self.name, token=old.token, value=None)
        self.assertEqual(refused.exception.status, 412)
        self.assertEqual(refused.exception.fields["newest_token"], new.token)
        self.assertEqual(self.paddock.verify_token(self.name, old.token)["status"], "stale")
        self.assertTrue(self.paddock.verify_token(self.name, new.token)["current"])
        self.paddock.write_fenced(self.name, lock=self.name, token=new.token, value=None, if_version=1)
        self.assertFalse(self.paddock.report_stale_token(self.name, old.token), "the service has recorded it already")
        self.assertTrue(self.paddock.report_stale_token(self.name, old.token, slot=0, where="table accounts"))
        refused = self.paddock.events(lock=self.name, kind="refused")["events"]
        self.assertEqual([e.get("reason") for e in refused], [f"fenced value {self.name}", "table accounts"])
        self.assertIsNone(self.paddock.read_fenced(self.name)["value"])

    def test_an_operation_is_written_once(self):
        old = self.paddock.acquire(self.name)
        self.paddock.write_fenced(self.name, lock=self.name, token=old.token, value=1, operation_id="booking:1")
        self.paddock.release(self.name, old.lease_id)
        new = self.paddock.acquire(self.name)
        again = self.paddock.write_fenced(self.name, lock=self.name, token=new.token, value=2, operation_id="booking:1")
        self.assertEqual((again["version"], again["value"], again["fencing_token"]), (1, 1, old.token))

    def test_a_revocation_ends_the_lease_and_reports_the_reason(self):
        grant = self.paddock.acquire(self.name)
        lock = self.paddock.revoke(self.name, token=grant.token, reason="db-3 is being replaced")
        self.assertEqual(lock["state"], "free")
        with self.assertRaises(LeaseLost) as lost:
            self.paddock.renew(self.name, grant.lease_id)
        self.assertEqual((lost.exception.fields["ended"], lost.exception.fields["reason"]), ("revoked", "db-3 is being replaced"))

    def test_errors_have_a_class_a_code_a_status_and_fields(self):
        self.paddock.acquire(self.name, holder="worker-1", ttl=60)
        with self.assertRaises(LockHeld) as held:
            self.paddock.acquire(self.name)
        self.assertEqual((held.exception.code, held.exception.status, held.exception.holder), ("lock_held", 409, "worker-1"))
        self.assertGreater(held.exception.retry_after, 0)
        self.assertFalse(held.exception.transient)
        with self.assertRaisesRegex(InvalidRequest, "ttl is 0.001; give 0.1 to 86400 \\(seconds\\)"):
            self.paddock.acquire(self.name, ttl=0.0001)
        for code, call in {
            "invalid_request": lambda: self.paddock.acquire(self.name, ttl=0.001),
            "token_mismatch": lambda: self.paddock.revoke(self.name, token=1 << 50, reason="wrong"),
            "unknown_token": lambda: self.paddock.write_fenced(self.name, lock=self.name, token=1 << 50, value=1),
            "not_found": lambda: self.paddock.read_fenced(self.new_name()),
            "lease_lost": lambda: self.paddock.renew(self.name, str(uuid.uuid4())),
        }.items():
            with self.subTest(code), self.assertRaises(PaddockError) as refused:
                call()
            self.assertEqual(refused.exception.code, code)
            self.assertEqual(str(refused.exception), f"{code}: {refused.exception.detail}")

    def test_errors_name_the_options_as_the_caller_wrote_them(self):
        for text, call in {
            r"ttl is 0\.01; give 0\.1 to 86400 \(seconds\)": lambda: self.paddock.hold(self.name, ttl=0.01),
            r"wait is 60; give 0 to 50 \(seconds\)": lambda: self.paddock.acquire(self.name, wait=60),
            r"grace is -1; give 0 to": lambda: self.paddock.hold(self.name, grace=-1),
            r"max_hold is 0\.001; give": lambda: self.paddock.hold(self.name, max_hold=0.001),
            r"margin is 20; give more than 0 and at most 10 \(seconds\)": lambda: self.paddock.hold(self.name, margin=20),
            r"token is 0; give 1 to": lambda: self.paddock.verify_token(self.name, 0),
            r"kill_after is 20; give 0 to 10 \(seconds\)": lambda: self.paddock.hold(self.name, wait=5).run(["true"], kill_after=20),
        }.items():
            with self.subTest(text), self.assertRaisesRegex(InvalidRequest, text):
                call()

    def test_a_wrong_type_is_named(self):
        for text, call in {
            "ttl is of the type str; give a number of seconds": lambda: self.paddock.hold(self.name, ttl="30"),
            "wait is of the type bool": lambda: self.paddock.hold(self.name, wait=True),
            "The name is of the type int; give text": lambda: self.paddock.lock(1),
            "name of a lock, or a list": lambda: self.paddock.hold(1),
            "holder is of the type int; give text": lambda: self.paddock.hold(self.name, holder=1),
            "capacity is of the type bool; give a whole number": lambda: self.paddock.hold(self.name, mode="permit", capacity=True),
            "metadata is of the type list; give a dict": lambda: self.paddock.hold(self.name, metadata=[]),
            "token is of the type str; give a whole number": lambda: self.paddock.write_fenced(self.name, lock=self.name, token="1", value=1),
            "limit is of the type str": lambda: self.paddock.events(limit="5"),
            "locks is of the type str; give a list of texts": lambda: self.paddock.wait_for_events(self.name),
            "timeout is of the type str": lambda: Paddock(url(), timeout="5"),
        }.items():
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                call()
        self.assertEqual(self.kinds(), [])

    def test_invalid_arguments_are_rejected_before_sending(self):
        for what, call in {
            "an empty name": lambda: self.paddock.lock(""),
            "a name with a slash": lambda: self.paddock.lock("a/b"),
            "metadata that is not JSON": lambda: self.paddock.acquire(self.name, metadata={"at": object()}),
            "a value that is not a number": lambda: self.paddock.write_fenced(self.name, lock=self.name, token=1, value=float("nan")),
            "a holder that is not valid text": lambda: self.paddock.acquire(self.name, holder="\ud800"),
            "an infinite duration": lambda: self.paddock.acquire(self.name, ttl=float("inf")),
            "a margin of more than a third": lambda: self.paddock.hold(self.name, ttl=3, margin=2),
            "a negative wait": lambda: self.paddock.hold(self.name, wait=-1),
        }.items():
            with self.subTest(what), self.assertRaises(InvalidRequest):
                call()
        self.assertEqual(self.kinds(), [])

    def test_an_invalid_base_url_is_rejected_and_not_repeated(self):
        for base_url in ("ftp://localhost", "localhost:8080", "http://", "http://me:secret@localhost", "http://localhost/?a=b", "http://localhost:port"):
            with self.subTest(base_url), self.assertRaises(ValueError) as refused:
                Paddock(base_url)
            self.assertNotIn("secret", str(refused.exception))

    def test_errors_and_grants_hide_the_lease_id_and_errors_can_be_pickled(self):
        grant = self.paddock.acquire(self.name)
        self.assertNotIn(grant.lease_id, repr(grant))
        with self.assertRaises(LockHeld) as held:
            self.paddock.acquire(self.name)
        self.assertEqual(pickle.loads(pickle.dumps(held.exception)).fields, held.exception.fields)

    def test_an_open_connection_is_reused_and_a_closed_one_is_not(self):
        proxy = self.proxy()
        client = self.client(proxy.url)
        client.lock(self.name)
        kept = client._transport._addresses[0]._idle[0][2].sock
        client.lock(self.name)
        self.assertIs(client._transport._addresses[0]._idle[0][2].sock, kept)
        proxy.refuse()
        proxy.heal()
        client.acquire(self.name)


class Lost(ServiceTest):
    def test_an_unsent_request_is_unavailable(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with self.assertRaises(Unavailable) as refused:
            self.client(f"http://127.0.0.1:{port}").acquire(self.name)
        self.assertIsInstance(refused.exception.__cause__, ConnectionRefusedError)
        self.assertTrue(refused.exception.transient)

    def test_after_a_lost_response_a_change_is_unknown_and_a_read_unavailable(self):
        proxy = self.proxy()
        client = self.client(proxy.url)
        proxy.cut(2)
        with self.assertRaises(UnknownOutcome):
            client.acquire(self.name)
        with self.assertRaises(Unavailable):
            client.lock(self.name)
        self.assertEqual(self.kinds(), ["granted"])

    def test_a_silent_service_ends_the_call_with_the_timeout(self):
        proxy = self.proxy()
        proxy.fall_silent()
        with self.assertRaises(UnknownOutcome):
            self.client(proxy.url, timeout=0.2).acquire(self.name)

    def test_responses_that_are_not_from_paddock(self):
        for status, content_type, body, change, read in (
            (502, "text/html", "<h1>no</h1>", UnknownOutcome, Unavailable),
            (403, "text/html", "<h1>no</h1>", Unavailable, Unavailable),
            (307, "text/html", "", UnknownOutcome, Unavailable),
            (200, "application/json", '{"hello":"world"}', UnknownOutcome, Unavailable),
            (200, "application/json", "[", UnknownOutcome, Unavailable),
            (200, "application/json", OTHER_LOCK, UnknownOutcome, Unavailable),
            (204, "application/json", "", UnknownOutcome, Unavailable),
            (503, "application/problem+json", '{"code":"theirs","detail":"x"}', UnknownOutcome, Unavailable),
            (503, "application/problem+json", '{"code":"unavailable","detail":"x"}', Unavailable, Unavailable),
            (500, "application/problem+json", '{"code":"internal","detail":"x"}', PaddockError, PaddockError),
            (418, "application/problem+json", '{"code":"teapot","detail":"x"}', PaddockError, PaddockError),
        ):
            with self.subTest(status=status, body=body), _server_with(status, content_type, body) as base_url:
                client = self.client(base_url, timeout=BOUND)
                with self.assertRaises(PaddockError) as refused:
                    client.acquire(self.name)
                self.assertIs(type(refused.exception), change)
                with self.assertRaises(PaddockError) as refused:
                    client.lock(self.name)
                self.assertIs(type(refused.exception), read)
                self.assertEqual(refused.exception.retry_after, 7)
                self.assertNotIn("<h1>", str(refused.exception))

    def test_responses_without_the_header_of_paddock_are_not_believed(self):
        grant = json.dumps(self.paddock.acquire(self.name, ttl=60).answer)
        lock = json.dumps(self.paddock.lock(self.name))
        lease_id = json.loads(grant)["lease_id"]
        for status, content_type, body in (
            (204, "", ""), (200, "application/json", ""), (201, "application/json", grant), (200, "application/json", lock),
            (304, "", ""), (409, "application/problem+json", '{"code":"lease_lost","detail":"x"}'),
        ):
            with self.subTest(status=status, body=body), _server_with(status, content_type, body, marked=False) as base_url:
                client = self.client(base_url, timeout=BOUND)
                for call in (lambda: client.acquire(self.name, lease_id=lease_id), lambda: client.release(self.name, lease_id),
                             lambda: client.close_session(lease_id), lambda: client.remove_tree("repo")):
                    self.assertRaises(UnknownOutcome, call)
                self.assertRaises(Unavailable, client.lock, self.name)

    def test_headers_and_the_path_of_the_base_url_are_sent(self):
        seen = []
        with _server_with(200, "application/json", '{"name":"a:b","state":"free"}', seen) as base_url:
            self.client(base_url + "/below/", headers={"Authorization": "Bearer key"}).lock("a:b")
        method, path, headers = seen[0]
        self.assertEqual((method, path), ("GET", "/below/v1/locks/a%3Ab"))
        self.assertEqual(headers["Authorization"], "Bearer key")
        self.assertEqual(headers["User-Agent"], f"paddock-python/{paddock.__version__}")

    def test_the_key_is_sent_and_never_shown(self):
        key, seen = "pk_k3f9a2xyqw_" + 43 * "A", []
        for code, status in (("key_missing", 401), ("key_invalid", 401), ("key_expired", 401), ("role_missing", 403), ("name_not_allowed", 403)):
            with _server_with(status, "application/problem+json", '{"code":"%s","detail":"No."}' % code, seen) as base_url:
                client = self.client(base_url, key=key)
                with self.assertRaises(NotAllowed) as refused:
                    client.hold(self.name, ttl=2)
                self.assertEqual((refused.exception.code, refused.exception.status), (code, status))
                self.assertFalse(refused.exception.transient)
                for shown in (str(refused.exception), repr(refused.exception), repr(client), str(refused.exception.fields)):
                    self.assertNotIn(key[-20:], shown)
        self.assertEqual([headers["Authorization"] for _, _, headers in seen], [f"Bearer {key}"] * 5)

    def test_a_rate_limit_is_transient(self):
        with _server_with(429, "application/problem+json", '{"code":"rate_limited","detail":"No.","retry_after_ms":10}') as base_url:
            with self.assertRaises(PaddockError) as refused:
                self.client(base_url, key="pk_x_y").lock("a")
        self.assertEqual((refused.exception.code, refused.exception.transient, refused.exception.retry_after), ("rate_limited", True, 0.01))

    def test_an_invalid_key_is_rejected_and_not_repeated(self):
        for options in ({"key": ""}, {"key": "sec ret"}, {"key": "secret\n"}, {"key": "secrét"}, {"key": "secret", "headers": {"authorization": "Basic secret"}}):
            with self.assertRaises(ValueError) as refused:
                Paddock("http://127.0.0.1:1", **options)
            self.assertNotIn("sec", str(refused.exception))


class Secured(ServiceTest):
    def test_replaced_certificates_are_used_for_the_next_connection(self):
        contexts, seen = [ssl.create_default_context()], []
        secured, trusting = self.secured()
        with _server_with(200, "application/json", '{"name":"a","state":"free"}', seen, secured) as base_url:
            client = self.client(base_url, tls=lambda: contexts[-1])
            with self.assertRaises(Unavailable):
                client.lock("a")
            contexts.append(trusting)
            client.lock("a")
        self.assertEqual(len(seen), 1)

    def secured(self):
        """Returns a context of a server, and one of a client that trusts it."""
        with tempfile.TemporaryDirectory() as folder:
            root = subprocess.run(["go", "env", "GOROOT"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            subprocess.run(["go", "run", f"{root}/src/crypto/tls/generate_cert.go", "--host", "127.0.0.1", "--ecdsa-curve", "P256", "--ca"],
                           cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=300)
            secured, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=f"{folder}/cert.pem")
            secured.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
        return secured, trusting

    def test_https_requires_a_trusted_certificate_and_reuses_connections(self):
        seen, (secured, trusting) = [], self.secured()
        with _server_with(200, "application/json", '{"name":"a","state":"free"}', seen, secured) as base_url:
            with self.assertRaises(Unavailable) as refused:
                self.client(base_url).lock("a")
            self.assertIsInstance(refused.exception.__cause__, ssl.SSLCertVerificationError)
            client = self.client(base_url, tls=trusting)
            client.lock("a")
            kept = client._transport._addresses[0]._idle[0][2].sock
            client.lock("a")
            self.assertIs(client._transport._addresses[0]._idle[0][2].sock, kept)
        self.assertEqual(len(seen), 2)


class _server_with:
    """A server that sends the same response to every request, unless marked is false with the header of Paddock."""

    def __init__(self, status, content_type, body, seen=None, secured=None, marked=True):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if seen is not None:
                    seen.append((self.command, self.path, dict(self.headers)))
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                if marked:
                    self.send_header("Paddock-Api", "v1")
                self.send_header("Retry-After", "7")
                self.send_header("Location", "http://example.org/")
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http"
        if secured:
            self._scheme = "https"
            self._server.socket = secured.wrap_socket(self._server.socket, server_side=True)
            self._server.handle_error = lambda *_: None  # ignore rejected handshakes

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
