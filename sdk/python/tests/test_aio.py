"""The client for asyncio: its guard cancels the task on a loss, and what is cancelled leaves nothing behind."""

import asyncio
import functools
import gc
import inspect
import sys
import threading
import time
import warnings

from service import BOUND, ServiceTest, client_threads, eventually, url

import paddock
from paddock import InvalidRequest, LeaseLost, LockHeld, Lost, SessionLost
from paddock._threads import Threads
from paddock.aio import Paddock


def in_loop(test):
    """Runs an async test with a client, self.locks, that is closed after it."""
    @functools.wraps(test)
    def run(self):
        async def work():
            async with Paddock(url()) as self.locks:
                await asyncio.wait_for(test(self), 3 * BOUND)

        asyncio.run(work())

    return run


class AioTest(ServiceTest):
    async def until(self, condition, failure):
        await asyncio.get_running_loop().run_in_executor(None, eventually, condition, failure)

    async def until_waiting(self, number, name=None):
        await asyncio.get_running_loop().run_in_executor(None, self.await_waiters, number, name)


class Holding(AioTest):
    @in_loop
    async def test_the_block_holds_the_lock_and_its_end_releases_it(self):
        async with self.locks.hold(self.name) as lease:
            lease.check()
            self.assertEqual((await self.locks.lock(self.name))["fencing_token"], lease.token)
            self.assertEqual((lease.state, lease.error, lease.name, lease.tokens), ("held", None, self.name, {self.name: lease.token}))
            self.assertGreater(lease.remaining(), 0)
            self.assertFalse(lease.lost.is_set())
        self.assertEqual(lease.state, "released")
        await asyncio.wait_for(lease.lost.wait(), BOUND)
        self.assertEqual(self.kinds(), ["granted", "released"])

    @in_loop
    async def test_a_hold_that_is_not_awaited_warns(self):
        for call, hold in (("hold", lambda: self.locks.hold(self.name)), ("hold_session", self.locks.hold_session),
                           ("campaign", lambda: self.locks.election(self.name).campaign("me"))):
            with self.assertWarnsRegex(RuntimeWarning, f"^{call} was never awaited, so nothing is held; use it in async with, or await it$"):
                hold()
                gc.collect()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            async with self.locks.hold(self.name):
                pass
            await (await self.locks.hold(self.name)).release()
            gc.collect()
        self.assertEqual([str(warning.message) for warning in caught if warning.category is RuntimeWarning], [])

    @in_loop
    async def test_a_lease_may_be_awaited_and_released(self):
        lease = await self.locks.hold(self.name, ttl=4)
        await asyncio.sleep(5)
        lease.check()
        await lease.release()
        self.assertEqual(self.kinds(), ["granted", "released"])

    @in_loop
    async def test_any_exception_releases_the_lock_and_propagates(self):
        for error in (KeyError("mine"), asyncio.CancelledError()):
            with self.assertRaises(type(error)):
                async with self.locks.hold(self.name):
                    raise error
            self.assertEqual(self.paddock.lock(self.name)["state"], "free")

    @in_loop
    async def test_many_tasks_wait_and_take_turns(self):
        inside = []

        async def work():
            async with self.locks.hold(self.name, wait=None) as lease:
                inside.append(1)
                self.assertEqual(len(inside), 1)
                await asyncio.sleep(0)
                inside.pop()
                return lease.token

        tokens = await asyncio.gather(*(work() for _ in range(50)))
        self.assertEqual(len(set(tokens)), 50)

    @in_loop
    async def test_a_blocked_event_loop_loses_no_lease(self):
        async with self.locks.hold(self.name, ttl=4) as lease:
            time.sleep(5)
            lease.check()
        self.assertEqual(self.kinds(), ["granted", "released"])

    @in_loop
    async def test_several_locks_and_sessions(self):
        async with self.locks.hold_session(ttl=4) as session:
            async with self.locks.hold([self.name, self.name + ":b"], session=session) as lease:
                self.assertEqual(sorted(lease.tokens), [self.name, self.name + ":b"])
                await asyncio.sleep(5)
                session.check()
                lease.check()
            self.assertEqual((await self.locks.session(session.ref))["leases"], 0)
        self.assertEqual((await self.locks.session(session.ref))["ended"], "released")

    @in_loop
    async def test_callbacks_run_in_the_event_loop(self):
        threads, states = set(), []

        def note(*said):
            threads.add(threading.current_thread())
            states.append(said[0])

        async with self.locks.hold(self.name, ttl=3, on_acquired=note, on_renewed=note, on_lost=note, on_state=note) as lease:
            await asyncio.sleep(1.5)
            await self.locks.revoke(self.name, token=lease.token, reason="out")
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.sleep(BOUND)
            with self.assertRaises(LeaseLost):
                await lease.release()
            await asyncio.sleep(0.1)
        self.assertEqual(threads, {threading.main_thread()})
        self.assertIn("lost", states)

    @in_loop
    async def test_the_default_holder_names_the_task(self):
        async def holder():
            async with self.locks.hold(self.new_name()) as lease:
                return (await self.locks.lock(lease.name))["leases"][0]["holder"]

        self.assertEqual((await asyncio.create_task(holder(), name="one")).split(":")[-1], "one")

    @in_loop
    async def test_a_hold_inside_of_its_own_lock_is_a_deadlock(self):
        async with self.locks.hold(self.name):
            with self.assertRaises(paddock.Deadlock):
                async with self.locks.hold(self.name, wait=None):
                    self.fail("two leases")

    @in_loop
    async def test_wrong_options_are_named(self):
        for options, error, word in (({"interrupt_main": True}, TypeError, "cancels"), ({"tll": 3}, TypeError, "tll"),
                                     ({"session": self.paddock}, TypeError, "session"), ({"ttl": "3"}, TypeError, "ttl"),
                                     ({"margin": 20}, InvalidRequest, "margin")):
            with self.subTest(options), self.assertRaisesRegex(error, word):
                await self.locks.hold(self.name, **options)


class Losing(AioTest):
    @in_loop
    async def test_the_task_is_cancelled_and_the_block_raises_the_loss(self):
        reached = []
        with self.assertRaises(LeaseLost) as lost:
            async with self.locks.hold(self.name, ttl=600) as lease:
                await asyncio.sleep(0.5)  # until it listens
                self.paddock.revoke(self.name, token=lease.token, reason="db-3 is being replaced")
                try:
                    await asyncio.sleep(BOUND)
                except asyncio.CancelledError:
                    reached.append("cancelled")
                    raise
        self.assertEqual((lost.exception.ended, lost.exception.reason), ("revoked", "db-3 is being replaced"))
        self.assertEqual(reached, ["cancelled"])
        if sys.version_info >= (3, 11):
            self.assertEqual(asyncio.current_task().cancelling(), 0)
        await asyncio.sleep(0)

    @in_loop
    async def test_a_cancellation_by_another_stays_one(self):
        async def work():
            async with self.locks.hold(self.name):
                started.set()
                await asyncio.sleep(BOUND)

        started = asyncio.Event()
        worker = asyncio.create_task(work())
        await started.wait()
        worker.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await worker
        self.assertEqual(self.kinds(), ["granted", "released"])

    @in_loop
    async def test_a_loss_and_a_cancellation_at_once_is_a_cancellation(self):
        if sys.version_info < (3, 11):
            return  # which cannot tell

        async def work():
            async with self.locks.hold(self.name) as lease:
                leases.append(lease)
                await asyncio.sleep(BOUND)

        leases = []
        worker = asyncio.create_task(work())
        await self.until(lambda: leases, "no lease")
        leases[0]._guard._lose(leases[0]._guard._overdue())
        worker.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await worker

    @in_loop
    async def test_of_two_blocks_only_the_lost_one_ends(self):
        async with self.locks.hold(self.new_name()) as outer:
            with self.assertRaises(LeaseLost):
                async with self.locks.hold(self.name, ttl=600) as inner:
                    self.paddock.revoke(self.name, token=inner.token, reason="out")
                    await asyncio.sleep(BOUND)
            outer.check()
            await asyncio.sleep(0.01)

    @in_loop
    async def test_a_loss_does_not_replace_the_error_of_the_work(self):
        with self.assertRaises(KeyError), self.assertLogs("paddock", "WARNING") as logs:
            async with self.locks.hold(self.name) as lease:
                self.paddock.revoke(self.name, token=lease.token, reason="out")
                raise KeyError("mine")
        self.assertIn("overlapped", logs.output[0])

    @in_loop
    async def test_a_lost_session_cancels_the_blocks_and_the_outer_one_raises(self):
        for inside in (True, False):
            with self.assertRaises(SessionLost if sys.version_info >= (3, 11) else Lost):
                async with self.locks.hold_session(ttl=600) as session:
                    lease = self.locks.hold(self.new_name(), session=session)
                    if inside:
                        async with lease:
                            self.paddock.revoke_session(session.ref, reason="out")
                            await asyncio.sleep(BOUND)
                    await lease
                    self.paddock.revoke_session(session.ref, reason="out")
                    await asyncio.sleep(BOUND)

    @in_loop
    async def test_if_the_service_falls_silent_the_task_ends_before_the_next_grant(self):
        proxy = self.proxy()
        async with Paddock(proxy.url) as cut_off:
            with self.assertRaises(LeaseLost):
                async with cut_off.hold(self.name, ttl=3):
                    granted = await asyncio.get_running_loop().run_in_executor(None, self.await_next, self.name, 1)
                    proxy.fall_silent()
                    try:
                        await asyncio.sleep(BOUND)
                    finally:
                        ended = time.time()
                        proxy.refuse()
            self.assertLess(ended, await asyncio.get_running_loop().run_in_executor(None, granted))

    @in_loop
    async def test_a_child_process_is_stopped_with_its_task(self):
        async with self.locks.hold(self.name) as lease:
            self.assertEqual(await lease.run([sys.executable, "-c", "raise SystemExit(3)"]), 3)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(lease.run(["sleep", "600"], kill_after=0.2), 0.3)
            lease.check()


class Waiting(AioTest):
    @in_loop
    async def test_a_cancelled_wait_has_left_the_queue(self):
        async with self.locks.hold(self.name):
            waiting = asyncio.create_task(self.locks.hold(self.name, wait=None, task_id="another").__aenter__())
            await self.until_waiting(1)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            self.assertEqual(self.paddock.lock(self.name)["waiters"], 0)
        self.assertEqual(self.kinds(), ["granted", "queued", "dequeued", "released"])

    @in_loop
    async def test_a_wait_may_have_a_timeout(self):
        async with self.locks.hold(self.name):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.locks.hold(self.name, wait=None, task_id="another"), 0.3)
            with self.assertRaises(LockHeld):
                await self.locks.hold(self.name, wait=0.2, task_id="another")
            self.assertEqual(self.paddock.lock(self.name)["waiters"], 0)

    @in_loop
    async def test_a_grant_that_comes_too_late_is_released(self):
        for pause in (0.0, 0.001, 0.003, 0.01, 0.03):
            taking = asyncio.create_task(self.locks.hold(self.name, wait=None).__aenter__())
            await asyncio.sleep(pause)
            taking.cancel()
            try:
                lease = await taking
            except asyncio.CancelledError:
                self.assertEqual(self.paddock.lock(self.name)["state"], "free")
            else:
                await lease.release()

    def test_a_result_that_comes_after_the_cancellation_is_undone(self):
        undone, begun, go_on = [], threading.Event(), threading.Event()

        def work():
            begun.set()
            go_on.wait(BOUND)
            return "late"

        async def main():
            threads = Threads()
            running = asyncio.create_task(threads.run(work, undone.append))
            while not begun.is_set():
                await asyncio.sleep(0.01)
            running.cancel()
            asyncio.get_running_loop().call_later(0.1, go_on.set)
            with self.assertRaises(asyncio.CancelledError):
                await running
            threads.close()

        asyncio.run(main())
        self.assertEqual(undone, ["late"])

    @in_loop
    async def test_a_cancelled_call_ends_its_connection(self):
        before = client_threads()
        waiting = asyncio.create_task(self.locks.events(lock=self.name, wait=50))  # longer than a test waits
        await asyncio.sleep(0.2)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        await self.locks.close()
        await self.until(lambda: client_threads() <= before, "a thread remains")


class Mirrored(ServiceTest):
    def test_each_call_of_the_client_for_threads_is_there(self):
        def public(kind):
            return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

        self.assertEqual(public(paddock.Paddock) - public(Paddock), {"hub", "longest_wait", "several_addresses"})
        self.assertEqual(inspect.signature(Paddock.acquire), inspect.signature(paddock.Paddock.acquire))
        hold = set(inspect.signature(paddock.Paddock.hold).parameters) - {"self", "name", "interrupt_main"}
        self.assertEqual(set(paddock.aio.HoldOptions.__annotations__), hold)
        session = set(inspect.signature(paddock.Paddock.hold_session).parameters) - {"self", "interrupt_main"}
        self.assertEqual(set(paddock.aio.HoldSessionOptions.__annotations__), session)
