"""Outages, which are not losses before the deadline, and losses, which come before the next grant."""

import threading
import time

from service import BOUND, ServiceTest, eventually, in_threads

from paddock import LeaseLost


class Losing(ServiceTest):
    def test_a_revoked_lease_is_lost_at_the_next_renewal(self):
        losses, states = [], []
        lease = self.paddock.hold(self.name, ttl=6, on_lost=losses.append, on_state=lambda *state: states.append(state))
        self.paddock.revoke(self.name, token=lease.token, reason="out")
        self.assertTrue(lease.lost.wait(BOUND))
        with self.assertRaises(LeaseLost) as lost:
            lease.check()
        self.assertEqual((lost.exception.fields["ended"], lost.exception.fields["reason"]), ("revoked", "out"))
        eventually(lambda: states, "on_state was not called")
        self.assertEqual((losses, states), ([lease.error], [("lost", lease.error)]))
        self.assertRaises(LeaseLost, lease.release)

    def test_if_the_service_falls_silent_it_is_lost_before_the_next_grant(self):
        proxy = self.proxy()
        client = self.client(proxy.url)
        names = [self.new_name() for _ in range(20)]
        losses, leases, others = set(), {}, {}

        def hold(name):
            leases[name] = client.hold(name, ttl=3, on_lost=lambda _: losses.add(name))
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
        proxy.refuse()
        in_threads([lambda lease=lease: self.assertRaises(LeaseLost, lease.release) for lease in leases.values()])

    def test_an_outage_shorter_than_the_deadline_does_not_stop_the_work(self):
        for kind in ("fall_silent", "refuse"):
            with self.subTest(kind):
                proxy, name, states = self.proxy(), self.new_name(), []
                at_risk, held = threading.Event(), threading.Event()

                def on_state(state, _):
                    states.append(state)
                    {"at_risk": at_risk, "held": held}.get(state, threading.Event()).set()

                with self.client(proxy.url).hold(name, ttl=4, on_state=on_state) as lease:
                    getattr(proxy, kind)()
                    self.assertTrue(at_risk.wait(BOUND))
                    lease.check()
                    self.assertTrue(lease.error.transient)
                    proxy.heal()
                    self.assertTrue(held.wait(BOUND))
                    lease.check()
                self.assertEqual(states, ["at_risk", "held"])
                self.assertEqual(self.kinds(name), ["granted", "released"])

    def test_a_block_that_ignores_the_loss_raises_it_at_its_end(self):
        proxy = self.proxy()
        with self.assertRaises(LeaseLost):
            with self.client(proxy.url).hold(self.name, ttl=1) as lease:
                proxy.refuse()
                self.assertTrue(lease.lost.wait(BOUND))
