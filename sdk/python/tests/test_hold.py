"""The guard without outages."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import warnings
from unittest import mock

from service import BOUND, SDK, ServiceTest, client_threads, eventually, in_threads, url

from paddock import LeaseLost, LockHeld, Paddock, PaddockError

HOLDER = """
import sys, time
from paddock import Paddock
with Paddock(sys.argv[1]).hold(sys.argv[2], wait=float(sys.argv[3]), ttl=600):
    print("held", flush=True)
    time.sleep(600)
"""


class Holding(ServiceTest):
    def test_the_block_holds_the_lock_and_its_end_releases_it(self):
        with self.paddock.hold(self.name) as lease:
            lease.check()
            self.assertEqual(self.paddock.lock(self.name)["fencing_token"], lease.token)
            self.assertEqual((lease.state, lease.error, lease.name, lease.slot), ("held", None, self.name, 0))
            self.assertGreater(lease.remaining(), 0)
        self.assertEqual(lease.state, "released")
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_without_wait_a_held_lock_fails_immediately(self):
        with self.paddock.hold(self.name, holder="worker-1"), self.assertRaises(LockHeld) as held:
            self.paddock.hold(self.name)
        self.assertEqual(held.exception.holder, "worker-1")

    def test_a_wait_ends(self):
        with self.paddock.hold(self.name), self.assertRaises(LockHeld):
            self.paddock.hold(self.name, wait=0.2, task_id="another")
        self.assertEqual(self.kinds(), ["granted", "queued", "dequeued", "released"])

    def test_renewals_keep_the_lease_beyond_its_ttl(self):
        states = []
        with self.paddock.hold(self.name, ttl=4, on_state=lambda state, _: states.append(state)) as lease:
            self.assertFalse(lease.lost.wait(6))
            lease.check()
            self.assertEqual(self.paddock.lock(self.name)["fencing_token"], lease.token)
        self.assertEqual(self.kinds(), ["granted", "released"])
        self.assertNotIn("lost", states)

    def test_acquires_and_renewals_are_reported(self):
        acquired, renewed = [], []
        report = {"on_acquired": lambda took, error: acquired.append((took >= 0, type(error))),
                  "on_renewed": lambda left, error: renewed.append((left, type(error)))}
        with self.paddock.hold(self.name, ttl=600, **report) as lease:
            with self.assertRaises(LockHeld):
                self.paddock.hold(self.name, **report)
            eventually(lambda: renewed, "the lease was not renewed")
            self.paddock.revoke(self.name, token=lease.token, reason="test")
            self.assertTrue(lease.lost.wait(BOUND))
            with self.assertRaises(LeaseLost):
                lease.release()
        self.assertEqual(acquired, [(True, type(None)), (True, LockHeld)])
        left, error = renewed[0]
        self.assertTrue(0 < left < 1 and error is type(None), renewed)
        self.assertIs(renewed[-1][1], LeaseLost)

    def test_a_callback_that_fails_fails_nothing(self):
        with self.assertLogs("paddock", "ERROR"):
            with self.paddock.hold(self.name, on_acquired=lambda *_: 1 / 0) as lease:
                lease.check()

    def test_an_interrupt_in_a_callback_leaves_no_lease(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            self.paddock.hold(self.name, on_acquired=interrupt)
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_after_a_lost_response_it_is_the_same_lease(self):
        proxy = self.proxy()
        proxy.cut(1)
        with self.client(proxy.url).hold(self.name) as lease:
            proxy.cut(1)
        self.assertEqual(self.kinds(), ["granted", "released"])
        self.assertEqual(self.paddock.lock(self.name)["fencing_token"], lease.token)

    def test_waiters_are_served_in_order(self):
        order, first = [], self.paddock.hold(self.name)

        def wait(number):
            with self.client(url()).hold(self.name, wait=BOUND):
                order.append(number)

        threads = []
        for number in range(3):
            threads.append(threading.Thread(target=wait, args=(number,), daemon=True))
            threads[-1].start()
            self.await_waiters(number + 1)
        first.release()
        for thread in threads:
            thread.join(BOUND)
        self.assertEqual(order, [0, 1, 2])

    def test_a_grant_after_a_wait_has_its_full_ttl(self):
        with self.paddock.hold(self.name):
            waiting = threading.Timer(0, lambda: leases.append(self.client(url()).hold(self.name, ttl=20, wait=BOUND)))
            leases = []
            waiting.start()
            self.await_waiters(1)
            time.sleep(1.5)  # the time in the queue must not shorten the lease
        waiting.join(BOUND)
        with leases[0] as lease:
            self.assertGreater(lease.remaining(), 10)

    def test_a_wait_asks_for_a_short_ttl_and_the_first_renewal_for_the_whole(self):
        for locks in (self.name, [self.name, self.new_name()]):
            with self.subTest(locks):
                client, bodies, leases = self.client(url()), [], []
                call = client._call

                def record(method, path, body=None, **rest):
                    bodies.append((path.split("/")[-1], body.get("ttl_ms"), body.get("wait_ms")))
                    return call(method, path, body, **rest)

                with mock.patch.object(client, "_call", record):
                    first = self.paddock.hold(self.name)
                    waiting = threading.Thread(target=lambda: leases.append(client.hold(locks, ttl=600, wait=25)))
                    waiting.start()
                    self.await_waiters(1)
                    first.release()
                    waiting.join(BOUND)
                    (verb, ttl, wait), (again, short, long), renewal = bodies
                    self.assertEqual((verb, ttl, wait), ("acquire", 600_000, 0), "a try, since the lock may be free")
                    self.assertEqual((again, short), ("acquire", 5_000))
                    self.assertGreater(long, 0)
                    self.assertEqual(renewal, ("renew", 600_000, None))
                    self.assertGreater(leases[0].remaining(), 500)
                    leases[0].release()
                    bodies.clear()
                    with client.hold(locks, ttl=600, wait=25):
                        self.assertEqual(bodies, [("acquire", 600_000, 0)], "a free lock costs one call")

    def test_many_threads_take_turns(self):
        inside, most = [], []

        def work():
            with self.paddock.hold(self.name, wait=BOUND) as lease:
                inside.append(lease.token)
                most.append(len(inside))
                inside.remove(lease.token)
                return lease.token

        tokens = in_threads([work] * 10)
        self.assertEqual((max(most), len(set(tokens))), (1, 10))

    def test_permits_have_slots(self):
        with self.paddock.hold(self.name, mode="permit", capacity=2) as one, self.paddock.hold(self.name, mode="permit", capacity=2) as two:
            self.assertEqual({one.slot, two.slot}, {1, 2})
            with self.assertRaises(PaddockError) as refused:
                self.paddock.hold(self.name, mode="permit", capacity=3)
            self.assertEqual(refused.exception.code, "capacity_mismatch")

    def test_an_unreachable_service_is_retried_for_retry_seconds(self):
        proxy = self.proxy()
        proxy.refuse()
        with self.assertRaises(PaddockError) as refused:
            self.client(proxy.url).hold(self.name, retry=0.3)
        self.assertTrue(refused.exception.transient)
        threading.Timer(0.3, proxy.heal).start()
        self.client(proxy.url).hold(self.name, retry=BOUND).release()

    def test_no_thread_and_no_connection_remains(self):
        before = client_threads()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            client = Paddock(url())  # which nothing else refers to
            for _ in range(5):
                with client.hold(self.name):
                    pass
            lease = client.hold(self.name)
            client.close()
            lease.release()  # in another thread, it may end later than the close
            del client, lease
            gc.collect()
        eventually(lambda: client_threads() <= before, "threads remain")
        self.assertEqual([str(c.message) for c in caught], [])

    def test_a_lease_without_references_is_no_longer_renewed(self):
        before = client_threads()
        with self.assertLogs("paddock", "WARNING"):
            self.paddock.hold(self.name, ttl=1)
            eventually(lambda: client_threads() <= before, "threads remain")
        self.paddock.hold(self.name, wait=BOUND).release()
        self.assertEqual(self.kinds()[:3], ["granted", "queued", "expired"])


class Ending(ServiceTest):
    def test_any_exception_releases_the_lock_and_propagates(self):
        for error in (KeyError("mine"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
            with self.subTest(repr(error)), self.assertRaises(type(error)) as raised:
                with self.paddock.hold(self.name):
                    raise error
            self.assertIs(raised.exception, error)
            self.assertEqual(self.paddock.lock(self.name)["state"], "free")

    def test_a_lost_lease_is_an_error_at_the_end(self):
        with self.assertRaises(LeaseLost) as lost:
            with self.paddock.hold(self.name) as lease:
                self.paddock.revoke(self.name, token=lease.token, reason="out")
        self.assertEqual(lost.exception.fields["ended"], "revoked")

    def test_a_loss_does_not_replace_the_error_of_the_work(self):
        with self.assertRaises(KeyError), self.assertLogs("paddock", "WARNING") as logs:
            with self.paddock.hold(self.name) as lease:
                self.paddock.revoke(self.name, token=lease.token, reason="out")
                raise KeyError("mine")
        self.assertIn("overlapped", logs.output[0])

    def test_an_unanswered_release_does_not_fail_the_work(self):
        proxy = self.proxy()
        lease = self.client(proxy.url).hold(self.name, ttl=600)
        proxy.refuse()
        with self.assertRaises(PaddockError) as refused:
            lease.release(timeout=0.3)
        self.assertTrue(refused.exception.transient)
        proxy.heal()
        lease.release()
        with self.assertLogs("paddock", "WARNING") as logs:
            with self.client(proxy.url).hold(self.name, ttl=600) as lease:
                proxy.refuse()
        self.assertIn("not released", logs.output[0])

    def test_a_release_is_retried_after_a_lost_response(self):
        proxy = self.proxy()
        with self.client(proxy.url).hold(self.name, ttl=600):
            proxy.cut(2)
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_ctrl_c_releases_the_lock(self):
        process = self.holder(wait=0)
        self.assertEqual(process.stdout.readline(), "held\n")
        process.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", process.communicate(timeout=BOUND)[1])
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_ctrl_c_during_the_wait_leaves_the_queue(self):
        with self.paddock.hold(self.name):
            process = self.holder(wait=BOUND)
            self.await_waiters(1)
            process.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", process.communicate(timeout=BOUND)[1])
            self.await_waiters(0)

    def test_a_forked_child_neither_releases_nor_renews(self):
        with self.paddock.hold(self.name, ttl=4) as lease:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # about a fork with threads, which this test is about
                child = os.fork()
            if child == 0:
                code = 1
                try:
                    lease.check()
                    lease.release()
                    time.sleep(lease.remaining() + 0.01)
                    lease.check()
                except LeaseLost:
                    code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(self.paddock.lock(self.name)["state"], "held")
            lease.check()
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_a_lock_granted_to_a_stopped_waiter_is_free_within_seconds(self):
        with self.paddock.hold(self.name):
            waiter = self.holder(wait=BOUND)
            self.await_waiters(1)
            waiter.send_signal(signal.SIGSTOP)
            status = pathlib.Path(f"/proc/{waiter.pid}/stat")
            eventually(lambda: ") T " in status.read_text(), "the waiter was not stopped")
        began = time.monotonic()
        with self.paddock.hold(self.name, wait=BOUND):
            self.assertLess(time.monotonic() - began, BOUND / 2)

    def holder(self, wait):
        process = subprocess.Popen([sys.executable, "-c", HOLDER, url(), self.name, str(wait)], text=True, cwd=SDK,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process
