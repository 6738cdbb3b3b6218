"""Guards are told at once that something has ended; the renewal decides."""

import asyncio
import threading
import unittest
from unittest import mock

from service import BOUND, ServiceTest, client_threads, eventually, url
from test_aio import AioTest, in_loop

from paddock import LeaseLost, PaddockError, SessionLost, Unavailable
from paddock import _hub as hub
from paddock._clock import stopper

LONG = 600.0  # a TTL, whose next renewal is more than two minutes away


class Told(ServiceTest):
    def listening(self, client, number=1):
        """Waits until the hub of the client waits for events for these many guards."""
        eventually(lambda: client.hub._waiting and len(client.hub._watched) == number and not client.hub._joined, "it does not listen")

    def is_lost(self, guard):
        self.assertTrue(guard.lost.wait(BOUND), "it did not hear of it")

    def test_a_revocation_is_heard_at_once_at_a_ttl_of_ten_minutes(self):
        lease = self.paddock.hold(self.name, ttl=LONG)
        self.listening(self.paddock)
        self.client(url()).revoke(self.name, token=lease.token, reason="db-3 is being replaced")
        self.is_lost(lease)
        with self.assertRaises(LeaseLost) as lost:
            lease.check()
        self.assertEqual((lost.exception.ended, lost.exception.reason, lost.exception.status), ("revoked", "db-3 is being replaced", 409))

    def test_what_happened_before_it_listened_is_found(self):
        lease = self.paddock.hold(self.name, ttl=LONG)
        self.paddock.revoke(self.name, token=lease.token, reason="out")
        self.is_lost(lease)

    def test_one_of_several_locks_is_enough(self):
        lease = self.paddock.hold([self.name, self.name + ":b"], ttl=LONG)
        self.listening(self.paddock)
        self.paddock.revoke(self.name + ":b", token=lease.token, reason="out")
        self.is_lost(lease)

    def test_a_session_and_each_of_its_leases(self):
        session = self.paddock.hold_session(ttl=LONG)
        early, lease, kept = (self.paddock.hold(f"{self.name}:{part}", session=session) for part in "abc")
        self.paddock.revoke(early.name, token=early.token, reason="before it listened")
        self.is_lost(early)
        self.listening(self.paddock)
        eventually(lambda: (lease.name, lease.token, lease.slot) in self.paddock.hub._watched[session].leases, "the lease is not watched")
        self.listening(self.paddock)
        self.paddock.revoke(lease.name, token=lease.token, reason="out")
        self.is_lost(lease)
        self.assertEqual((lease.error.reason, early.error.reason), ("out", "before it listened"))
        kept.check()
        self.paddock.revoke_session(session.ref, reason="all out")
        self.is_lost(session)
        self.assertTrue(kept.lost.is_set())
        with self.assertRaises(SessionLost) as lost:
            session.check()
        self.assertEqual(lost.exception.reason, "all out")

    def test_a_release_by_another_user_of_a_lease_of_a_session(self):
        session = self.paddock.hold_session(ttl=LONG)
        lost, kept = (self.paddock.hold(f"{self.name}:{part}", session=session) for part in "ab")
        eventually(lambda: len(self.paddock.hub._watched.get(session, hub.Watched(frozenset())).leases) == 2, "the leases are not watched")
        self.listening(self.paddock)
        call, asked, outage = self.paddock.batch, [], [Unavailable("unavailable", "off")]

        def batch(items, **options):
            asked.append([item["name"] for item in items])
            if outage:
                raise outage[0]
            return call(items, **options)

        with mock.patch.object(self.paddock, "batch", batch):
            self.client(url()).release(lost.name, lost._granted.lease_id)
            eventually(lambda: asked, "the lease is not asked for")
            outage.clear()
            session.hint()  # the next heartbeat
            self.is_lost(lost)
        self.assertEqual((set(map(tuple, asked)), lost.error.ended), ({(lost.name,)}, "released"))
        kept.check()

    def test_a_hint_during_a_search_is_not_settled_by_its_answer(self):
        session = self.paddock.hold_session(ttl=LONG)
        lease = self.paddock.hold(self.name, session=session)
        call, ended = self.paddock.batch, lease._watched().leases

        def batch(items, **options):
            answer = call(items, **options)
            session.hint(ended)
            return answer

        with mock.patch.object(self.paddock, "batch", batch):
            session._find_lost([lease], 0)
        self.assertLess(lease._held_at, 0)

    def test_a_release_of_one_reader_is_not_told_to_the_others(self):
        renewed, clients = [], [self.client(url()) for _ in range(3)]
        readers = [client.hold(self.name, mode="shared", ttl=LONG, on_renewed=lambda *_, client=client: renewed.append(client)) for client in clients]
        for client in clients:
            self.listening(client)
        eventually(lambda: len(renewed) == 3, "they did not renew once")
        self.paddock.release(self.name, readers[0]._granted.lease_id)
        self.is_lost(readers[0])
        self.paddock.revoke(self.name, token=readers[1].token, slot=readers[1].slot, reason="out")
        self.is_lost(readers[1])
        eventually(lambda: renewed.count(clients[1]) == 2, "it did not renew")
        self.assertEqual(renewed.count(clients[2]), 1, "the other reader renewed")

    def test_one_call_serves_all_guards_and_ends_with_the_last(self):
        before, client = client_threads(), self.client(url())
        with mock.patch.object(client, "wait_for_events", wraps=client.wait_for_events) as calls:
            leases = [client.hold(f"{self.name}:{number}", ttl=LONG) for number in range(20)]
            self.listening(client, 20)
            self.assertLess(calls.call_count, 10, "a call for each guard")
            revoked = leases.pop(7)
            self.client(url()).revoke(revoked.name, token=revoked.token, reason="out")
            self.is_lost(revoked)
            for lease in leases:
                lease.check()
                lease.release()
            eventually(lambda: client_threads() <= before, "threads remain")
        with self.assertLogs("paddock", "WARNING"):
            client.hold(self.name, ttl=LONG)
            eventually(lambda: client_threads() <= before, "threads of a dropped lease remain")

    def test_a_short_critical_section_costs_nothing(self):
        with mock.patch.object(self.paddock, "wait_for_events", side_effect=AssertionError("it listened")) as wait:
            for _ in range(3):
                with self.paddock.hold(self.name):
                    pass
        self.assertEqual(wait.call_count, 0)

    def test_a_failure_of_the_call_is_no_failure_of_the_lease(self):
        states = []
        with mock.patch.object(self.paddock, "wait_for_events", side_effect=Unavailable("unavailable", "off")) as wait:
            with self.paddock.hold(self.name, ttl=4, on_state=lambda state, _: states.append(state)) as lease:
                eventually(lambda: wait.call_count > 1, "it did not try again")
                self.assertFalse(lease.lost.wait(5))
                lease.check()
        self.assertEqual(states, [])
        self.assertEqual(self.kinds(), ["granted", "released"])

    def test_the_call_goes_on_after_an_outage_with_its_cursor(self):
        proxy = self.proxy()
        client = self.client(proxy.url)
        lease = client.hold(self.name, ttl=LONG)
        self.listening(client)
        proxy.refuse()
        eventually(lambda: not client.hub._waiting, "the call did not break")
        self.paddock.revoke(self.name, token=lease.token, reason="out")
        proxy.heal()
        self.is_lost(lease)

    def test_a_cursor_that_is_refused_is_dropped(self):
        call, cursors = self.paddock.wait_for_events, []

        def wait_for_events(*args, cursor, **options):
            cursors.append(cursor)
            page = call(*args, cursor=cursor, **options)
            return {**page, "next_cursor": "no cursor"} if len(cursors) == 1 else page

        with mock.patch.object(self.paddock, "wait_for_events", wait_for_events):
            lease = self.paddock.hold(self.name, ttl=LONG)
            eventually(lambda: cursors.count(None) == 2, "it does not begin anew")
            self.listening(self.paddock)
            self.paddock.revoke(self.name, token=lease.token, reason="out")
            self.is_lost(lease)
        self.assertEqual(cursors[:3], [None, "no cursor", None])

    def test_after_missed_events_each_lease_of_a_session_is_asked_for(self):
        for missed in ("gap", "unreadable", "cursor"):
            client = self.client(url())
            call = client.wait_for_events

            def wait_for_events(*args, **options):
                page = call(*args, **options)
                if page["events"] and missed == "cursor":
                    raise PaddockError("invalid_request", "", 400)
                return {**page, "events": [], missed: True} if page["events"] else page

            with self.subTest(missed), mock.patch.object(client, "wait_for_events", wait_for_events), client.hold_session(ttl=LONG) as session:
                lost, kept = (client.hold(self.new_name(), session=session) for _ in range(2))
                alone = client.hold(self.new_name(), ttl=LONG)
                eventually(lambda: len(client.hub._watched.get(session, hub.Watched(frozenset())).leases) == 2, "the leases are not watched")
                self.listening(client, 2)
                for lease in (lost, alone):
                    self.paddock.release(lease.name, lease._granted.lease_id)
                for lease in (lost, alone):
                    self.assertTrue(lease.lost.wait(BOUND), "it was not asked for")
                kept.check()

    def test_a_session_that_has_ended_is_not_asked_for_again(self):
        renewed = []
        session = self.paddock.hold_session(ttl=LONG, on_renewed=lambda _, error: renewed.append(error))
        lease, other = self.paddock.hold(self.name, session=session), self.paddock.hold(self.new_name(), ttl=LONG)
        eventually(lambda: self.paddock.hub._watched.get(session, hub.Watched(frozenset())).leases, "the lease is not watched")
        self.listening(self.paddock, 2)
        eventually(lambda: renewed, "it is not renewed when it is listened for")
        wait_for_events, refused = self.paddock.wait_for_events, PaddockError("role_missing", "", 403)
        with mock.patch.object(self.paddock, "renew_session", side_effect=refused), mock.patch.object(self.paddock, "wait_for_events", wraps=wait_for_events) as calls:
            self.client(url()).revoke_session(session.ref, reason="out")
            eventually(lambda: refused in renewed, "it is not renewed")
            self.listening(self.paddock)
            session._leases.clear()  # what it watches changes
            self.paddock.revoke(other.name, token=other.token, reason="out")
            self.is_lost(other)
            eventually(lambda: not self.paddock.hub._running, "it goes on although there is nothing to hear")
        self.assertEqual((renewed.count(refused), session.state), (1, "at_risk"))
        self.assertLess(calls.call_count, 4)
        session._lose(session._new_loss(session._OVERDUE))

    def test_its_own_release_is_not_heard(self):
        renewed = []
        lease = self.paddock.hold(self.name, ttl=LONG, on_renewed=lambda *_: renewed.append(1))
        self.listening(self.paddock)
        eventually(lambda: len(renewed) == 1, "it did not renew once")
        lease.release()
        other = self.paddock.hold(self.new_name(), ttl=LONG)
        self.listening(self.paddock)
        self.assertEqual((len(renewed), lease.state), (1, "released"))
        other.release()


class Silence(unittest.TestCase):
    def test_a_refusal_is_not_repeated_for_minutes(self):
        class Guard:
            def hint(self, ended, within=0.0):
                pass

        pauses, calls = [], mock.Mock(longest_wait=10.0)
        calls.wait_for_events.side_effect = [PaddockError("name_not_allowed", "", 403), Unavailable("unavailable", "", 503), Unavailable("unavailable", "", 503)]
        listener, guard, done = hub.Hub(calls), Guard(), threading.Event()

        def pause(seconds):
            pauses.append(seconds)
            if len([p for p in pauses if p > 0.3]) == 3:
                listener.leave(guard)
                done.set()

        with mock.patch.object(listener, "_pause", pause):
            listener.join(guard, hub.Watched(frozenset({("a", 1, 0)})))
            self.assertTrue(done.wait(BOUND))
        refused, first, second = [p for p in pauses if p > 0.3]
        self.assertTrue(270 <= refused <= 330 and 0.5 <= first <= 1 <= second <= 2, pauses)


class Busy(unittest.TestCase):
    def test_calls_that_are_interrupted_again_and_again_do_not_stop_it_from_hearing(self):
        class Guard:
            def hint(self, ended, within=0.0):
                pass

        guards, calls, sent = [Guard()], mock.Mock(longest_wait=10.0), []
        listener, watched = hub.Hub(calls), hub.Watched(frozenset({("a", 1, 0)}))

        def wait_for_events(*_, cursor, wait, **options):
            sent.append((cursor, wait))
            if len(guards) < 20:
                guards.append(Guard())
                listener.join(guards[-1], watched)
                stopper.get().pause(BOUND if wait else 0)
            return {"events": [], "next_cursor": str(int(cursor or 0) + 1)}

        calls.wait_for_events = wait_for_events
        with mock.patch.object(hub, "RESEND", 0.1):
            listener.join(guards[0], watched)
            eventually(lambda: ("3", 10.0) in sent, "the cursor does not move")
        for guard in guards:
            listener.leave(guard)
        self.assertEqual([(cursor, wait) for cursor, wait in sent if wait == 0][:3], [(None, 0), ("1", 0), ("2", 0)])


class AioTold(AioTest):
    @in_loop
    async def test_a_task_is_cancelled_at_once_at_a_ttl_of_ten_minutes(self):
        with self.assertRaises(LeaseLost) as lost:
            async with self.locks.hold(self.name, ttl=LONG) as lease:
                await asyncio.sleep(0.5)
                self.paddock.revoke(self.name, token=lease.token, reason="out")
                await asyncio.sleep(BOUND)
                self.fail("the task was not cancelled")
        self.assertEqual(lost.exception.reason, "out")
