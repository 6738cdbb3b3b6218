"""Deadlocks: with statements inside each other name their tasks by themselves."""

import asyncio
import os
import socket
import threading
import uuid
from unittest import mock

from service import BOUND, ServiceTest, eventually, in_threads

from paddock import Deadlock, InvalidRequest, LockHeld


class DeadlockTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.name + ":a", self.name + ":b"

    def test_one_of_two_in_opposite_orders_gives_way(self):
        both, told, done = threading.Barrier(2), [], []

        def transfer(first, second):
            try:
                with self.paddock.hold(first, wait=None, holder=first):
                    both.wait(BOUND)
                    with self.paddock.hold(second, wait=None, holder=first):
                        done.append(first)
            except Deadlock as e:
                told.append(e)

        in_threads([lambda: transfer(self.a, self.b), lambda: transfer(self.b, self.a)])
        self.assertEqual((len(told), len(done)), (1, 1))
        self.assertEqual(sorted(step["name"] for step in told[0].cycle), [self.a, self.b])
        self.assertIn(self.a, told[0].detail)

    def test_a_circle_of_two_threads_of_one_process_names_the_threads(self):
        for session in (None, self.paddock.hold_session()):
            with self.subTest(session):
                self.a, self.b = self.new_name(), self.new_name()
                both, told = threading.Barrier(2), []

                def transfer(first, second):
                    try:
                        with self.paddock.hold(first, wait=None, session=session):
                            both.wait(BOUND)
                            self.paddock.hold(second, wait=None, session=session).release()
                    except Deadlock as e:
                        told.append(e)

                threads = [threading.Thread(target=transfer, args=locks, name=f"transfer {locks[0]}")
                           for locks in ((self.a, self.b), (self.b, self.a))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(BOUND)
                process = f"{socket.gethostname()}:{os.getpid()}:transfer "
                self.assertEqual({step["holder"] for step in told[0].cycle}, {process + self.a, process + self.b})
                self.assertEqual({step["waits_for"] for step in told[0].cycle}, {process + self.a, process + self.b})
                if session:
                    session.close()

    def test_the_default_holder_names_the_asyncio_task(self):
        async def holders():
            async def holder():
                with self.paddock.hold(self.new_name()) as lease:
                    return lease._granted.answer["holder"]
            return await asyncio.gather(asyncio.create_task(holder(), name="one"), asyncio.create_task(holder(), name="t\nwo"))

        self.assertEqual([holder.split(":")[-1] for holder in asyncio.run(holders())], ["one", "t?wo"])

    def test_a_call_with_a_lease_id_may_be_repeated_by_another_thread(self):
        lease_id = str(uuid.uuid4())
        first, again = in_threads([lambda: self.paddock.acquire(self.a, lease_id=lease_id)] * 2)
        self.assertEqual(first.token, again.token)

    def test_a_hold_inside_of_its_own_lock_is_refused_at_once(self):
        with self.paddock.hold(self.a) as lease:
            with self.assertRaises(Deadlock) as refused:
                self.paddock.hold(self.a, wait=None)
            self.assertEqual([step["name"] for step in refused.exception.cycle], [self.a])
            with self.assertRaises(LockHeld):
                self.paddock.hold(self.a)
            with self.paddock.hold(self.b) as inner:
                self.assertTrue(inner.task_id.startswith(lease.task_id + "."), inner.task_id)
        with self.paddock.hold(self.a) as later:
            self.assertNotIn(".", later.task_id)

    def test_two_threads_under_one_lease_wait_for_each_other(self):
        with self.paddock.hold(self.a) as lease:
            part = lease.task_id
            with self.paddock.hold(self.b, task_id=part + ".1") as one:
                waits = threading.Thread(target=lambda: self.paddock.hold(self.b, wait=None, task_id=part + ".2").release())
                waits.start()
                eventually(lambda: self.paddock.lock(self.b)["waiters"], "it does not wait")
                one.release()
                waits.join(BOUND)
                self.assertFalse(waits.is_alive())

    def test_the_environment_names_the_task_of_the_process(self):
        with mock.patch.dict(os.environ, {"PADDOCK_TASK": "outer"}), self.paddock.hold(self.a) as lease:
            self.assertRegex(lease.task_id, r"^outer\.[0-9a-f]{8}$")
        with mock.patch.dict(os.environ, {"PADDOCK_TASK": "t" * 250}), self.paddock.hold(self.a) as lease:
            self.assertRegex(lease.task_id, r"^[0-9a-f]{32}$")

    def test_an_invalid_task_is_refused(self):
        with self.assertRaises(InvalidRequest) as refused:
            self.paddock.acquire(self.a, task_id="a..b")
        self.assertEqual(refused.exception.fields["pointer"], "/task_id")
