"""Event streams with resume, changes of a lock, and batches."""

import asyncio
import http.server
import threading
import uuid

from service import BOUND, ServiceTest, eventually, url
from test_aio import AioTest, in_loop

from paddock import InvalidRequest


class Streams(ServiceTest):
    def follow(self, client, **options):
        """Returns a list that grows with the kinds of the events, when the stream has begun."""
        seen = []

        def work():
            for event in client.stream(lock=self.name, **options):
                seen.append((event["kind"], event.get("fencing_token")))

        cursor = self.paddock.events(lock=self.name, cursor="now")["next_cursor"]
        threading.Thread(target=lambda: work(), daemon=True).start()
        return seen, cursor

    def cycle(self):
        with self.paddock.hold(self.name) as lease:
            return [("granted", lease.token), ("released", lease.token)]

    def test_events_come_from_the_cursor_and_then_live(self):
        first = self.cycle()
        seen, _ = self.follow(self.client(url()), cursor=str(self.paddock.events(lock=self.name)["events"][0]["id"]))
        eventually(lambda: seen == first[1:], "the past event did not come")
        second = self.cycle()
        eventually(lambda: seen == first[1:] + second, "the live events did not come")

    def test_a_stream_that_breaks_goes_on_elsewhere_without_a_gap(self):
        proxy, gaps, errors = self.proxy(), [], []
        client = self.client(base_urls=[proxy.url, url()])
        begin = self.paddock.events(cursor="now")["next_cursor"]
        seen, _ = self.follow(client, cursor=begin, on_gap=gaps.append, on_error=errors.append)
        expected = self.cycle()
        eventually(lambda: seen == expected, "the events did not come")
        proxy.refuse()
        expected += self.cycle() + self.cycle()
        eventually(lambda: seen == expected, "the events after the break did not come")
        self.assertEqual((gaps, client._transport.url), ([], url()))

    def test_an_outage_is_told_once(self):
        proxy, errors = self.proxy(), []
        begin = self.paddock.events(cursor="now")["next_cursor"]
        seen, _ = self.follow(self.client(proxy.url), cursor=begin, on_error=errors.append)
        expected = self.cycle()
        eventually(lambda: seen == expected, "the events did not come")
        proxy.refuse()
        eventually(lambda: errors, "the outage was not told")
        expected += self.cycle()
        proxy.heal()
        eventually(lambda: seen == expected, "the events after the outage did not come")
        self.assertEqual(len(errors), 1)

    def test_a_stream_through_a_proxy_that_closes_each_connection(self):
        class Handler(http.server.BaseHTTPRequestHandler):  # of HTTP/1.0
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Paddock-Api", "v1")
                self.end_headers()
                self.wfile.write(b'id: %d\nevent: granted\ndata: {"id": 1}\n\n: still here\n\n' % len(asked))

            def log_message(self, *_):
                pass

        asked = []
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            events = self.client(f"http://127.0.0.1:{server.server_port}").stream(cursor="0")
            self.assertEqual([next(events)["id"] for _ in range(3)], [1, 1, 1])
            server.shutdown()
        self.assertEqual(asked, [f"/v1/events/stream?cursor={number}" for number in range(3)])

    def test_an_error_that_a_retry_cannot_fix_is_raised(self):
        with self.assertRaises(InvalidRequest):
            next(self.paddock.stream(cursor="nonsense"))
        with self.assertRaises(InvalidRequest):
            next(self.paddock.changes("a/b"))
        with self.assertRaises(TypeError):
            next(self.paddock.stream(lock=1))

    def test_the_changes_of_a_lock(self):
        seen, client = [], self.client(url())

        def work():
            for lock in client.changes(self.name):
                seen.append((lock["state"], lock["waiters"]))

        threading.Thread(target=work, daemon=True).start()
        eventually(lambda: seen == [("free", 0)], "no first answer")
        with self.paddock.hold(self.name, ttl=1.5):
            eventually(lambda: seen[1:] == [("held", 0)], "the grant was not seen")
            waiting = threading.Thread(target=lambda: self.client(url()).hold(self.name, wait=BOUND).release(), daemon=True)
            waiting.start()
            eventually(lambda: seen[2:] == [("held", 1)], "the waiter was not seen")
        waiting.join(BOUND)
        eventually(lambda: seen[-1] == ("free", 0), "the end was not seen")

    def test_a_batch_has_a_result_for_each_item(self):
        lease_id = str(uuid.uuid4())
        results = self.paddock.batch([{"op": "acquire", "name": self.name, "lease_id": lease_id}, {"op": "acquire", "name": self.name},
                                      {"op": "renew", "name": self.name, "lease_id": lease_id, "ttl_ms": 60_000},
                                      {"op": "release", "name": self.name, "lease_id": lease_id}])["results"]
        self.assertEqual([result["status"] for result in results], [201, 409, 200, 204])
        self.assertEqual((results[1]["problem"]["code"], results[2]["lease"]["ttl_ms"]), ("lock_held", 60_000))
        for items in ("text", [1], {"op": "renew"}):
            self.assertRaises(TypeError, self.paddock.batch, items)


class AioStreams(AioTest):
    @in_loop
    async def test_events_and_changes_are_async_iterators(self):
        kinds, states = [], []

        async def events():
            async for event in self.locks.stream(lock=self.name):
                kinds.append(event["kind"])

        async def changes():
            async for lock in self.locks.changes(self.name):
                states.append(lock["state"])

        tasks = [asyncio.create_task(events()), asyncio.create_task(changes())]
        await self.until(lambda: states == ["free"], "no first answer")
        while not kinds or "held" not in states:  # of quick changes, only the last may be seen
            async with self.locks.hold(self.name):
                await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=BOUND)
        self.assertTrue(all(task.cancelled() for task in tasks))
