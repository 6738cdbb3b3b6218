"""The main thread is interrupted on a loss while it is in the block, and never outside of it."""

import random
import signal
import sys
import threading
import time
import unittest
from unittest import mock

from service import BOUND, ServiceTest, eventually, in_threads
from test_deadline import Stage

import paddock
from paddock import InvalidRequest, LeaseLost


class Interrupting(ServiceTest):
    def test_a_sleep_is_cut_short_and_the_block_ends_with_the_loss(self):
        began = time.monotonic()
        with self.assertRaises(LeaseLost) as lost:
            with self.paddock.hold(self.name, ttl=1.5, interrupt_main=True) as lease:
                self.paddock.revoke(self.name, token=lease.token, reason="out")
                time.sleep(2 * BOUND)
        self.assertLess(time.monotonic() - began, BOUND)
        self.assertEqual(lost.exception.fields["reason"], "out")
        self.assertIsInstance(lost.exception.__context__, KeyboardInterrupt)

    def test_without_a_loss_nothing_is_felt_and_the_handler_before_is_back(self):
        heard = []
        before = signal.signal(signal.SIGURG, lambda number, _: heard.append(number))
        self.addCleanup(signal.signal, signal.SIGURG, before)
        mine = signal.getsignal(signal.SIGURG)
        with self.paddock.hold(self.name, interrupt_main=True):
            signal.raise_signal(signal.SIGURG)
        self.assertEqual(heard, [signal.SIGURG])
        self.assertIs(signal.getsignal(signal.SIGURG), mine)

    def test_a_ctrl_c_of_somebody_s_own_stays_one(self):
        with self.assertRaises(KeyboardInterrupt):
            with self.paddock.hold(self.name, interrupt_main=True):
                signal.raise_signal(signal.SIGINT)

    def test_it_is_refused_elsewhere_than_in_the_main_thread(self):
        def hold():
            self.assertRaises(InvalidRequest, self.paddock.hold, self.name, interrupt_main=True)

        in_threads([hold])
        self.assertEqual(self.kinds(), [])

    def test_of_two_blocks_the_one_that_was_lost_ends(self):
        with self.paddock.hold(self.new_name(), interrupt_main=True) as outer:
            with self.assertRaises(LeaseLost):
                with self.paddock.hold(self.name, ttl=1.5, interrupt_main=True) as inner:
                    self.paddock.revoke(self.name, token=inner.token, reason="out")
                    time.sleep(2 * BOUND)
            outer.check()


class Bounds(unittest.TestCase):
    """Where exactly an interrupt is felt, as seen by a tracer that sends one there."""

    def setUp(self):
        tick = mock.patch.object(paddock, "TICK", 0.001)
        tick.start()
        self.addCleanup(tick.stop)
        self.stage = Stage()
        self.stage.on_renew = lambda: 1 / 0
        self.lease = paddock.Lease(self.stage, self.stage.grant(), 3.0, None, None, True)

    def lose(self):
        self.stage.passes(3600)
        self.assertRaises(LeaseLost, self.lease.check)

    def at(self, function, event, do):
        """Has do called with the frame at that event of the function."""
        def trace(frame, what, _):
            if frame.f_code is function.__code__ and what == event:
                do(frame)
            return trace

        self.addCleanup(sys.settrace, sys.gettrace())
        sys.settrace(trace)

    def test_not_where_the_block_has_ended_already(self):
        with mock.patch.object(paddock.signal, "pthread_kill"), self.assertRaises(LeaseLost):
            with self.lease:
                self.lose()
                self.at(paddock.Lease.__exit__, "call", lambda frame: self.lease._interrupt(signal.SIGURG, frame))

    def test_not_while_the_lease_is_released(self):
        self.stage.release = lambda *_, timeout: self.lease._interrupt(signal.SIGURG, sys._getframe())
        with mock.patch.object(paddock.signal, "pthread_kill"), self.assertRaises(LeaseLost):
            with self.lease:
                self.lose()

    def test_not_where_the_block_has_not_begun_but_then_in_it(self):
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

    def test_a_lease_that_is_lost_by_then_has_no_block(self):
        self.lose()
        eventually(lambda: not any(t.name == "paddock lease" for t in threading.enumerate()), "threads are left")
        with self.assertRaises(LeaseLost), self.lease:
            self.fail("the block was entered")


class Racing(unittest.TestCase):
    def test_a_loss_while_the_block_begins_or_ends_is_never_felt_outside(self):
        outcomes = set()
        with mock.patch.object(paddock, "TICK", 0.0005), mock.patch.object(paddock, "POLL", 0.0005):
            for number in range(400):
                stage = Stage()
                stage.on_renew = lambda: 1 / 0
                moment = threading.Timer(random.uniform(0, 0.004), stage.passes, (3600,) if number % 10 else (0,))
                moment.start()
                try:
                    with paddock.Lease(stage, stage.grant(), 3.0, None, None, True) as lease:
                        for _ in range(random.randrange(20000)):
                            pass
                        if number % 10 == 1:
                            lease.lost.wait(BOUND)
                    outcomes.add("ended")
                except LeaseLost:
                    outcomes.add("lost")
                moment.join()
        self.assertEqual(outcomes, {"ended", "lost"})
