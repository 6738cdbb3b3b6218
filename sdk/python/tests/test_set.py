"""Several locks that are acquired together, all or none."""

import os
import random
import threading
from unittest import mock

from service import BOUND, ServiceTest, eventually, in_threads, url

from paddock import InvalidRequest, LeaseLost, LockHeld, Paddock, PaddockError, fence


class SetTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.name + ":a", self.name + ":b"

    def assert_states(self, *states):
        self.assertEqual(tuple(self.paddock.lock(name)["state"] for name in (self.a, self.b)), states)


class Calls(SetTest):
    def test_two_locks_are_granted_renewed_and_released_together(self):
        grant = self.paddock.acquire([self.b, {"name": self.a}], ttl=20)
        self.assertEqual((grant.name, grant.tokens, grant.slots), (self.a, {self.a: grant.token, self.b: grant.token}, {self.a: [0], self.b: [0]}))
        self.assertEqual(self.paddock.lock(self.a)["leases"][0]["set"], [self.a, self.b])
        again = self.paddock.acquire([self.a, self.b], lease_id=grant.lease_id, ttl=20)
        self.assertEqual(again.tokens, grant.tokens)
        renewed = self.paddock.renew([self.b, self.a], grant.lease_id, ttl=60)
        self.assertEqual((renewed.tokens, renewed.ttl), (grant.tokens, 60))
        self.paddock.release([{"name": self.b}, {"name": self.a}], grant.lease_id)
        self.paddock.release([self.a, self.b], grant.lease_id)
        self.assert_states("free", "free")
        self.assertEqual((self.kinds(self.a), self.kinds(self.b)), (["granted", "released"], ["granted", "released"]))

    def test_each_lock_has_its_own_mode(self):
        reader = self.paddock.acquire(self.a, mode="shared")
        grant = self.paddock.acquire([{"name": self.a, "mode": "shared"}, self.b], mode="permit", capacity=3)
        self.assertEqual(grant.tokens[self.a], reader.token, "a reader has another token than the readers that it joins")
        self.assertGreater(grant.tokens[self.b], reader.token)
        self.assertEqual(grant.slots, {self.a: [2], self.b: [1]})
        self.assertEqual([lock["mode"] for lock in grant.answer["locks"]], ["shared", "permit"])

    def test_a_refusal_names_the_locks_in_the_way_and_holds_nothing(self):
        self.paddock.acquire(self.b, holder="worker-1")
        for ask in (self.paddock.acquire, self.paddock.hold):
            with self.assertRaises(LockHeld) as held:
                ask([self.a, self.b])
            blocker, = held.exception.blockers
            self.assertEqual((blocker["name"], blocker["holder"], held.exception.holder), (self.b, "worker-1", "worker-1"))
            self.assertGreater(held.exception.retry_after, 0)
        self.assert_states("free", "held")
        self.assertEqual(self.kinds(self.a), [])

    def test_one_of_several_cannot_be_renewed_or_released_alone(self):
        grant = self.paddock.acquire([self.a, self.b])
        for call in (self.paddock.renew, self.paddock.release):
            with self.assertRaises(PaddockError) as refused:
                call(self.a, grant.lease_id)
            self.assertEqual((refused.exception.code, refused.exception.fields["set"]), ("lease_in_set", [self.a, self.b]))
        with self.assertRaises(PaddockError) as refused:
            self.paddock.acquire(self.a, lease_id=grant.lease_id)
        self.assertEqual(refused.exception.code, "lease_id_in_use")
        self.assert_states("held", "held")

    def test_a_list_of_one_lock_is_that_lock(self):
        with self.paddock.hold([{"name": self.a, "mode": "permit", "capacity": 2}]) as lease:
            self.assertEqual((lease.name, lease.tokens, lease.slots), (self.a, {self.a: lease.token}, {self.a: [1]}))
            self.assertNotIn("set", self.paddock.lock(self.a)["leases"][0])
        self.assertEqual(self.kinds(self.a), ["granted", "released"])

    def test_invalid_locks_are_refused(self):
        many = [f"{self.name}:{number}" for number in range(33)]
        bad = {"locks": many, "locks/1/name": [self.a, self.a], "locks/1/mode": [self.a, {"name": self.b, "mode": "x"}],
               "locks/1/capacity": [self.a, {"name": self.b, "mode": "permit"}], "locks/0/name": [{"mode": "shared"}, self.a]}
        for where, locks in bad.items():
            for ask in (self.paddock.acquire, self.paddock.hold):
                with self.subTest(where), self.assertRaises(InvalidRequest) as refused:
                    ask(locks)
                self.assertEqual(refused.exception.fields["pointer"], "/" + where)
        for locks in ({"name": self.a}, {self.a, self.b}, (name for name in many), [self.a, 1]):
            for ask in (self.paddock.acquire, self.paddock.hold):
                with self.subTest(type(locks)), self.assertRaises(TypeError):
                    ask(locks)
        grant = self.paddock.acquire([self.a, self.b])
        with self.assertRaises(InvalidRequest):
            self.paddock.renew([self.a, self.b, self.name], grant.lease_id)
        self.assertEqual(self.kinds(many[0]), [])

    def test_an_answer_with_other_locks_is_not_accepted(self):
        exchange = self.paddock._transport.exchange

        def fewer(*args):
            response = exchange(*args)
            response.content = response.content.replace(self.b.encode(), b"other")
            return response

        with mock.patch.object(self.paddock._transport, "exchange", fewer), self.assertRaises(PaddockError) as lost:
            self.paddock.acquire([self.a, self.b])
        self.assertEqual(lost.exception.code, "unknown_outcome")


class Holding(SetTest):
    def test_renewals_keep_all_and_the_end_releases_all(self):
        with self.paddock.hold([self.b, self.a], ttl=3) as lease:
            with mock.patch.object(self.paddock, "renew", wraps=self.paddock.renew) as renew:
                eventually(lambda: renew.call_count >= 8, "it is not renewed")
            lease.check()
            self.assertEqual((lease.name, lease.tokens), (self.a, {self.a: lease.token, self.b: lease.token}))
            self.assert_states("held", "held")
            self.assertEqual(self.paddock.lock(self.b)["fencing_token"], lease.token)
        self.assertEqual(lease.state, "released")
        for name in (self.a, self.b):
            self.assertEqual(self.kinds(name), ["granted", "released"])

    def test_it_waits_and_holds_nothing_meanwhile(self):
        first, leases = self.paddock.hold(self.b), []
        waiting = threading.Thread(target=lambda: leases.append(self.client(url()).hold([self.a, self.b], wait=BOUND)), daemon=True)
        waiting.start()
        self.await_waiters(1, self.a)
        self.assert_states("free", "held")
        first.release()
        waiting.join(BOUND)
        with leases[0] as lease:
            self.assertGreater(lease.token, first.token)
            self.assertGreater(lease.remaining(), 20)

    def test_a_long_wait_keeps_its_places(self):
        first, leases, calls = self.paddock.hold(self.b), [], []
        other = self.client(url())

        def acquire(name, **ask):
            if ask["wait"]:  # not the first try
                calls.append((ask["lease_id"], ask["keep_place"]))
            return Paddock.acquire(other, name, **ask)

        with mock.patch.object(type(other), "longest_wait", 0.2), mock.patch.object(other, "acquire", acquire):
            waiting = threading.Thread(target=lambda: leases.append(other.hold([self.a, self.b], wait=BOUND)), daemon=True)
            waiting.start()
            eventually(lambda: len(calls) > 3, "it does not call again")
            first.release()
            waiting.join(BOUND)
        leases[0].release()
        self.assertEqual(set(calls), {(calls[0][0], True)})
        self.assertEqual(self.kinds(self.a), ["queued", "granted", "released"])

    def test_the_end_of_the_wait_leaves_no_place(self):
        with self.paddock.hold(self.b), self.assertRaises(LockHeld):
            self.paddock.hold([self.a, self.b], wait=0.2, task_id="another")
        self.assertEqual(self.kinds(self.a), ["queued", "dequeued"])
        self.assertEqual(self.paddock.lock(self.b)["waiters"], 0)

    def test_an_interrupt_leaves_neither_places_nor_leases(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            self.paddock.hold([self.a, self.b], on_acquired=interrupt)
        with self.paddock.hold(self.b), mock.patch.object(type(self.paddock), "longest_wait", 0.2):
            with mock.patch.object(self.paddock, "acquire", side_effect=self.once_then_interrupt(self.paddock.acquire)):
                with self.assertRaises(KeyboardInterrupt):
                    self.paddock.hold([self.a, self.b], wait=BOUND, task_id="another")
        self.assertEqual(self.kinds(self.a), ["granted", "released", "queued", "dequeued"])
        self.assert_states("free", "free")

    def once_then_interrupt(self, acquire):
        calls = []

        def call(*args, **ask):
            calls.append(ask["wait"])
            if len(calls) > calls.count(0) + 1:  # a try does not wait
                raise KeyboardInterrupt
            return acquire(*args, **ask)

        return call

    def test_after_a_lost_response_it_is_the_same_lease(self):
        proxy = self.proxy()
        proxy.cut(1)
        with self.client(proxy.url).hold([self.a, self.b]) as lease:
            self.assertEqual(self.paddock.lock(self.b)["fencing_token"], lease.token)
            proxy.cut(1)
        for name in (self.a, self.b):
            self.assertEqual(self.kinds(name), ["granted", "released"])

    def test_an_unknown_outcome_is_cleaned_up(self):
        proxy = self.proxy()
        proxy.cut(2)  # the acquire, and its repetition
        with self.assertRaises(PaddockError) as failed, mock.patch("paddock._transport.MAX_IDLE", 0):
            self.client(proxy.url).hold([self.a, self.b], retry=0.01)
        self.assertTrue(failed.exception.transient, failed.exception)
        eventually(lambda: self.kinds(self.a) == self.kinds(self.b) == ["granted", "released"], "a lease remains")

    def test_the_loss_of_one_is_the_loss_of_all(self):
        losses = []
        with self.assertRaises(LeaseLost) as lost, self.paddock.hold([self.a, self.b], ttl=600, on_lost=losses.append) as lease:
            self.paddock.revoke(self.b, token=lease.token, reason="db-3 is being replaced")
            self.assertTrue(lease.lost.wait(BOUND))
            self.assertGreater(lease.deadline, self.paddock.clock(), "it was lost at its deadline only")
        self.assertEqual((lost.exception.fields["ended"], lost.exception.fields["reason"]), ("revoked", "db-3 is being replaced"))
        eventually(lambda: losses, "on_lost was not called")
        self.assert_states("free", "free")

    def test_they_end_together_without_renewals(self):
        proxy = self.proxy()
        lease = self.client(proxy.url).hold([self.a, self.b], ttl=1.5)
        proxy.refuse()
        self.assertTrue(lease.lost.wait(BOUND))
        self.paddock.hold([self.b, self.a], wait=BOUND).release()
        for name in (self.a, self.b):
            self.assertEqual([kind for kind in self.kinds(name) if kind != "queued"], ["granted", "expired", "granted", "released"])

    def test_a_child_process_gets_all_tokens(self):
        locks = [{"name": self.b, "mode": "permit", "capacity": 2}, self.a]
        script = 'echo "$PADDOCK_LOCK $PADDOCK_FENCING_TOKEN ${PADDOCK_SLOT-no};$PADDOCK_LOCKS;$PADDOCK_FENCING_TOKENS;${PADDOCK_SLOTS-no}"'
        read, write = os.pipe()
        with self.paddock.hold(self.name) as single, self.paddock.hold(locks) as lease, os.fdopen(read) as output:
            environment = {**os.environ, "PADDOCK_SLOTS": "x=1", "PADDOCK_SLOT": "1"}
            single.run(["sh", "-c", script], stdout=write, env=environment)
            lease.run(["sh", "-c", script], stdout=write, env=environment)
            os.close(write)
            self.assertEqual(output.read().splitlines(), [
                f"{self.name} {single.token} no;{self.name};{self.name}={single.token};no",
                f"{self.a} {lease.token} no;{self.a} {self.b};{self.a}={lease.token} {self.b}={lease.tokens[self.b]};{self.b}=1",
            ])


class Fencing(SetTest):
    def test_the_fences_of_several_resources_are_passed_in_one_order(self):
        database, other = mock.Mock(), {"b": 2, "a": 1}
        fence(database, other)
        self.assertEqual([call.args for call in database.execute.call_args_list],
                         [("select paddock_fence(%s, %s)", ("a", 1)), ("select paddock_fence(%s, %s)", ("b", 2))])


class InSession(SetTest):
    def test_a_session_keeps_all_and_its_end_is_theirs(self):
        with self.paddock.hold_session(ttl=3) as session:
            with mock.patch.object(self.paddock, "renew", side_effect=AssertionError("a lease was renewed")):
                lease = self.paddock.hold([self.b, self.a], session=session)
                self.assertFalse(lease.lost.wait(4.5))
            self.assertEqual((lease.deadline, lease.tokens), (session.deadline, {self.a: lease.token, self.b: lease.token}))
            self.assertEqual(self.paddock.session(session.ref)["leases"], 2)
            self.assertEqual(self.paddock.lock(self.a)["leases"][0]["session"], session.ref)
            released = self.paddock.hold([self.name, self.name + ":c"], session=session)
            released.release()
            self.assertEqual((released.state, lease.state), ("released", "held"))
        self.assertRaises(LeaseLost, lease.check)
        for name in (self.a, self.b):
            self.assertEqual(self.kinds(name), ["granted", "released"])

    def test_the_loss_of_one_is_found_and_other_leases_stay(self):
        with self.paddock.hold_session(ttl=60) as session:
            single = self.paddock.hold(self.name, session=session)
            kept = self.paddock.hold([self.name + ":c", self.name + ":d"], session=session)
            lost = self.paddock.hold([self.a, self.b], session=session)
            self.paddock.revoke(self.b, token=lost.token, reason="stuck")
            self.assertTrue(lost.lost.wait(BOUND))
            self.assertEqual(lost.error.fields["reason"], "stuck")
            self.assertFalse(kept.lost.wait(3.5))
            for lease in (single, kept, session):
                lease.check()
        self.assert_states("free", "free")


class Transfers(SetTest):
    def test_transfers_in_opposite_orders_finish_and_lose_nothing(self):
        accounts = [self.a, self.b]
        with self.paddock.hold(accounts) as lease:
            for name in accounts:
                self.paddock.write_fenced(name, lock=name, token=lease.tokens[name], value=100)

        def transfer(number):
            client, chance = self.client(url()), random.Random(number)
            for _ in range(5):
                payer, payee = (self.a, self.b) if number % 2 else (self.b, self.a)
                with client.hold([payer, payee], wait=BOUND) as lease:
                    amount = chance.randrange(10)
                    balances = {name: client.read_fenced(name)["value"] for name in accounts}
                    for name, change in ((payer, -amount), (payee, amount)):
                        lease.check()
                        client.write_fenced(name, lock=name, token=lease.tokens[name], value=balances[name] + change)

        in_threads([lambda number=number: transfer(number) for number in range(6)])
        self.assertEqual(sum(self.paddock.read_fenced(name)["value"] for name in accounts), 200)
        for name in accounts:
            self.assertEqual(self.kinds(name).count("granted"), 31)
