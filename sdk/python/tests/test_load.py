"""Many guards and waiters while replicas freeze and die: no lease and no place is lost."""

import asyncio
import threading
import time

from service import BOUND, ServiceTest, eventually

from paddock import aio

GUARDS = 20
TTL = 6.0


class Load(ServiceTest):
    def setUp(self):
        super().setUp()
        self.first, self.second = self.replica(), self.replica()
        self.urls = [self.first.url, self.second.url]
        self.names = [f"{self.name}:{number}" for number in range(GUARDS)]
        self.held, self.served, self.losses = [], [], []
        self.let_go = threading.Event()

    def outage(self):
        """Freezes and kills replicas while guards hold and waiters wait."""
        eventually(lambda: len(self.held) == GUARDS, "not all locks are held")
        eventually(lambda: self.waiters() == GUARDS, "not all waiters wait")
        self.first.freeze()
        time.sleep(TTL)  # everything must be renewed at the other one
        self.first.thaw()
        self.first.kill()
        time.sleep(TTL)
        eventually(lambda: self.waiters(attached=True) == GUARDS, "a place was lost")
        self.let_go.set()

    def waiters(self, attached=False):
        waiters = [w for name in self.names for w in self.paddock.queue(name)["waiters"]]
        return sum(1 for w in waiters if w["attached"] or not attached)

    def under_load(self, stop):
        client = self.client(self.second.url)
        while not stop.is_set():
            with client.hold(self.new_name()):
                pass

    def check(self):
        self.assertEqual((self.losses, len(self.served)), ([], GUARDS))
        for name in self.names:
            self.assertEqual(self.kinds(name), ["granted", "queued", "released", "granted", "released"])

    def with_load(self, work):
        stop = threading.Event()
        load = [threading.Thread(target=self.under_load, args=(stop,), daemon=True) for _ in range(2)]
        for thread in load:
            thread.start()
        try:
            work()
        finally:
            stop.set()
            self.let_go.set()
            for thread in load:
                thread.join(BOUND)

    def test_in_threads(self):
        holding, waiting = self.client(base_urls=self.urls), self.client(base_urls=self.urls)

        def guard(name):
            with holding.hold(name, ttl=TTL, on_lost=self.losses.append):
                self.held.append(name)
                self.let_go.wait(3 * BOUND)

        def wait(name):
            with waiting.hold(name, ttl=TTL, wait=None, on_lost=self.losses.append) as lease:
                lease.check()
                self.served.append(name)

        def work():
            threads = [threading.Thread(target=guard, args=(name,), daemon=True) for name in self.names]
            for thread in threads:
                thread.start()
            eventually(lambda: len(self.held) == GUARDS, "not all locks are held")
            threads += [threading.Thread(target=wait, args=(name,), daemon=True) for name in self.names]
            for thread in threads[GUARDS:]:
                thread.start()
            self.outage()
            for thread in threads:
                thread.join(BOUND)

        self.with_load(work)
        self.check()

    def test_in_asyncio(self):
        async def guard(client, name):
            async with client.hold(name, ttl=TTL):
                self.held.append(name)
                while not self.let_go.is_set():
                    await asyncio.sleep(0.05)

        async def wait(client, name):
            async with client.hold(name, ttl=TTL, wait=None) as lease:
                lease.check()
                self.served.append(name)

        async def main():
            async with aio.Paddock(base_urls=self.urls) as client:
                tasks = [asyncio.create_task(guard(client, name)) for name in self.names]
                while len(self.held) < GUARDS:
                    await asyncio.sleep(0.05)
                tasks += [asyncio.create_task(wait(client, name)) for name in self.names]
                outage = asyncio.get_running_loop().run_in_executor(None, self.outage)
                await asyncio.gather(outage, *tasks)

        self.with_load(lambda: asyncio.run(main()))
        self.check()
