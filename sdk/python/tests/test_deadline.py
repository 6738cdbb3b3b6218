"""When a lease counts as lost, and how it is asked for: with a clock that the test moves, and no network."""

import threading
import unittest
import uuid
from unittest import mock

from service import BOUND, eventually

import paddock
from paddock import Grant, LeaseLost, LockHeld, SuspendClock, Unavailable, UnknownOutcome

TTL = 30.0


class Stage:
    """Stands in for a Paddock: a clock, and calls that do what the test says."""

    timeout = 10.0

    def __init__(self):
        self.now = 1000.0
        self.asked, self.released = [], []
        self.answers = []  # of acquire: each is what to do
        self.on_renew = self.grant

    def clock(self):
        return self.now

    def passes(self, seconds):
        self.now += seconds

    def grant(self, lease_id=None, took=0.0, expires_in=TTL, ttl=TTL):
        sent = self.now
        self.passes(took)
        return Grant("jobs", lease_id or str(uuid.uuid4()), 41, 0, ttl, expires_in, sent, {})

    def acquire(self, name, *, lease_id, wait, keep_place, **want):
        self.asked.append((lease_id, wait, keep_place))
        return self.answers.pop(0)(lease_id)

    def renew(self, name, lease_id, timeout=None):
        self.asked.append(("renew", timeout))
        return self.on_renew()

    def release(self, name, lease_id, timeout):
        self.released.append(lease_id)

    def obtain(self, wait=0.0, retry=10.0):
        with mock.patch.object(paddock.time, "sleep", self.passes):
            return paddock._obtain(self, "jobs", {}, 3.0, wait, retry)


def raising(error, then=lambda: None):
    def answer(_):
        then()
        raise error
    return answer


class Deadline(unittest.TestCase):
    def setUp(self):
        self.stage = Stage()
        self.states = []
        tick = mock.patch.object(paddock, "TICK", 0.02)
        tick.start()
        self.addCleanup(tick.stop)

    def lease(self, grant=None, **options):
        options = {"margin": 3.0, "on_state": lambda state, _: self.states.append(state), "on_lost": None, "interrupt_main": False, **options}
        lease = paddock.Lease(self.stage, grant or self.stage.grant(), **options)
        self.addCleanup(lambda: lease.lost.set())
        return lease

    def test_it_is_what_was_left_when_the_request_was_sent_less_the_margin(self):
        lease = self.lease(self.stage.grant(took=4.0, expires_in=29.0))
        self.assertEqual(lease.deadline, 1000.0 + 29.0 - 3.0)
        self.assertEqual(lease.remaining(), 22.0)

    def test_a_look_is_exact(self):
        lease = self.lease()
        self.stage.on_renew = lambda: raising(Unavailable("unavailable", "off"))(None)
        self.stage.now = lease.deadline - 0.001
        lease.check()
        self.stage.now = lease.deadline
        with self.assertRaises(LeaseLost):
            lease.check()
        self.assertEqual((lease.state, lease.remaining()), ("lost", 0))

    def test_what_is_lost_stays_lost(self):
        lease = self.lease()
        self.stage.now = lease.deadline
        with self.assertRaises(LeaseLost):
            lease.check()
        self.stage.now -= 20
        for _ in range(100):
            self.assertRaises(LeaseLost, lease.check)
        self.assertIsInstance(lease.error, LeaseLost)
        self.assertEqual(len(lease._ends), 1, "each look costs memory")

    def test_a_suspension_is_noticed_without_anybody_looking(self):
        told = threading.Event()
        lease = self.lease(on_lost=lambda error: told.set())
        self.stage.passes(3600)
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertTrue(told.wait(BOUND))
        eventually(lambda: self.states == ["lost"], "the state was not told")

    def test_renewals_come_at_a_third_or_a_little_sooner(self):
        for left, third in ((TTL, 10.0), (6.0, 2.0)):
            for _ in range(50):
                lease = self.lease(self.stage.grant(expires_in=left))
                self.assertGreaterEqual(lease._due, self.stage.now + 0.85 * third)
                self.assertLessEqual(lease._due, self.stage.now + third)
                lease.lost.set()

    def test_a_renewal_counts_from_its_own_sending(self):
        lease = self.lease()
        self.stage.on_renew = lambda: self.stage.grant(took=2.0)
        self.stage.passes(12)
        eventually(lambda: lease.deadline == 1000.0 + 12 + TTL - 3, "the deadline did not move")

    def test_each_attempt_is_bounded_by_a_sixth_of_the_ttl_and_by_the_deadline(self):
        for late, bound in ((12, TTL / 6), (26, 1.0)):
            self.stage = Stage()
            lease = self.lease()
            self.stage.passes(late)
            eventually(lambda: ("renew", bound) in self.stage.asked, "no attempt was bounded so")
            lease.lost.set()

    def test_an_answer_after_the_deadline_revives_nothing(self):
        lease = self.lease()
        self.stage.on_renew = lambda: self.stage.grant(took=20.0)
        self.stage.passes(12)
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertEqual((lease.state, lease.deadline), ("lost", 1027.0))

    def test_trouble_puts_it_at_risk_and_a_renewal_ends_that(self):
        lease = self.lease()
        self.stage.on_renew = lambda: raising(ValueError("a bug, even"))(None)
        self.stage.passes(12)
        eventually(lambda: lease.state == "at_risk", "it is not at risk")
        self.assertIsInstance(lease.error, ValueError)
        lease.check()
        self.stage.on_renew = self.stage.grant
        self.stage.passes(5)
        eventually(lambda: lease.state == "held", "it is not held")
        self.assertEqual((self.states, lease.error), (["at_risk", "held"], None))

    def test_a_callback_that_fails_stops_nothing(self):
        lease = self.lease(on_state=lambda *_: 1 / 0)
        self.stage.on_renew = lambda: raising(Unavailable("unavailable", "off"))(None)
        with self.assertLogs("paddock", "ERROR"):
            self.stage.passes(12)
            eventually(lambda: lease.state == "at_risk", "it is not at risk")
            self.stage.on_renew = self.stage.grant
            self.stage.passes(5)
            eventually(lambda: lease.state == "held", "it is not held")

    def test_after_a_release_nobody_may_work(self):
        lease = self.lease()
        lease.release()
        lease.release()
        self.assertEqual((lease.state, len(self.stage.released), lease.lost.is_set()), ("released", 1, True))
        with self.assertRaises(LeaseLost):
            lease.check()

    def test_a_release_that_comes_late_is_no_loss_if_the_work_was_over_in_time(self):
        for ended, answered, lost in (("expired", 31, False), ("expired", 1, True), ("revoked", 31, True), (None, 31, True)):
            with self.subTest(ended=ended, answered=answered):
                self.stage = Stage()
                lease = self.lease()

                def release(*_, timeout):
                    self.stage.passes(answered)
                    raise LeaseLost("lease_lost", "", 409, {"ended": ended})

                self.stage.release = release
                if lost:
                    self.assertRaises(LeaseLost, lease.release)
                else:
                    lease.release()


class Asking(unittest.TestCase):
    def setUp(self):
        self.stage = Stage()

    def test_a_grant_that_was_long_on_its_way_is_renewed_at_once(self):
        self.stage.answers = [lambda lease_id: self.stage.grant(lease_id, took=20.0)]
        grant = self.stage.obtain(wait=25)
        self.assertEqual(self.stage.asked[-1], ("renew", None))
        self.assertEqual(grant.sent, self.stage.now)

    def test_a_quick_one_is_not(self):
        self.stage.answers = [lambda lease_id: self.stage.grant(lease_id, took=3.0)]
        self.stage.obtain(wait=25)
        self.assertEqual(len(self.stage.asked), 1)

    def test_a_long_wait_is_several_calls_at_one_place(self):
        held = LockHeld("lock_held", "", 409)
        self.stage.answers = [raising(held, lambda: self.stage.passes(25)), raising(held, lambda: self.stage.passes(25)),
                              raising(held, lambda: self.stage.passes(10))]
        with self.assertRaises(LockHeld):
            self.stage.obtain(wait=60)
        ids, waits, kept = zip(*self.stage.asked)
        self.assertEqual((len(set(ids)), waits, kept), (1, (25, 25, 10), (True, True, False)))
        self.assertEqual(self.stage.released, [])

    def test_a_lost_answer_is_asked_for_again_with_the_same_lease_id(self):
        self.stage.answers = [raising(UnknownOutcome("unknown_outcome", "")), self.stage.grant]
        grant = self.stage.obtain()
        self.assertEqual({asked[0] for asked in self.stage.asked}, {grant.lease_id})

    def test_a_lease_that_ended_before_it_was_told_of_is_asked_for_anew(self):
        self.stage.answers = [raising(LeaseLost("lease_lost", "", 409)), self.stage.grant]
        self.stage.obtain()
        self.assertNotEqual(self.stage.asked[0][0], self.stage.asked[1][0])

    def test_an_outage_ends_it_after_the_retry_and_nothing_is_left_behind(self):
        self.stage.answers = [raising(Unavailable("unavailable", ""), lambda: self.stage.passes(1))] * 100
        with self.assertRaises(Unavailable):
            self.stage.obtain(retry=10)
        self.assertGreaterEqual(self.stage.now, 1010)
        self.assertLess(self.stage.now, 1013)
        self.assertEqual(self.stage.released, [self.stage.asked[0][0]])

    def test_a_pause_is_as_long_as_the_service_says(self):
        busy = paddock.PaddockError("too_many_waiters", "", 429, {"retry_after_ms": 4000})
        self.stage.answers = [raising(busy), self.stage.grant]
        self.stage.obtain(wait=25)
        self.assertEqual(self.stage.now, 1004)

    def test_an_interruption_gives_the_place_up(self):
        self.stage.answers = [raising(KeyboardInterrupt())]
        with self.assertRaises(KeyboardInterrupt):
            self.stage.obtain(wait=25)
        self.assertEqual(self.stage.released, [self.stage.asked[0][0]])

    def test_a_ttl_that_answers_take_longer_than_is_an_error_not_a_loop(self):
        self.stage.answers = [lambda lease_id: self.stage.grant(lease_id, took=4.0, expires_in=1.0)] * 100
        self.stage.on_renew = lambda: self.stage.grant(took=4.0, expires_in=1.0)
        with self.assertRaisesRegex(Unavailable, "longer"):
            self.stage.obtain(retry=20)
        self.assertEqual(len(self.stage.released), 1)


class SuspendClockTest(unittest.TestCase):
    def test_it_goes_as_far_as_the_clock_that_went_farther(self):
        monotonic, wall = mock.Mock(return_value=5.0), mock.Mock(return_value=1e9)
        clock = SuspendClock(monotonic, wall)
        for mono, real, told in ((6.0, 1e9 + 1, 1.0), (7.0, 1e9 + 3601, 3601.0), (8.0, 1e9, 3602.0), (9.0, 1e9 + 5, 3607.0)):
            monotonic.return_value, wall.return_value = mono, real
            self.assertEqual(clock(), told)
