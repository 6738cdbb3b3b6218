"""Elections, in threads and in asyncio."""

import asyncio
import threading

from service import BOUND, ServiceTest, eventually, in_threads, url
from test_aio import AioTest, in_loop

from paddock import InvalidRequest, LeaseLost, LockHeld, PaddockError, StaleToken


class Elections(ServiceTest):
    def setUp(self):
        super().setUp()
        self.election = self.paddock.election(self.name, ttl=3)

    def observe(self, **options):
        """Returns a list that grows with what an observer sees. It is stopped with the process."""
        seen, client = [], self.client(url())

        def work():
            for leader in client.election(self.name).observe(**options):
                seen.append(leader and (leader.value, leader.token))

        threading.Thread(target=work, daemon=True).start()
        return seen

    def test_a_leader_publishes_its_value_and_candidates_follow_in_order(self):
        self.assertIsNone(self.election.leader())
        elected = []

        def campaign(name):
            with self.client(url()).election(self.name).campaign(name) as term:
                elected.append((name, term.token))

        with self.election.campaign("db-1") as first:
            leader = self.election.leader()
            self.assertEqual((leader.value, leader.token), ("db-1", first.token))
            threads = []
            for name in ("db-2", "db-3"):
                threads.append(threading.Thread(target=campaign, args=(name,), daemon=True))
                threads[-1].start()
                self.await_waiters(len(threads))
            first.resign()
            for thread in threads:
                thread.join(BOUND)
        self.assertEqual([name for name, _ in elected], ["db-2", "db-3"])
        self.assertTrue(first.token < elected[0][1] < elected[1][1])
        self.assertRaises(LeaseLost, first.proclaim, "late")

    def test_observers_see_the_leader_its_changes_and_that_nobody_leads(self):
        seen = self.observe()
        eventually(lambda: seen == [None], "no first answer")
        with self.election.campaign("db-1") as term:
            eventually(lambda: seen == [None, ("db-1", term.token)], "the leader was not seen")
            with self.assertRaises(LockHeld):  # a candidate comes and goes, which changes the lock and not the leader
                self.client(url()).election(self.name, task_id="another").campaign("db-2", wait=0.5)
            term.proclaim("db-1:8080")
            eventually(lambda: seen[2:] == [("db-1:8080", term.token)], "the value was not seen")
            term.proclaim("db-1:8080")
        eventually(lambda: seen[3:] == [None], "the end was not seen")

    def test_an_observer_hears_of_an_outage_once_and_sees_the_leader_again(self):
        proxy, seen, errors = self.proxy(), [], []
        client = self.client(proxy.url)

        def work():
            for leader in client.election(self.name).observe(on_error=errors.append):
                seen.append(leader and leader.value)

        with self.election.campaign("db-1"):
            threading.Thread(target=work, daemon=True).start()
            eventually(lambda: seen == ["db-1"], "the leader was not seen")
            proxy.refuse()
            eventually(lambda: errors, "the outage was not told")
            proxy.heal()
            eventually(lambda: seen == ["db-1", "db-1"], "the leader was not seen again")
        self.assertEqual(len(errors), 1)

    def test_a_campaign_may_end_and_its_arguments_are_checked(self):
        with self.election.campaign("db-1"):
            with self.assertRaises(LockHeld):
                self.client(url()).election(self.name, task_id="another").campaign("db-2", wait=0.1)
            self.await_waiters(0)
        for value, error in ((1, TypeError), ("x" * 4096, InvalidRequest)):
            self.assertRaises(error, self.election.campaign, value)
        for option in ("wait", "mode", "metadata", "nothing"):
            self.assertRaises(TypeError, lambda option=option: self.paddock.election(self.name, **{option: 1}))
        self.assertRaises(InvalidRequest, self.paddock.election("a/b").leader)
        with self.assertRaises(InvalidRequest):
            next(self.paddock.election("a/b").observe())

    def test_the_write_of_a_deposed_leader_is_refused(self):
        with self.assertRaises(LeaseLost), self.election.campaign("db-1") as old:
            self.paddock.write_fenced(self.name, lock=self.name, token=old.token, value="by db-1")
            self.paddock.revoke(self.name, token=old.token, reason="db-1 is slow")
            with self.client(url()).election(self.name, task_id="another").campaign("db-2") as new:
                self.paddock.write_fenced(self.name, lock=self.name, token=new.token, value="by db-2")
                with self.assertRaises(StaleToken):
                    self.paddock.write_fenced(self.name, lock=self.name, token=old.token, value="by db-1, late")
        self.assertEqual(self.paddock.read_fenced(self.name)["value"], "by db-2")

    def test_metadata_of_a_held_lease_is_replaced(self):
        with self.paddock.hold_session() as session:
            for lease in (self.paddock.hold(self.name), self.paddock.hold(self.name + ":b", session=session),
                          self.paddock.hold([self.name + ":c", self.name + ":d"], metadata={"a": 1})):
                with lease:
                    lease.set_metadata({"phase": 2})
                    self.assertEqual(self.paddock.lock(lease.name)["leases"][0]["metadata"], {"phase": 2})
                self.assertRaises(LeaseLost, lease.set_metadata, {})
                self.assertRaises(TypeError, lease.set_metadata, "text")
        revoked = self.paddock.hold(self.name, ttl=600)
        self.paddock.revoke(self.name, token=revoked.token, reason="out")
        with self.assertRaises(LeaseLost) as lost:
            revoked.set_metadata({"phase": 3})
        self.assertEqual((lost.exception.reason, revoked.state), ("out", "lost"))

    def test_one_leads_at_a_time(self):
        leading, most = [], []

        def lead(number):
            with self.client(url()).election(self.name).campaign(str(number)) as term:
                leading.append(term)
                most.append(len(leading))
                leading.remove(term)

        in_threads([lambda number=number: lead(number) for number in range(8)])
        self.assertEqual((max(most), len(most)), (1, 8))


class AioElections(AioTest):
    @in_loop
    async def test_campaign_observe_proclaim_and_resign(self):
        election, seen = self.locks.election(self.name, ttl=3), []

        async def observe():
            async for leader in self.locks.election(self.name).observe():
                seen.append(leader and (leader.value, leader.token))

        observing = asyncio.create_task(observe())
        await self.until(lambda: seen == [None], "no first answer")
        async with election.campaign("db-1") as term:
            self.assertEqual((await election.leader()).token, term.token)
            await term.proclaim("db-1:8080")
            await self.until(lambda: seen[-1] == ("db-1:8080", term.token), "the value was not seen")
            other = asyncio.create_task(self.locks.election(self.name, task_id="x").campaign("db-2").__aenter__())
            await self.until_waiting(1)
            other.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await other
            self.assertEqual(self.paddock.lock(self.name)["waiters"], 0, "the candidate has not withdrawn")
            await term.resign()
        await self.until(lambda: seen[-1] is None, "the end was not seen")
        observing.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await observing

    @in_loop
    async def test_a_candidate_does_not_wait_longer_than_it_says(self):
        async with self.locks.election(self.name).campaign("db-1"):
            with self.assertRaises(PaddockError):
                await self.locks.election(self.name, task_id="x").campaign("db-2", wait=0.1)
            with self.assertRaises(TypeError):
                self.locks.election(self.name, mode="shared")
