"""Several addresses of one deployment, and proxies on the way. What calls that wait do is in test_waits.py."""

import http.client
import http.server
import os
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from unittest import mock

from service import BOUND, ServiceTest, eventually, url

from paddock import Paddock, Unavailable, UnknownOutcome
from paddock import _transport as transport


def unused():
    """Returns a URL to which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


class Addresses(ServiceTest):
    def test_they_come_from_the_arguments_or_the_environment(self):
        self.assertEqual(self.client("http://a, http://b").base_urls, ["http://a", "http://b"])
        self.assertEqual(self.client(base_urls=("http://a", "unix:/run/b.sock")).base_urls, ["http://a", "unix:/run/b.sock"])
        with mock.patch.dict(os.environ, {"PADDOCK_URL": "http://c,http://d"}):
            self.assertEqual(self.client().base_urls, ["http://c", "http://d"])
        with mock.patch.dict(os.environ):
            os.environ.pop("PADDOCK_URL", None)
            for arguments in ({}, {"base_urls": []}, {"base_url": "http://a", "base_urls": ["http://b"]}):
                with self.subTest(arguments), self.assertRaises(ValueError):
                    Paddock(**arguments)
        for arguments in ({"base_url": ["http://a"]}, {"base_urls": "http://a"}, {"base_urls": {"http://a"}}):
            with self.subTest(arguments), self.assertRaises(TypeError):
                Paddock(**arguments)

    def test_a_certificate_that_is_not_trusted_is_named(self):
        refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
        refused.verify_message = "self-signed certificate"
        with mock.patch.object(http.client.HTTPSConnection, "connect", side_effect=refused):
            with self.assertRaisesRegex(Unavailable, r"not sent: the certificate .* is not trusted \(self-signed certificate\); pass "
                                        r"tls=ssl.create_default_context\(cafile=FILE\)") as caught:
                self.client("https://locks.example").lock("jobs")
        self.assertIs(caught.exception.__cause__, refused)

    def test_an_error_says_which_of_them_is_wrong(self):
        for urls, text in ((["ftp://a"], "^the base URL must be http"),
                           (["http://a", "ftp://b"], "^base URL 2 of 2 must be http"),
                           (["http://a", "unix:b"], "^base URL 2 of 2 is a socket without"),
                           (["http://a:secret", "http://b"], "^base URL 1 of 2 is not a URL; pass one such as https://locks.example.org$"),
                           (["http://a", "http://b", "http://a/"], "^base URLs 1 and 3 are the same; give each replica's address once$")):
            with self.subTest(urls), self.assertRaisesRegex(ValueError, text):
                Paddock(base_urls=urls)
        with self.assertRaisesRegex(ValueError, "^base URL 2 of 2 must be http"):
            Paddock("http://a,")
        with self.assertRaisesRegex(TypeError, "^base URL 2 of 2 is of the type int; give text.$"):
            Paddock(base_urls=["http://a", 1])

    def test_without_a_connection_the_next_address_is_used_and_kept(self):
        client = self.client(base_urls=[unused(), unused(), url()])
        client.acquire(self.name)
        self.assertEqual(client._transport.url, url())
        self.assertEqual(self.kinds(), ["granted"])

    def test_after_a_lost_answer_only_what_may_be_repeated_is_sent_to_the_next(self):
        for lease_id, kinds in ((str(uuid.uuid4()), ["granted", "released"]), (None, ["granted"])):
            name, proxy = self.new_name(), self.proxy()
            client = self.client(base_urls=[proxy.url, url()])
            proxy.cut(1)
            if lease_id:
                grant = client.acquire(name, lease_id=lease_id)
                client.release(name, grant.lease_id)
            else:
                self.assertRaises(UnknownOutcome, client.acquire, name)
            self.assertEqual(client._transport.url, url(), "it did not move")
            self.assertEqual(self.kinds(name), kinds)

    def test_if_the_outcome_at_one_is_unknown_the_failure_of_the_next_does_not_hide_it(self):
        proxy = self.proxy()
        proxy.cut(1)
        with self.assertRaises(UnknownOutcome):
            self.client(base_urls=[proxy.url, unused()]).acquire(self.name, lease_id=str(uuid.uuid4()))
        first, second = unused(), unused()
        with self.assertRaisesRegex(Unavailable, f"not sent: {first}: .*; {second}: "):
            self.client(base_urls=[first, second]).acquire(self.name, lease_id=str(uuid.uuid4()))

    def test_a_silent_address_costs_its_share_of_the_time(self):
        proxy = self.proxy()
        client = self.client(base_urls=[proxy.url, url()], timeout=4.0)
        proxy.fall_silent()
        client.lock(self.name)
        self.assertEqual(client._transport.url, url())

    def test_each_attempt_leaves_time_for_the_other_addresses(self):
        limits, one = [], transport.Transport([unused() for _ in range(3)], {}, None, transport.Key(None, {}))

        def silent(_, request, limit):
            limits.append(limit)
            raise TimeoutError

        with mock.patch.object(one, "_attempt", silent), mock.patch.object(transport.time, "monotonic", lambda: 5.0 + sum(limits)):
            self.assertRaises(OSError, one.exchange, transport.Request("GET", "/", None, 12.0))
            self.assertEqual(limits, [2.0, 2.5, 3.75])
            limits.clear()
            self.assertRaises(OSError, one.exchange, transport.Request("GET", "/", None, 0.6))
            self.assertEqual(limits[0], 0.25)
            limits.clear()
            self.assertRaises(OSError, one.exchange, transport.Request("GET", "/", None, 60.0, wait=10.0))
            self.assertEqual(limits, [12.0], "the caller asks for the rest of a wait")

    def test_it_returns_when_an_earlier_address_is_ready(self):
        proxy, states = self.proxy(), []
        proxy.refuse()
        with mock.patch.object(transport, "MIN_PROBE_PAUSE", 0.05):
            client = self.client(base_urls=[proxy.url, url()])
            client.lock(self.name)
            self.assertEqual(client._transport.url, url())
            first = client._transport._probe_pause

            def back():
                client.lock(self.name)
                states.append(client._transport._probe_pause)
                return client._transport.url == proxy.url

            eventually(lambda: back() or states[-1] >= 4 * first, "failed probes are not rarer")
            self.assertEqual(client._transport.url, url())
            proxy.heal()
            eventually(back, "it did not return")
        client.lock(self.name)

    def test_a_wait_moves_with_its_place(self):
        proxy, leases = self.proxy(), []
        client = self.client(base_urls=[proxy.url, url()])
        with self.paddock.hold(self.name):
            waiting = threading.Thread(target=lambda: leases.append(client.hold(self.name, wait=BOUND)), daemon=True)
            waiting.start()
            self.await_waiters(1)
            place = self.paddock.queue(self.name)["waiters"][0]["place"]
            proxy.refuse()
            eventually(lambda: client._transport.url == url(), "it did not move")
            eventually(lambda: [(w["place"], w["attached"]) for w in self.paddock.queue(self.name)["waiters"]] == [(place, True)], "the place was lost")
        waiting.join(BOUND)
        leases[0].release()
        self.assertEqual([kind for kind in self.kinds() if kind in ("queued", "dequeued", "withdrawn")], ["queued"])


class _HttpProxy:
    """An HTTP proxy that reaches the service under any name, and counts the requests and tunnels."""

    def __init__(self, target):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
                path = urllib.parse.urlsplit(self.path)
                connection = http.client.HTTPConnection(*target, timeout=BOUND)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
                connection.request(self.command, path.path + (f"?{path.query}" if path.query else ""), body,
                                   {key: value for key, value in self.headers.items() if key not in ("Host", "Proxy-Authorization")})
                response = connection.getresponse()
                content = response.read()
                self.send_response(response.status)
                for key, value in response.getheaders():
                    if key not in ("Content-Length", "Date", "Transfer-Encoding"):
                        self.send_header(key, value)
                if response.status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                connection.close()

            do_GET = do_POST = do_PUT = do_DELETE = forward

            def do_CONNECT(self):
                seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
                self.send_response(502)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class EnvironmentProxies(ServiceTest):
    def setUp(self):
        super().setUp()
        parts = urllib.parse.urlsplit(url())
        self.proxy_server = _HttpProxy((parts.hostname, parts.port))
        self.addCleanup(self.proxy_server.close)

    def environment(self, **variables):
        clean = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        return mock.patch.dict(os.environ, {**clean, **variables}, clear=True)

    def test_an_http_proxy_is_used_with_its_password(self):
        with self.environment(HTTP_PROXY=f"http://me:se%40cret@{self.proxy_server.address}"):
            client = self.client("http://locks.test:8080")
        with client.hold(self.name):
            pass
        self.assertEqual(self.kinds(), ["granted", "released"])
        self.assertEqual(self.proxy_server.seen[0], ("POST", f"http://locks.test:8080/v1/locks/{urllib.parse.quote(self.name, safe='')}/acquire",
                                                     "Basic bWU6c2VAY3JldA=="))

    def test_https_uses_a_tunnel(self):
        with self.environment(HTTPS_PROXY=self.proxy_server.address):
            client = self.client("https://locks.test")
        with self.assertRaisesRegex(Unavailable, "502"):
            client.lock(self.name)
        self.assertEqual(self.proxy_server.seen, [("CONNECT", "locks.test:443", None)])

    def test_no_proxy_and_this_machine_are_excepted(self):
        with self.environment(HTTP_PROXY=f"http://{self.proxy_server.address}", NO_PROXY="locks.test"):
            self.client(url()).lock(self.name)
            for host in ("http://locks.test", "http://localhost:1", "http://[::1]:1", "unix:/run/paddock.sock"):
                self.assertIsNone(self.client(host)._transport._addresses[0]._proxy)
            self.assertIsNotNone(self.client("http://other.test")._transport._addresses[0]._proxy)
        self.assertEqual(self.proxy_server.seen, [])
        with self.environment(HTTP_PROXY="socks5://127.0.0.1:1"), self.assertRaisesRegex(ValueError, "proxy"):
            self.client("http://other.test")
