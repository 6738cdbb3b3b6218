"""On a loss, the main thread is interrupted inside the block and never outside."""

import random
import signal
import sys
import threading
import time
import unittest
from unittest import mock

from service import BOUND, ServiceTest, client_threads, eventually, in_threads
from test_deadline import FakePaddock

import paddock
from paddock import _guard as guard
from paddock import InvalidRequest, LeaseLost


class Interrupting(ServiceTest):
    def test_a_sleep_is_interrupted_and_the_block_raises_the_loss(self):
        began = time.monotonic()
        with self.assertRaises(LeaseLost) as lost:
            with self.paddock.hold(self.name, ttl=600, interrupt_main=True) as lease:
                self.paddock.revoke(self.name, token=lease.token, reason="out")
                time.sleep(2 * BOUND)
        self.assertLess(time.monotonic() - began, BOUND)
        self.assertEqual(lost.exception.fields["reason"], "out")
        self.assertIsInstance(lost.exception.__context__, KeyboardInterrupt)

    def test_without_a_loss_the_previous_handler_works_and_is_restored(self):
        received = []
        before = signal.signal(signal.SIGURG, lambda number, _: received.append(number))
        self.addCleanup(signal.signal, signal.SIGURG, before)
        mine = signal.getsignal(signal.SIGURG)
        with self.paddock.hold(self.name, interrupt_main=True):
            signal.raise_signal(signal.SIGURG)
        self.assertEqual(received, [signal.SIGURG])
        self.assertIs(signal.getsignal(signal.SIGURG), mine)

    def test_a_ctrl_c_of_the_user_stays_a_keyboard_interrupt(self):
        with self.assertRaises(KeyboardInterrupt):
            with self.paddock.hold(self.name, interrupt_main=True):
                signal.raise_signal(signal.SIGINT)

    def test_it_is_rejected_outside_the_main_thread(self):
        def hold():
            self.assertRaises(InvalidRequest, self.paddock.hold, self.name, interrupt_main=True)

        in_threads([hold])
        self.assertEqual(self.kinds(), [])

    def test_of_two_blocks_only_the_lost_one_ends(self):
        with self.paddock.hold(self.new_name(), interrupt_main=True) as outer:
            with self.assertRaises(LeaseLost):
                with self.paddock.hold(self.name, ttl=600, interrupt_main=True) as inner:
                    self.paddock.revoke(self.name, token=inner.token, reason="out")
                    time.sleep(2 * BOUND)
            outer.check()


class Bounds(unittest.TestCase):
    """Where exactly an interrupt is raised: a tracer sends one at a chosen point."""

    def setUp(self):
        tick = mock.patch.object(guard, "TICK", 0.001)
        tick.start()
        self.addCleanup(tick.stop)
        self.fake = FakePaddock()
        self.fake.on_renew = lambda: 1 / 0
        self.threads = client_threads()
        self.lease = paddock.Lease(self.fake, self.fake.grant(), 3.0, None, None, True)

    def lose(self):
        self.fake.advance(3600)
        self.assertRaises(LeaseLost, self.lease.check)

    def at(self, function, event, do):
        """Calls do with the frame at this event of the function."""
        def trace(frame, what, _):
            if frame.f_code is function.__code__ and what == event:
                do(frame)
            return trace

        self.addCleanup(sys.settrace, sys.gettrace())
        sys.settrace(trace)

    def test_not_after_the_block(self):
        with mock.patch.object(signal, "pthread_kill"), self.assertRaises(LeaseLost):
            with self.lease:
                self.lose()
                self.at(paddock.Lease.__exit__, "call", lambda frame: self.lease._interrupt(signal.SIGURG, frame))

    def test_not_during_the_release(self):
        self.fake.release = lambda *_, timeout: self.lease._interrupt(signal.SIGURG, sys._getframe())
        with mock.patch.object(signal, "pthread_kill"), self.assertRaises(LeaseLost):
            with self.lease:
                self.lose()

    def test_not_before_the_block_but_then_inside_it(self):
        def lose(frame):
            self.lose()
            self.lease._interrupt(signal.SIGURG, frame)
            begun.append(self.lease._armed)

        begun = []
        self.at(paddock.Lease.__enter__, "return", lose)
        with self.assertRaises(LeaseLost), self.lease:
            begun.append("in the block")
            time.sleep(2 * BOUND)
        self.assertEqual(begun, [True, "in the block"])

    def test_a_lease_lost_before_the_block_does_not_enter_it(self):
        self.lose()
        eventually(lambda: client_threads() <= self.threads, "threads remain")
        with self.assertRaises(LeaseLost), self.lease:
            self.fail("the block was entered")


class Racing(unittest.TestCase):
    def test_a_loss_at_the_start_or_end_of_the_block_never_interrupts_outside(self):
        outcomes = set()
        with mock.patch.object(guard, "TICK", 0.0005), mock.patch.object(guard, "POLL", 0.0005):
            for number in range(400):
                fake = FakePaddock()
                fake.on_renew = lambda: 1 / 0
                lease = paddock.Lease(fake, fake.grant(), 3.0, None, None, True)  # before the clock is advanced: it can be lost
                moment = threading.Timer(random.uniform(0, 0.004), fake.advance, (3600,) if number % 10 else (0,))
                moment.start()
                try:
                    with lease:
                        for _ in range(random.randrange(20000)):
                            pass
                        if number % 10 == 1:
                            time.sleep(BOUND)  # Event.wait is not safe to interrupt: it may raise RuntimeError
                            self.fail("the loss did not interrupt the block")
                    outcomes.add("ended")
                except LeaseLost:
                    outcomes.add("lost")
                moment.join()
        self.assertEqual(outcomes, {"ended", "lost"})
