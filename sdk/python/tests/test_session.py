"""Sessions: one renewal keeps many leases alive, and they end together."""

import contextlib
import gc
import os
import sys
import threading
import time
import uuid
import warnings
from unittest import mock

from service import BOUND, ServiceTest, client_threads, eventually, in_threads, url
from test_deadline import FakePaddock, raising

import paddock
import paddock._session as session_module
from paddock import _acquire as acquire, _guard as guard, _lease as lease
from paddock import InvalidRequest, LeaseLost, PaddockError, SessionGrant, SessionLost, Unavailable


class SessionTest(ServiceTest):
    def session(self, client=None, **options):
        """Returns a session that is closed after the test."""
        session = (client or self.paddock).hold_session(**options)
        self.addCleanup(self.close, session)
        return session

    def close(self, session):
        with contextlib.suppress(SessionLost):
            session.close()

    def hold_in(self, session, number=1, client=None, **options):
        """Returns leases of this number of locks."""
        return [(client or self.paddock).hold(self.new_name(), session=session, **options) for _ in range(number)]

    def locks_of(self, session):
        return {lock["name"] for lock in self.paddock.session(session.ref)["locks"]}


class Holding(SessionTest):
    def test_one_renewal_keeps_many_leases(self):
        renewals = []
        session = self.session(ttl=3, on_renewed=lambda left, error: renewals.append(error))
        before = client_threads()
        leases = self.hold_in(session, 30)
        new = [thread for thread in client_threads() - before if thread.name == "paddock lease"]
        self.assertEqual(new, [], "a lease of a session has a thread")
        renewals.clear()
        with mock.patch.object(self.paddock, "renew", side_effect=AssertionError("a lease was renewed")):
            eventually(lambda: len(renewals) >= 8, "it is not renewed")
        for lease in leases:
            lease.check()
            self.assertEqual((lease.state, lease.error, lease.deadline), ("held", None, session.deadline))
            self.assertEqual(self.paddock.lock(lease.name)["leases"][0]["session"], session.ref)
        self.assertEqual(len({lease.token for lease in leases}), 30)
        self.assertEqual(set(renewals), {None})
        self.assertEqual(self.locks_of(session), {lease.name for lease in leases})

    def test_the_release_of_one_lease_leaves_the_others(self):
        session = self.session(ttl=3)
        released, kept = self.hold_in(session, 2)
        with released:
            released.check()
        self.assertEqual((released.state, kept.state, session.state), ("released", "held", "held"))
        self.assertRaises(LeaseLost, released.check)
        self.assertEqual(self.locks_of(session), {kept.name})
        self.assertFalse(kept.lost.wait(3.5))
        kept.check()

    def test_the_end_of_the_block_frees_all_locks(self):
        losses = []
        with self.paddock.hold_session() as session:
            leases = self.hold_in(session, 5, on_lost=losses.append)
        self.assertEqual(session.state, "released")
        self.assertRaises(SessionLost, session.check)
        for lease in leases:
            self.assertTrue(lease.lost.is_set())
            with self.assertRaises(LeaseLost) as lost:
                lease.check()
            self.assertIsInstance(lost.exception.__cause__, SessionLost)
            self.assertEqual(self.paddock.lock(lease.name)["state"], "free")
            self.assertEqual(self.kinds(lease.name), ["granted", "released"])
        eventually(lambda: len(losses) == 5, "a callback was not called")
        self.assertEqual(self.paddock.session(session.ref)["ended"], "released")
        session.close()
        self.assertRaises(LeaseLost, leases[0].release)

    def test_a_waiter_is_granted_its_lock_and_has_the_holder_of_the_session(self):
        other = self.paddock.hold(self.name)
        session = self.session(holder="worker-1", ttl=3)
        leases = []
        waiting = threading.Thread(target=lambda: leases.append(self.paddock.hold(self.name, session=session, wait=BOUND)), daemon=True)
        waiting.start()
        self.await_waiters(1)
        time.sleep(3.5)  # longer than the TTL: the session's renewals keep the place
        other.release()
        waiting.join(BOUND)
        leases[0].check()
        self.assertEqual(self.paddock.lock(self.name)["leases"][0]["holder"], "worker-1")

    def test_a_lease_keeps_its_max_hold(self):
        losses = []
        session = self.session(ttl=30)
        lease, = self.hold_in(session, max_hold=5, on_lost=losses.append)
        self.assertTrue(0 < lease.remaining() <= 5 - 3, lease.remaining())
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertEqual(self.paddock.lock(lease.name)["state"], "held", "it was lost after its end")
        eventually(lambda: losses, "on_lost was not called")
        self.assertIn("max_hold", losses[0].detail)
        session.check()

    def test_a_child_process_runs_under_a_lease_and_is_stopped_with_the_session(self):
        session = self.session(ttl=600)
        lease, = self.hold_in(session)
        with self.assertRaises(LeaseLost) as lost:
            threading.Timer(0.5, lambda: self.paddock.revoke_session(session.ref, reason="out")).start()
            lease.run([sys.executable, "-c", "import time; time.sleep(600)"])
        self.assertEqual(lost.exception.fields["reason"], "out")

    def test_a_lease_keeps_its_session_and_a_session_without_references_is_no_longer_renewed(self):
        before, losses = client_threads(), []
        lease = self.paddock.hold(self.name, session=self.paddock.hold_session(ttl=4))
        gc.collect()
        self.assertFalse(lease.lost.wait(6))
        lease.check()
        session = self.session(ttl=4)
        self.hold_in(session, on_lost=losses.append)
        gc.collect()
        session.close()
        eventually(lambda: losses, "a session does not keep its lease")
        with self.assertLogs("paddock", "WARNING") as logs:
            del lease
            eventually(lambda: client_threads() <= before, "threads remain")
        self.assertEqual(len(logs.output), 1, logs.output)
        self.paddock.hold(self.name, wait=BOUND).release()
        self.assertIn("expired", self.kinds())

    def test_a_forked_child_neither_closes_nor_renews(self):
        with self.paddock.hold_session(ttl=4) as session:
            lease, = self.hold_in(session)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # about a fork with threads, which this test is about
                child = os.fork()
            if child == 0:
                code = 1
                try:
                    lease.check()
                    session.close()
                    time.sleep(lease.remaining() + 0.01)
                    lease.check()
                except LeaseLost:
                    code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            lease.check()
        self.assertEqual(self.kinds(lease.name), ["granted", "released"])


class Losing(SessionTest):
    def test_a_revocation_ends_all_leases_at_the_next_renewal_with_its_reason(self):
        losses, states = [], []
        session = self.session(ttl=6, on_lost=losses.append)
        leases = self.hold_in(session, 20, on_lost=losses.append, on_state=lambda state, _: states.append(state))
        self.paddock.revoke_session(session.ref, reason="db-3 is being replaced")
        for renewed in (*leases, session):
            self.assertTrue(renewed.lost.wait(BOUND))
            self.assertGreater(renewed.deadline, self.paddock.clock(), "the loss came from the clock")
            with self.assertRaises(LeaseLost if renewed is not session else SessionLost) as lost:
                renewed.check()
            self.assertEqual((lost.exception.fields["ended"], lost.exception.fields["reason"]), ("revoked", "db-3 is being replaced"))
            self.assertEqual(renewed.state, "lost")
        eventually(lambda: (len(losses), len(states)) == (21, 20), "a callback was not called")
        self.assertEqual((states, session.error in losses), (["lost"] * 20, True))
        self.assertRaises(LeaseLost, leases[0].release)
        self.assertRaises(SessionLost, session.close)

    def test_a_callback_that_blocks_does_not_delay_those_of_other_leases(self):
        blocked, losses = threading.Event(), []
        self.addCleanup(blocked.set)
        session = self.session(ttl=3)
        self.hold_in(session, on_lost=lambda _: blocked.wait(BOUND))
        leases = self.hold_in(session, 2, on_lost=losses.append)
        self.paddock.revoke_session(session.ref, reason="out")
        eventually(lambda: len(losses) == len(leases), "a callback was not called")
        self.assertFalse(blocked.is_set())

    def test_a_revocation_of_one_lease_is_found(self):
        losses = []
        with mock.patch.object(session_module, "MAX_BATCH", 2):
            session = self.session(ttl=6)
            *kept, revoked = self.hold_in(session, 5, on_lost=losses.append)
            self.paddock.revoke(revoked.name, token=revoked.token, reason="out")
            self.assertTrue(revoked.lost.wait(BOUND))
        with self.assertRaises(LeaseLost) as lost:
            revoked.check()
        self.assertEqual((lost.exception.status, lost.exception.fields["reason"]), (409, "out"))
        eventually(lambda: losses, "on_lost was not called")
        self.assertEqual(losses, [revoked.error])
        session.check()
        for lease in kept:
            lease.check()

    def test_a_revocation_of_one_lease_is_found_beside_leases_of_another_process(self):
        session = self.session(ttl=6)
        kept, revoked = self.hold_in(session, 2)
        for _ in range(5):
            self.paddock.acquire(self.new_name(), session_id=session.id)
        self.paddock.revoke(revoked.name, token=revoked.token, reason="out")
        self.assertTrue(revoked.lost.wait(BOUND))
        session.check()
        kept.check()

    def test_a_revocation_before_the_answer_to_the_acquire_is_found(self):
        session, acquire = self.session(ttl=6), self.paddock.acquire

        def slow(*args, **options):
            grant, revoked = acquire(*args, **options), session._revoked
            self.paddock.revoke(grant.name, token=grant.token, reason="out")
            eventually(lambda: session._revoked > revoked, "no heartbeat has told of it")
            return grant

        with mock.patch.object(self.paddock, "acquire", slow):
            lease, = self.hold_in(session)
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertEqual(lease.error.fields["reason"], "out")

    def test_the_search_for_lost_leases_is_repeated_after_a_failure_and_not_after_a_success(self):
        session, call, sent = self.session(ttl=3), self.paddock._call, []

        def failing(method, path, *args, **options):
            if path == "/v1/batch":
                sent.append(path)
                if len(sent) == 1:
                    raise Unavailable("unavailable", "off")
            return call(method, path, *args, **options)

        kept, revoked = self.hold_in(session, 2)
        with mock.patch.object(self.paddock, "_call", failing):
            self.paddock.revoke(revoked.name, token=revoked.token, reason="out")
            self.assertTrue(revoked.lost.wait(BOUND))
            eventually(lambda: kept._held_at == 1, "the other lease was not found to be held")
            self.assertFalse(kept.lost.wait(2))
        self.assertEqual(len(sent), 2)

    def test_one_search_for_lost_leases_runs_at_a_time(self):
        renewals = []
        session, call, sent, go_on = self.session(ttl=3, on_renewed=lambda *_: renewals.append(1)), self.paddock._call, [], threading.Event()
        self.addCleanup(go_on.set)

        def slow(method, path, *args, **options):
            if path != "/v1/batch":
                return call(method, path, *args, **options)
            sent.append(path)
            answer = call(method, path, *args, **options)
            self.assertTrue(go_on.wait(BOUND))
            return answer

        kept, first, second = self.hold_in(session, 3)
        with mock.patch.object(self.paddock, "_call", slow):
            self.paddock.revoke(first.name, token=first.token, reason="out")
            eventually(lambda: sent, "no search has begun")
            self.paddock.revoke(second.name, token=second.token, reason="out")
            renewed = len(renewals)
            eventually(lambda: len(renewals) > renewed + 2, "it is not renewed")
            self.assertEqual(len(sent), 1, "searches overlap")
            go_on.set()
            self.assertTrue(first.lost.wait(BOUND) and second.lost.wait(BOUND))
            eventually(lambda: kept._held_at == 2, "the other lease was not found to be held")
        self.assertEqual(len(sent), 2, "one search after each revocation")

    def test_if_the_service_falls_silent_all_leases_are_lost_before_the_next_grant(self):
        proxy = self.proxy()
        client = self.client(proxy.url)
        session = self.session(client, ttl=3)
        names = [self.new_name() for _ in range(20)]
        losses, leases, others = set(), {}, {}

        def hold(name):
            leases[name] = client.hold(name, session=session, on_lost=lambda _: losses.add(name))
            others[name] = self.await_next(name, 1)

        in_threads([lambda name=name: hold(name) for name in names])
        proxy.fall_silent()
        for name in names:
            granted = others[name]()
            deadline = time.time() + leases[name].deadline - client.clock()  # the reports come a little later
            self.assertLess(deadline, granted, "the lock was granted again before the lease was lost")
            self.assertRaises(LeaseLost, leases[name].check)
            self.assertTrue(leases[name].lost.wait(BOUND))
        eventually(lambda: losses == set(names), "on_lost was not called for each")
        self.assertRaises(SessionLost, session.check)
        proxy.refuse()
        self.assertRaises(SessionLost, session.close)

    def test_an_outage_shorter_than_the_deadline_does_not_stop_the_work(self):
        for kind in ("fall_silent", "refuse"):
            with self.subTest(kind):
                proxy, states = self.proxy(), []
                client = self.client(proxy.url)
                with client.hold_session(ttl=4, on_state=lambda state, _: states.append(("session", state))) as session:
                    lease, = self.hold_in(session, client=client, on_state=lambda state, _: states.append(("lease", state)))
                    getattr(proxy, kind)()
                    eventually(lambda: ("lease", "at_risk") in states, "the lease is not at risk")
                    lease.check()
                    self.assertEqual((lease.state, lease.error), ("at_risk", session.error))
                    self.assertTrue(lease.error.transient)
                    proxy.heal()
                    eventually(lambda: ("lease", "held") in states, "the lease is not held")
                    lease.check()
                    lease.release()
                self.assertEqual(states, [("session", "at_risk"), ("lease", "at_risk"), ("session", "held"), ("lease", "held")])
                self.assertEqual(self.kinds(lease.name), ["granted", "released"])

    def test_a_lost_session_is_an_error_at_the_end_of_the_block(self):
        with self.assertRaises(SessionLost) as lost:
            with self.paddock.hold_session() as session:
                self.paddock.revoke_session(session.ref, reason="out")
        self.assertEqual(lost.exception.fields["reason"], "out")

    def test_a_loss_interrupts_the_main_thread(self):
        for interrupts in ("session", "lease"):
            with self.subTest(interrupts), self.assertRaises(SessionLost if interrupts == "session" else LeaseLost) as lost:
                with self.paddock.hold_session(ttl=600, interrupt_main=interrupts == "session") as session:
                    with self.paddock.hold(self.name, session=session, interrupt_main=interrupts == "lease"):
                        self.paddock.revoke_session(session.ref, reason="out")
                        time.sleep(BOUND)
                        self.fail("the main thread was not interrupted")
            self.assertEqual(lost.exception.fields["reason"], "out")


class Acquiring(SessionTest):
    def test_in_a_lost_session_raises_session_lost(self):
        session = self.session()
        self.paddock.revoke_session(session.ref, reason="out")
        with self.assertRaises(SessionLost) as lost:  # which the client does not know yet
            self.paddock.hold(self.name, session=session)
        self.assertEqual(lost.exception.fields["reason"], "out")
        with self.paddock.hold_session() as closed:
            pass
        with mock.patch.object(self.paddock, "acquire", side_effect=AssertionError("a request was sent")):
            self.assertRaises(SessionLost, self.paddock.hold, self.name, session=closed)
        self.assertEqual(self.kinds(), [])

    def test_a_session_that_is_lost_meanwhile_leaves_no_lease(self):
        session = self.session()
        acquire = self.paddock.acquire

        def slow(*args, **options):
            grant = acquire(*args, **options)
            session._lose(session._new_loss(session._OVERDUE))
            return grant

        with mock.patch.object(self.paddock, "acquire", slow):
            self.assertRaises(SessionLost, self.paddock.hold, self.name, session=session)
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_with_an_unknown_session_id_raises_session_lost(self):
        with self.assertRaises(SessionLost) as lost:
            self.paddock.acquire(self.name, session_id=str(uuid.uuid4()))
        self.assertEqual((lost.exception.code, lost.exception.status, lost.exception.transient), ("session_lost", 409, False))

    def test_with_times_of_its_own_is_refused(self):
        session = self.session()
        for times in ({"ttl": 60}, {"grace": 1}, {"margin": 1}):
            with self.subTest(times), self.assertRaises(InvalidRequest):
                self.paddock.hold(self.name, session=session, **times)
        for times in ({"ttl": 60}, {"grace": 1}):
            with self.subTest(times), self.assertRaisesRegex(InvalidRequest, "session"):
                self.paddock.acquire(self.name, session_id=session.id, **times)
        with self.assertRaisesRegex(InvalidRequest, "another Paddock"):
            self.client(url()).hold(self.name, session=session)
        lease_id = str(uuid.uuid4())
        self.paddock.acquire(self.name, lease_id=lease_id, session_id=session.id)
        self.assertEqual(self.paddock.renew(self.name, lease_id).answer["session"], session.ref)
        with self.assertRaises(InvalidRequest):
            self.paddock.renew(self.name, lease_id, ttl=60)


class Opening(SessionTest):
    def test_after_a_lost_response_it_is_the_same_session(self):
        proxy = self.proxy()
        proxy.cut(1)
        holder = f"worker-{uuid.uuid4()}"
        with self.client(proxy.url).hold_session(holder=holder) as session:
            self.assertEqual([s["session"] for s in self.paddock.sessions(holder=holder)["sessions"]], [session.ref])
            proxy.cut(1)
        self.assertEqual(self.paddock.sessions(holder=holder)["sessions"], [])

    def test_a_session_id_belongs_to_one_holder_and_finds_its_session_again(self):
        session_id = str(uuid.uuid4())
        first = self.session(session_id=session_id.upper(), holder="worker-1", ttl=60)
        again = self.session(session_id=session_id, holder="worker-1", ttl=90)
        self.assertEqual((first.id, again.ref), (session_id, first.ref))
        self.assertGreater(again.remaining(), 60, "the session has the old ttl")
        with self.assertRaises(PaddockError) as refused:
            self.paddock.hold_session(session_id=session_id, holder="worker-2")
        self.assertEqual(refused.exception.code, "session_id_in_use")
        first.close()
        self.assertRaises(SessionLost, self.paddock.hold_session, session_id=session_id, holder="worker-1")

    def test_an_unreachable_service_is_retried_for_retry_seconds(self):
        proxy = self.proxy()
        proxy.refuse()
        with self.assertRaises(PaddockError) as refused:
            self.client(proxy.url).hold_session(retry=0.3)
        self.assertTrue(refused.exception.transient)
        threading.Timer(0.3, proxy.heal).start()
        self.client(proxy.url).hold_session(retry=BOUND).close()

    def test_invalid_times_are_rejected_before_sending(self):
        for times in ({"ttl": 0}, {"ttl": 3, "margin": 2}):
            with self.subTest(times), self.assertRaises(InvalidRequest):
                self.paddock.hold_session(**times)

    def test_an_unanswered_close_does_not_fail_the_work(self):
        proxy = self.proxy()
        with self.assertLogs("paddock", "WARNING") as logs, self.client(proxy.url).hold_session(ttl=600) as session:
            proxy.refuse()
        self.assertIn("not released", logs.output[0])
        proxy.heal()
        session.close()
        self.assertEqual(self.paddock.session(session.ref)["ended"], "released")


class Calls(SessionTest):
    def test_each_call_of_the_service(self):
        holder = f"worker-{uuid.uuid4()}"
        opened = self.paddock.open_session(holder=holder, ttl=60, grace=1, metadata={"host": "db-3"})
        self.assertNotIn(opened.session_id, repr(opened))
        self.assertEqual((opened.ttl, opened.answer["revoked_leases"], opened.answer["metadata"]), (60, 0, {"host": "db-3"}))
        again = self.paddock.open_session(session_id=opened.session_id.upper(), holder=holder)
        self.assertEqual((again.ref, again.ttl), (opened.ref, 60))
        grant = self.paddock.acquire(self.name, session_id=opened.session_id, holder=holder)
        self.assertEqual((grant.ttl, grant.answer["session"]), (60, opened.ref))
        renewed = self.paddock.renew_session(opened.session_id, ttl=120)
        self.assertEqual((renewed.ttl, renewed.answer["revoked_leases"]), (120, 0))
        self.assertGreater(renewed.until, opened.until)
        shown = self.paddock.session(opened.ref)
        self.assertEqual([(lock["name"], lock["fencing_token"]) for lock in shown["locks"]], [(self.name, grant.token)])
        page = self.paddock.sessions(holder=holder, limit=1)["sessions"]
        self.assertEqual([(s["session"], s["leases"]) for s in page], [(opened.ref, 1)])
        self.paddock.close_session(opened.session_id)
        self.paddock.close_session(opened.session_id)
        self.assertEqual(self.paddock.lock(self.name)["state"], "free")
        self.assertRaises(SessionLost, self.paddock.renew_session, opened.session_id)
        with self.assertRaises(PaddockError) as refused:
            self.paddock.session("0123456789abcdef")
        self.assertEqual(refused.exception.code, "not_found")

    def test_a_revocation_can_skip_the_grace(self):
        for skip_grace, state in ((False, "grace"), (True, "free")):
            name, session = self.new_name(), self.paddock.open_session(grace=60)
            self.paddock.acquire(name, session_id=session.session_id)
            revoked = self.paddock.revoke_session(session.ref, reason="out", skip_grace=skip_grace)
            self.assertEqual((revoked["ended"], revoked["reason"]), ("revoked", "out"))
            self.assertEqual(self.paddock.lock(name)["state"], state)
            with self.assertRaises(SessionLost) as lost:
                self.paddock.close_session(session.session_id)
            self.assertEqual(lost.exception.fields["reason"], "out")

    def test_too_many_leases_is_not_transient(self):
        self.assertFalse(PaddockError("too_many_leases", "", 429).transient)
        self.assertTrue(PaddockError("too_many_waiters", "", 429).transient)


class FakeSessions(FakePaddock):
    def session_grant(self, session_id=None, took=0.0, expires_in=30.0, ttl=30.0):
        sent = self.now
        self.advance(took)
        return SessionGrant(session_id or "secret", "ref", ttl, expires_in, sent, {"holder": "w", "revoked_leases": 0})

    def renew_session(self, session_id, ttl=None, timeout=None):
        self.calls.append(("renew", ttl))
        return self.on_renew()

    def open_session(self, session_id, **want):
        self.calls.append((session_id, want["ttl"]))
        return self.responses.pop(0)(session_id)

    def open(self, session_id=None, retry=10.0):
        want = {"session_id": session_id, "holder": None, "ttl": 30.0, "grace": None, "metadata": None}
        with mock.patch.object(time, "sleep", self.advance):
            return acquire.open_session(self, want, 3.0, retry)


class Deadline(ServiceTest):
    def setUp(self):
        self.fake = FakeSessions()
        tick = mock.patch.object(guard, "TICK", 0.02)
        tick.start()
        self.addCleanup(tick.stop)

    def session(self, grant):
        session = paddock.Session(self.fake, grant, 3.0, None, None, False, None)
        self.addCleanup(session.lost.set)
        return session

    def lease(self, session, grant=None):
        return paddock.Lease(self.fake, grant or self.fake.grant(), 3.0, None, None, False, None, session)

    def test_it_counts_from_the_sending_of_the_request_minus_the_margin(self):
        session = self.session(self.fake.session_grant(took=4.0, expires_in=29.0))
        lease = self.lease(session)
        self.assertEqual((session.deadline, lease.deadline, lease.remaining()), (1026.0, 1026.0, 22.0))
        self.fake.on_renew = lambda: self.fake.session_grant(took=2.0)
        self.fake.advance(8)
        eventually(lambda: lease.deadline == 1012.0 + 30 - 3, "the deadline did not move")

    def test_a_check_of_a_lease_is_exact_and_ends_the_session(self):
        session = self.session(self.fake.session_grant())
        self.fake.on_renew = lambda: raising(Unavailable("unavailable", "off"))(None)
        one, other = self.lease(session), self.lease(session)
        self.fake.now = session.deadline - 0.001
        one.check()
        self.fake.now = session.deadline
        with self.assertRaisesRegex(LeaseLost, "with its session.*not renewed in time"):
            one.check()
        self.assertTrue(session.lost.is_set() and other.lost.is_set())
        self.fake.now -= 20
        self.assertRaises(LeaseLost, other.check)

    def test_a_suspension_is_noticed_without_a_check(self):
        session = self.session(self.fake.session_grant())
        lease = self.lease(session)
        self.fake.advance(3600)
        self.assertTrue(lease.lost.wait(BOUND))
        self.assertEqual(lease.state, "lost")

    def test_a_lease_that_joins_a_lost_session_is_lost(self):
        session = self.session(self.fake.session_grant())
        session._lose(session._new_loss(session._OVERDUE))
        lease = self.lease(session)
        self.assertTrue(lease.lost.is_set())
        self.assertRaises(LeaseLost, lease.check)

    def test_max_hold_counts_from_the_grant(self):
        for acquired, expires, end in (("2026-01-02T03:04:05Z", "2026-01-02T03:04:35.5Z", 1030 - 30.5 + 20),
                                       ("2026-01-02T03:04:05.67894Z", "2026-01-02T03:04:25.67894Z", 1030)):
            grant = self.fake.grant()
            grant.answer.update(acquired_at=acquired, expires_at=expires, max_hold_ms=20_000)
            self.assertAlmostEqual(lease._max_hold_end(grant), end, 3)

    def test_an_old_or_slowly_opened_session_is_renewed_immediately(self):
        for response in ({"took": 20.0}, {"expires_in": 5.0}, {"ttl": 10.0, "expires_in": 10.0}):
            with self.subTest(response):
                self.fake = FakeSessions()
                self.fake.responses = [lambda session_id: self.fake.session_grant(session_id, **response)]
                self.fake.on_renew = self.fake.session_grant
                grant = self.fake.open()
                self.assertEqual((self.fake.calls[-1], grant.sent), (("renew", 30.0), self.fake.now))

    def test_an_open_is_repeated_with_the_same_id_unless_that_session_has_ended(self):
        lost = SessionLost("session_lost", "", 409)
        self.fake.responses = [raising(Unavailable("unavailable", "")), raising(lost), self.fake.session_grant]
        self.fake.open()
        (first, _), (second, _), (third, _) = self.fake.calls
        self.assertEqual((first == second, second == third), (True, False))
        self.fake.responses = [raising(lost)]
        self.assertRaises(SessionLost, self.fake.open, session_id="mine")

    def test_a_service_slower_than_the_ttl_is_an_error(self):
        self.fake.responses = [lambda session_id: self.fake.session_grant(session_id, took=28.0)] * 10
        self.fake.on_renew = lambda: self.fake.session_grant(took=28.0)
        with self.assertRaisesRegex(Unavailable, "longer"):
            self.fake.open()
