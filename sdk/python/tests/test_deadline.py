"""When a lease counts as lost, and how it is acquired: with a simulated clock and without a network."""

import threading
import time
import unittest
import uuid
from unittest import mock

from service import BOUND, eventually

import paddock
from paddock import _guard as guard
from paddock._acquire import acquire_lease
from paddock import Grant, LeaseLost, LockHeld, SuspendClock, Unavailable, UnknownOutcome

TTL = 30.0


class FakePaddock:
    """A fake Paddock: a clock, and calls that do what the test sets up."""

    timeout, longest_wait, several_addresses = 10.0, 10.0, False

    def __init__(self):
        self.now = 1000.0
        self.calls, self.released = [], []
        self.responses = []  # functions, one for each acquire
        self.on_renew = self.grant
        self.hub = mock.Mock()

    def clock(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds

    def grant(self, lease_id=None, took=0.0, expires_in=TTL, ttl=TTL):
        sent = self.now
        self.advance(took)
        return Grant("jobs", lease_id or str(uuid.uuid4()), 41, 0, ttl, expires_in, sent, {"slot": 0})

    def acquire(self, name, *, lease_id, wait, keep_place, **want):
        self.calls.append((lease_id, wait, keep_place))
        return self.responses.pop(0)(lease_id)

    def renew(self, name, lease_id, timeout=None, ttl=None):
        self.calls.append(("renew", timeout))
        return self.on_renew()

    def release(self, name, lease_id, timeout):
        self.released.append(lease_id)

    def acquire_lease(self, wait=0.0, retry=10.0):
        with mock.patch.object(time, "sleep", self.advance):
            return acquire_lease(self, "jobs", {"ttl": TTL, "holder": "w"}, 3.0, wait, retry)


def raising(error, then=lambda: None):
    def respond(_):
        then()
        raise error
    return respond


class Deadline(unittest.TestCase):
    def setUp(self):
        self.fake = FakePaddock()
        self.states = []
        tick = mock.patch.object(guard, "TICK", 0.02)
        tick.start()
        self.addCleanup(tick.stop)

    def lease(self, grant=None, **options):
        options = {"margin": 3.0, "on_state": lambda state, _: self.states.append(state), "on_lost": None, "interrupt_main": False, **options}
        lease = paddock.Lease(self.fake, grant or self.fake.grant(), **options)
        self.addCleanup(lambda: lease.lost.set())
        return lease

    def test_it_counts_from_the_sending_of_the_request_minus_the_margin(self):
        lease = self.lease(self.fake.grant(took=4.0, expires_in=29.0))
        self.assertEqual(lease.deadline, 1000.0 + 29.0 - 3.0)
        self.assertEqual(lease.remaining(), 22.0)

    def test_a_check_is_exact(self):
        lease = self.lease()
        self.fake.on_renew = lambda: raising(Unavailable("unavailable", "off"))(None)
        self.fake.now = lease.deadline - 0.001
        lease.check()
        self.fake.now = lease.deadline
        with self.assertRaises(LeaseLost):
            lease.check()
        self.assertEqual((lease.state, lease.remaining()), ("lost", 0))

    def test_a_loss_tells_the_error_of_the_last_renewal(self):
        lease = self.lease()
        errors = ["first", "last"]
        self.fake.on_renew = lambda: raising(Unavailable("unavailable", errors.pop(0) if len(errors) > 1 else errors[0]))(None)
        for _ in range(2):
            self.fake.now = lease._due
            before = len(self.fake.calls)
            eventually(lambda: len(self.fake.calls) > before and lease._due > self.fake.now, "it was not renewed")
        self.fake.now = lease.deadline
        with self.assertRaisesRegex(LeaseLost, "unavailable: last"):
            lease.check()

    def test_after_a_hint_it_renews_within_the_time_and_not_all_at_once(self):
        leases = [self.lease() for _ in range(20)]
        for lease in leases:
            lease.hint(within=5.0)
        self.assertEqual(len({lease._hinted for lease in leases}), 20)
        self.assertEqual(self.fake.calls, [])
        self.fake.advance(5)
        eventually(lambda: len(self.fake.calls) == 20, "they were not renewed")
        leases[0].hint(within=5.0)
        leases[0].hint()
        eventually(lambda: len(self.fake.calls) == 21, "it was not renewed at once")

    def test_a_lost_lease_stays_lost(self):
        lease = self.lease()
        self.fake.now = lease.deadline
        with self.assertRaises(LeaseLost):
            lease.check()
        self.fake.now -= 20
        for _ in range(100):
            self.assertRaises(LeaseLost, lease.check)
        self.assertIsInstance(lease.error, LeaseLost)
        self.assertEqual(len(lease._losses), 1, "each check uses memory")

    def test_a_suspension_is_noticed_without_a_check(self):
        notified = threading.Event()
        lease = self.lease(on_lost=lambda error: notified.set())
        self.fake.advance(3600)
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertTrue(notified.wait(BOUND))
        eventually(lambda: self.states == ["lost"], "on_state was not called")

    def test_renewals_are_due_after_a_third_of_the_ttl_or_sooner(self):
        for left, third in ((TTL, 10.0), (6.0, 2.0)):
            for _ in range(50):
                lease = self.lease(self.fake.grant(expires_in=left))
                self.assertGreaterEqual(lease._due, self.fake.now + 0.85 * third)
                self.assertLessEqual(lease._due, self.fake.now + third)
                lease.lost.set()

    def test_a_renewal_counts_from_when_it_was_sent(self):
        lease = self.lease()
        self.fake.on_renew = lambda: self.fake.grant(took=2.0)
        self.fake.advance(12)
        eventually(lambda: lease.deadline == 1000.0 + 12 + TTL - 3, "the deadline did not move")

    def test_each_attempt_is_limited_to_a_sixth_of_the_ttl_and_to_the_deadline(self):
        for late, bound, several in ((12, TTL / 6, False), (26, 1.0, False), (12, 10.0, True), (22, 5.0, True)):  # which addresses share
            self.fake = FakePaddock()
            self.fake.several_addresses = several
            lease = self.lease()
            self.fake.advance(late)
            eventually(lambda: ("renew", bound) in self.fake.calls, "no attempt had this timeout")
            lease.lost.set()

    def test_a_response_after_the_deadline_does_not_revive_the_lease(self):
        lease = self.lease()
        self.fake.on_renew = lambda: self.fake.grant(took=20.0)
        self.fake.advance(12)
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertEqual((lease.state, lease.deadline), ("lost", 1027.0))

    def test_a_failure_puts_it_at_risk_and_a_renewal_ends_that(self):
        lease = self.lease()
        self.fake.on_renew = lambda: raising(ValueError("even a bug"))(None)
        self.fake.advance(12)
        eventually(lambda: lease.state == "at_risk", "it is not at risk")
        self.assertIsInstance(lease.error, ValueError)
        lease.check()
        self.fake.on_renew = self.fake.grant
        self.fake.advance(5)
        eventually(lambda: lease.state == "held", "it is not held")
        self.assertEqual((self.states, lease.error), (["at_risk", "held"], None))

    def test_a_failing_callback_does_not_stop_renewals(self):
        lease = self.lease(on_state=lambda *_: 1 / 0)
        self.fake.on_renew = lambda: raising(Unavailable("unavailable", "off"))(None)
        with self.assertLogs("paddock", "ERROR"):
            self.fake.advance(12)
            eventually(lambda: lease.state == "at_risk", "it is not at risk")
            self.fake.on_renew = self.fake.grant
            self.fake.advance(5)
            eventually(lambda: lease.state == "held", "it is not held")

    def test_after_a_release_the_check_fails(self):
        lease = self.lease()
        lease.release()
        lease.release()
        self.assertEqual((lease.state, len(self.fake.released), lease.lost.is_set()), ("released", 1, True))
        with self.assertRaises(LeaseLost):
            lease.check()

    def test_a_late_release_is_not_a_loss_if_the_work_ended_in_time(self):
        for ended, after, lost in (("expired", 31, False), ("expired", 1, True), ("revoked", 31, True), (None, 31, True)):
            with self.subTest(ended=ended, after=after):
                self.fake = FakePaddock()
                lease = self.lease()

                def release(*_, timeout):
                    self.fake.advance(after)
                    raise LeaseLost("lease_lost", "", 409, {"ended": ended})

                self.fake.release = release
                if lost:
                    self.assertRaises(LeaseLost, lease.release)
                else:
                    lease.release()


class Acquiring(unittest.TestCase):
    def setUp(self):
        self.fake = FakePaddock()

    def test_a_slow_grant_is_renewed_immediately(self):
        self.fake.responses = [lambda lease_id: self.fake.grant(lease_id, took=20.0)]
        grant = self.fake.acquire_lease(wait=25)
        self.assertEqual(self.fake.calls[-1], ("renew", None))
        self.assertEqual(grant.sent, self.fake.now)

    def test_a_fast_grant_is_not_renewed(self):
        self.fake.responses = [lambda lease_id: self.fake.grant(lease_id, took=3.0)]
        self.fake.acquire_lease(wait=25)
        self.assertEqual(len(self.fake.calls), 1)

    def test_a_long_wait_takes_several_calls_and_keeps_one_place(self):
        held = LockHeld("lock_held", "", 409)
        self.fake.responses = [raising(held), raising(held, lambda: self.fake.advance(10)), raising(held, lambda: self.fake.advance(10)),
                              raising(held, lambda: self.fake.advance(5))]
        with self.assertRaises(LockHeld):
            self.fake.acquire_lease(wait=25)
        ids, (try_, first, second, last), kept = zip(*self.fake.calls)
        self.assertEqual((len(set(ids)), try_, last, kept), (1, 0, 5, (False, True, True, False)))
        for wait in first, second:
            self.assertTrue(8 <= wait <= 10, wait)
        self.assertNotEqual(first, second, "waits that began together end together")
        self.assertEqual(self.fake.released, [])

    def test_a_waiter_returns_at_once_after_each_cut_connection(self):
        cuts, away = [], []

        def cut(lease_id):
            away.extend(self.fake.now - at for at in cuts[-1:])
            self.fake.advance(2)
            cuts.append(self.fake.now)
            raise UnknownOutcome("unknown_outcome", "")

        self.fake.responses = [raising(LockHeld("lock_held", "", 409))] + [cut] * 9 + [self.fake.grant]
        self.fake.acquire_lease(wait=60)
        self.assertEqual(len(away), 8)
        self.assertLessEqual(max(away), 0.1)

    def test_a_wait_that_is_cut_at_its_end_is_a_lock_that_is_held(self):
        cut, held = UnknownOutcome("unknown_outcome", "", None, {"cut": True}), LockHeld("lock_held", "", 409)
        self.fake.responses = [raising(held), raising(cut, lambda: self.fake.advance(10)), raising(held)]
        self.assertRaises(LockHeld, self.fake.acquire_lease, wait=10, retry=0)

    def test_a_place_that_is_kept_when_the_wait_is_over_is_given_up(self):
        kept = LockHeld("lock_held", "", 409, {"place_kept_ms": 10_000})
        self.fake.responses = [raising(LockHeld("lock_held", "", 409)), raising(kept, lambda: self.fake.advance(11))]
        with self.assertRaises(LockHeld):
            self.fake.acquire_lease(wait=10.5)
        self.assertEqual(self.fake.released, [self.fake.calls[0][0]])

    def test_after_a_lost_response_the_same_lease_id_is_sent_again(self):
        self.fake.responses = [raising(UnknownOutcome("unknown_outcome", "")), self.fake.grant]
        grant = self.fake.acquire_lease()
        self.assertEqual({call[0] for call in self.fake.calls}, {grant.lease_id})

    def test_after_a_lost_lease_a_new_lease_id_is_sent(self):
        self.fake.responses = [raising(LeaseLost("lease_lost", "", 409)), self.fake.grant]
        self.fake.acquire_lease()
        self.assertNotEqual(self.fake.calls[0][0], self.fake.calls[1][0])

    def test_an_outage_ends_the_acquire_after_retry_and_leaves_no_lease(self):
        self.fake.responses = [raising(Unavailable("unavailable", ""), lambda: self.fake.advance(1))] * 100
        with self.assertRaises(Unavailable):
            self.fake.acquire_lease(retry=10)
        self.assertGreaterEqual(self.fake.now, 1010)
        self.assertLess(self.fake.now, 1013)
        self.assertEqual(self.fake.released, [self.fake.calls[0][0]])

    def test_a_pause_respects_retry_after(self):
        busy = paddock.PaddockError("too_many_waiters", "", 429, {"retry_after_ms": 4000})
        self.fake.responses = [raising(busy), self.fake.grant]
        self.fake.acquire_lease(wait=25)
        self.assertEqual(self.fake.now, 1004)

    def test_an_interrupt_gives_up_the_place(self):
        self.fake.responses = [raising(KeyboardInterrupt())]
        with self.assertRaises(KeyboardInterrupt):
            self.fake.acquire_lease(wait=25)
        self.assertEqual(self.fake.released, [self.fake.calls[0][0]])

    def test_a_ttl_shorter_than_the_response_time_is_an_error(self):
        self.fake.responses = [lambda lease_id: self.fake.grant(lease_id, took=4.0, expires_in=1.0)] * 100
        self.fake.on_renew = lambda: self.fake.grant(took=4.0, expires_in=1.0)
        with self.assertRaisesRegex(Unavailable, "longer"):
            self.fake.acquire_lease(retry=20)
        self.assertEqual(len(self.fake.released), 1)


class SuspendClockTest(unittest.TestCase):
    def test_it_follows_the_clock_that_advanced_more(self):
        monotonic, wall = mock.Mock(return_value=5.0), mock.Mock(return_value=1e9)
        clock = SuspendClock(monotonic, wall)
        for mono, real, expected in ((6.0, 1e9 + 1, 1.0), (7.0, 1e9 + 3601, 3601.0), (8.0, 1e9, 3602.0), (9.0, 1e9 + 5, 3607.0)):
            monotonic.return_value, wall.return_value = mono, real
            self.assertEqual(clock(), expected)
