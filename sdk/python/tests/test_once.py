"""Work that is done once per period, closed and frozen locks, and rules."""

import asyncio
import datetime
import zoneinfo

from service import BOUND, ServiceTest, eventually, in_threads, instant, url

from paddock import AlreadyDone, InvalidRequest, LeaseLost, LockFrozen, LockHeld, PaddockError, Unavailable, UnknownOutcome
from paddock import aio

HOUR = 3600


def twice(lease):
    raise AssertionError("the work was done twice")


class Once(ServiceTest):
    def ran(self, **options):
        """Returns whether this call has done the work of this hour."""
        return self.paddock.once(self.name, lambda lease: None, **{"at_least": HOUR, **options}).ran

    def test_the_work_is_done_once_per_period(self):
        turn = self.paddock.once(self.name, lambda lease: lease.token, at_least=HOUR, holder="first")
        self.assertEqual((turn.ran, turn.result, turn.done_by), (True, self.paddock.lock(self.name)["fencing_token"], None))
        again = self.paddock.once(self.name, twice, at_least=HOUR)
        self.assertEqual((again.ran, again.result, again.done_by), (False, None, "first"))
        granted, released = self.paddock.events(lock=self.name)["events"]
        self.assertEqual(again.done_at, released["at"])
        self.assertLessEqual(again.left, instant(granted["at"]) + HOUR - instant(released["at"]) + 0.001)
        self.assertGreater(again.left, HOUR - 2 * BOUND)

    def test_the_work_is_done_again_when_the_lock_opens(self):
        self.assertTrue(self.ran(at_least=0.3))
        eventually(lambda: "closed" not in self.paddock.lock(self.name), "the lock does not open")
        self.assertTrue(self.ran(at_least=0.3))

    def test_a_period_of_the_calendar_ends_in_its_time_zone(self):
        for period, zone in (("day", "Asia/Kathmandu"), ("month", None)):
            self.name = self.new_name()
            self.assertTrue(self.ran(period=period, time_zone=zone, at_least=None))
            until = datetime.datetime.fromtimestamp(instant(self.paddock.lock(self.name)["closed"]["until"]), zoneinfo.ZoneInfo(zone or "UTC"))
            self.assertEqual((until.hour, until.minute, until.second), (0, 0, 0))
            self.assertTrue(period == "day" or until.day == 1)

    def test_the_least_time_outlasts_a_short_period(self):
        self.assertTrue(self.ran(period="minute"))
        turn = self.paddock.once(self.name, twice, period="minute")
        self.assertGreater(turn.left, HOUR - 2 * BOUND)

    def test_work_that_fails_leaves_the_lock_open(self):
        def fails(lease):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            self.paddock.once(self.name, fails, at_least=HOUR)
        self.assertTrue(self.ran())
        self.assertEqual(self.kinds(), ["granted", "released"] * 2)

    def test_work_whose_lease_was_lost_leaves_the_lock_open(self):
        def revoked(lease):
            self.paddock.revoke(self.name, token=lease.token, reason="maintenance")

        with self.assertRaises(LeaseLost) as raised:
            self.paddock.once(self.name, revoked, at_least=HOUR)
        self.assertEqual(raised.exception.reason, "maintenance")
        self.assertTrue(self.ran())

    def test_work_beyond_the_deadline_leaves_the_lock_open(self):
        """Although the service would still know the lease."""
        now = [0.0]
        client = self.client(url(), clock=lambda: now[0])

        def pauses(lease):
            now[0] += 59

        with self.assertRaises(LeaseLost):
            client.once(self.name, pauses, at_least=HOUR, ttl=60)
        self.assertNotIn("closed", self.paddock.lock(self.name))
        self.assertTrue(self.ran())

    def test_a_lease_that_expires_before_its_release_arrives_is_an_error(self):
        """Because the lock stays open, unlike after a hold, whose work was done in time."""
        proxy = self.proxy()

        def heal():
            eventually(lambda: self.paddock.lock(self.name)["fencing_token"] > 0, "the lock is not granted")
            eventually(lambda: self.paddock.lock(self.name)["state"] == "free", "the lease does not end")
            proxy.heal()

        def once():
            with self.assertRaises(LeaseLost):
                self.client(proxy.url).once(self.name, lambda lease: proxy.fall_silent(), at_least=HOUR, ttl=1)

        in_threads([once, heal])
        self.assertNotIn("closed", self.paddock.lock(self.name))

    def test_a_release_without_an_answer_is_an_error_because_the_work_is_done_again(self):
        proxy = self.proxy()
        client = self.client(proxy.url)
        with self.assertRaises((Unavailable, UnknownOutcome)):
            client.once(self.name, lambda lease: proxy.refuse(), at_least=HOUR)

    def test_another_turn_is_refused_or_waited_for(self):
        lease_id = self.paddock.acquire(self.name, holder="other").lease_id
        with self.assertRaises(LockHeld):
            self.ran()

        def done():
            self.await_waiters(1)
            self.paddock.release(self.name, lease_id, closed=HOUR)

        turn, _ = in_threads([lambda: self.client(url()).once(self.name, twice, at_least=HOUR, wait=None), done])
        self.assertEqual((turn.ran, turn.done_by), (False, "other"))

    def test_a_turn_that_failed_is_taken_over(self):
        lease_id = self.paddock.acquire(self.name).lease_id

        def failed():
            self.await_waiters(1)
            self.paddock.release(self.name, lease_id)

        turn, _ = in_threads([lambda: self.client(url()).once(self.name, lambda lease: 7, at_least=HOUR, wait=None), failed])
        self.assertEqual((turn.ran, turn.result), (True, 7))

    def test_arguments_are_checked_before_the_work(self):
        for text, options in {
            "period and at_least are missing; give one": {}, "period and at_least are missing": {"at_least": 0},
            "period is invalid; use minute, hour, day, week or month": {"period": "year"},
            "at_least is -1; give 0 to 2678400 (seconds)": {"at_least": -1}, "at_least is 2678401": {"at_least": 2678401},
            "time_zone is only valid with period": {"at_least": 1, "time_zone": "Europe/Berlin"},
            "time_zone is unknown; give a name of the IANA": {"period": "day", "time_zone": "Europe/Bonn"},
            "time_zone is unknown": {"period": "day", "time_zone": "../etc/passwd"},
        }.items():
            with self.subTest(text), self.assertRaises(InvalidRequest) as raised:
                self.paddock.once(self.name, twice, **options)
            self.assertIn(text, str(raised.exception))
        for text, options in {
            "mode is not an option of once": {"mode": "shared"}, "permits is not": {"permits": 2}, "period is of the type int": {"period": 60},
            "at_least is of the type str": {"at_least": "60"}, "x is not an option": {"x": 1},
        }.items():
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                self.paddock.once(self.name, twice, **{"at_least": HOUR, **options})
        with self.assertRaisesRegex(TypeError, "one lock"):
            self.paddock.once([self.name, "b"], twice, at_least=HOUR)
        self.assertEqual(self.kinds(), [])

    def test_asyncio_has_the_same(self):
        async def work(lease):
            await asyncio.sleep(0)
            return lease.token

        async def fails(lease):
            raise KeyError("mine")

        async def revoked(lease):
            await self.locks.revoke(self.name, token=lease.token, reason="maintenance")
            await asyncio.sleep(BOUND)

        async def turns():
            async with aio.Paddock(url()) as self.locks:
                for error, failing in ((KeyError, fails), (LeaseLost, revoked)):
                    with self.assertRaises(error):
                        await self.locks.once(self.name, failing, at_least=HOUR)
                first = await self.locks.once(self.name, work, at_least=HOUR, holder="first")
                self.assertEqual((first.ran, first.result), (True, self.paddock.lock(self.name)["fencing_token"]))
                again = await self.locks.once(self.name, fails, at_least=HOUR, wait=None)
                self.assertEqual((again.ran, again.done_by), (False, "first"))
                with self.assertRaises(InvalidRequest):
                    await self.locks.once(self.name, fails)
                with self.assertRaises(TypeError):
                    await self.locks.once(self.name, fails, at_least=1, capacity=2)

        asyncio.run(turns())


class Policy(ServiceTest):
    def test_a_closed_lock_is_refused_or_waited_for(self):
        lease_id = self.paddock.acquire(self.name, holder="first").lease_id
        self.paddock.release(self.name, lease_id, closed=2)
        closed = self.paddock.lock(self.name)["closed"]
        self.assertEqual(closed["holder"], "first")
        for call in (self.paddock.hold, lambda name: self.paddock.acquire(name, once=True, wait=BOUND)):
            with self.assertRaises(AlreadyDone) as raised:
                call(self.name)
            done = raised.exception
            self.assertEqual((done.code, done.holder, done.done_at), ("already_done", "first", closed["done_at"]))
            self.assertGreater(done.retry_after, 0)
            self.assertIn("or wait for it with wait (seconds).", done.detail)
        self.paddock.hold(self.name, wait=BOUND).release()
        self.assertGreaterEqual(instant(self.paddock.events(lock=self.name, kind="granted")["events"][-1]["at"]), instant(closed["until"]))

    def test_a_release_closes_until_the_end_of_a_period(self):
        lease_id = self.paddock.acquire(self.name).lease_id
        with self.assertRaises(InvalidRequest) as raised:
            self.paddock.release(self.name, lease_id, closed=-1)
        self.assertIn("closed is -1; give 0 to 2678400 (seconds)", raised.exception.detail)
        self.paddock.release(self.name, lease_id, once_per="day", time_zone="Europe/Berlin")
        until = datetime.datetime.fromtimestamp(instant(self.paddock.lock(self.name)["closed"]["until"]), zoneinfo.ZoneInfo("Europe/Berlin"))
        self.assertEqual((until.hour, until.minute, until.second), (0, 0, 0))

    def test_a_frozen_lock_is_refused_or_waited_for(self):
        for lasts in (3600, None):
            status = self.paddock.freeze(self.name, reason="maintenance", duration=lasts)
            with self.assertRaises(LockFrozen) as raised:
                self.paddock.hold(self.name)
            frozen = raised.exception
            self.assertEqual((frozen.code, frozen.reason, frozen.frozen_by), ("lock_frozen", "maintenance", None))
            self.assertEqual(frozen.frozen_until, status.get("until"))
        self.assertIsNone(frozen.frozen_until)
        self.assertIn("or wait for it with wait (seconds).", frozen.detail)

        def thaw():
            self.await_waiters(1)
            self.paddock.thaw(self.name)

        in_threads([lambda: self.client(url()).hold(self.name, wait=None).release(), thaw])

    def test_a_freeze_is_set_read_listed_and_ended(self):
        scope = f"{self.name}:"
        held = self.paddock.hold(f"{scope}a")
        frozen = self.paddock.freeze(scope, reason="maintenance", duration=600)
        self.assertEqual((frozen["scope"], frozen["reason"], frozen["leases"]), (scope, "maintenance", 1))
        self.assertEqual(instant(frozen["until"]) - instant(frozen["frozen_at"]), 600)
        held.release()
        self.assertEqual(self.paddock.frozen(scope)["leases"], 0)
        self.assertEqual(self.paddock.lock(f"{scope}a")["frozen"]["scope"], scope)
        self.assertEqual([freeze["reason"] for freeze in self.paddock.freezes()["freezes"] if freeze["scope"] == scope], ["maintenance"])
        self.paddock.thaw(scope)
        self.paddock.thaw(scope)
        with self.assertRaises(PaddockError) as raised:
            self.paddock.frozen(scope)
        self.assertEqual(raised.exception.code, "not_found")
        for duration, text in ((-1, "duration is -1; give 0 to 2678400 (seconds)"),):
            with self.assertRaises(InvalidRequest) as raised:
                self.paddock.freeze(scope, reason="maintenance", duration=duration)
            self.assertIn(text, raised.exception.detail)

    def test_a_rule_is_set_listed_and_removed(self):
        scope = f"{self.name}:"
        rule = self.paddock.set_rule(scope, max_ttl=60, max_hold=120, min_grace=0.1, capacity=2, max_leases=9)
        self.assertEqual({**rule, "set_at": ""}, {"scope": scope, "max_ttl_ms": 60000, "max_hold_ms": 120000, "min_grace_ms": 100, "capacity": 2,
                                                  "max_leases": 9, "set_at": ""})
        self.assertEqual([one for one in self.paddock.rules()["rules"] if one["scope"] == scope], [rule])
        with self.assertRaises(InvalidRequest) as raised:
            self.paddock.hold(f"{scope}a", ttl=90)
        self.assertRegex(raised.exception.detail, f"^ttl .*{scope}")
        with self.paddock.hold(f"{scope}p", mode="permit"), self.paddock.hold(f"{scope}p", mode="permit"), self.assertRaises(LockHeld):
            self.paddock.hold(f"{scope}p", mode="permit")
        with self.assertRaises(InvalidRequest) as raised:
            self.paddock.set_rule(scope, max_ttl=0.01)
        self.assertIn("max_ttl is 0.01; give 0.1 to 86400 (seconds)", raised.exception.detail)
        self.paddock.remove_rule(scope)
        self.paddock.remove_rule(scope)
        self.paddock.hold(f"{scope}a", ttl=90).release()

    def test_a_service_with_one_database_has_no_cells(self):
        self.assertEqual(self.paddock.cells(), {"cells": []})
        self.assertEqual([database["epoch"]["number"] for database in self.paddock.service()["databases"]], [1])

    def test_an_invalid_scope_is_not_sent(self):
        client = self.client("http://127.0.0.1:1")
        for scope in ("", ":", "..", "a/b"):
            for call in (lambda: client.freeze(scope, reason="r"), lambda: client.frozen(scope), lambda: client.thaw(scope),
                         lambda: client.set_rule(scope, capacity=1), lambda: client.remove_rule(scope)):
                with self.assertRaises(InvalidRequest):
                    call()

    def test_asyncio_has_the_same(self):
        async def policy():
            async with aio.Paddock(url()) as locks:
                self.assertEqual((await locks.freeze(self.name, reason="r"))["leases"], 0)
                self.assertEqual((await locks.frozen(self.name))["reason"], "r")
                self.assertIn(self.name, [freeze["scope"] for freeze in (await locks.freezes())["freezes"]])
                await locks.thaw(self.name)
                await locks.set_rule(self.name, capacity=2)
                self.assertIn(self.name, [rule["scope"] for rule in (await locks.rules())["rules"]])
                await locks.remove_rule(self.name)
                self.assertEqual(await locks.cells(), {"cells": []})
                self.assertEqual(len((await locks.service())["databases"]), 1)

        asyncio.run(policy())
