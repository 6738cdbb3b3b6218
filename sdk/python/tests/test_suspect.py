"""Leases with on_expiry="hold": after a loss the lock is suspect until an operator has looked at the work."""

import pathlib
import tempfile

from service import BOUND, ServiceTest, eventually, in_threads, url
from test_aio import AioTest, in_loop

from paddock import InvalidRequest, LeaseLost, LockHeld, aio

STAYS = {"on_expiry": "hold", "ttl": 1}
LOOK = "an operator has looked at the work and revokes the lease"


class Suspect(ServiceTest):
    def await_suspect(self):
        """Waits for the event that tells so."""
        eventually(lambda: "suspected" in self.kinds(), "the lock is not suspect")

    def end_as_operator(self):
        self.paddock.revoke(self.name, token=self.paddock.lock(self.name)["fencing_token"], reason="the state is sound")

    def suspect(self, **options):
        """Makes the lock suspect and returns its lease."""
        lease = self.paddock.acquire(self.name, holder="worker-1", on_expiry="hold", ttl=0.1, **options)
        self.await_suspect()
        return lease

    def test_a_lost_lease_is_not_released_although_the_service_can_be_reached_again(self):
        def block(client, lose):
            with client.hold(self.name, **STAYS) as lease:
                lose(lease)

        def release(client, lose):
            lease = client.hold(self.name, **STAYS)
            lose(lease)
            lease.release()

        def several(client, lose):
            with client.hold([self.name, self.name + ":b"], **STAYS) as lease:
                lose(lease)

        def once(client, lose):
            client.once(self.name, lose, at_least=3600, **STAYS)

        def fails(client, lose):
            with client.hold(self.name, **STAYS) as lease:
                lose(lease)
                lease.check()

        for run in (block, release, several, once, fails):
            with self.subTest(run.__name__):
                self.name, proxy = self.new_name(), self.proxy()

                def lose(lease):
                    proxy.refuse()
                    self.assertTrue(lease.lost.wait(BOUND))
                    self.await_suspect()
                    proxy.heal()

                with self.assertRaises(LeaseLost) as raised:
                    run(self.client(proxy.url), lose)
                self.assertIn(LOOK, raised.exception.detail)
                self.assertEqual(self.kinds(), ["granted", "suspected"])
                self.end_as_operator()
                self.paddock.hold(self.name).release()

    def test_work_that_ends_in_time_releases_the_lease_also_if_it_fails(self):
        self.paddock.hold(self.name, **STAYS).release()
        with self.assertRaises(KeyError), self.paddock.hold(self.name, **STAYS):
            raise KeyError("mine")
        self.assertEqual(self.kinds(), ["granted", "released"] * 2)

    def test_another_client_is_told_or_waits_until_an_operator_ends_it(self):
        self.suspect()
        with self.assertRaises(LockHeld) as raised:
            self.paddock.hold(self.name)
        self.assertEqual((raised.exception.holder, raised.exception.suspect), ("worker-1", True))
        self.assertRegex(raised.exception.detail, "has not renewed it in time, so it is suspect: .* an operator has looked")

        def operator():
            self.await_waiters(1)
            self.end_as_operator()

        in_threads([lambda: self.client(url()).hold(self.name, wait=None).release(), operator])

    def test_a_late_renewal_is_in_time(self):
        lease = self.suspect()
        renewed = self.paddock.renew(self.name, lease.lease_id, ttl=60)
        self.assertEqual((renewed.token, self.paddock.lock(self.name)["state"]), (lease.token, "held"))
        self.paddock.release(self.name, lease.lease_id)
        self.assertEqual(self.paddock.lock(self.name)["state"], "free")

    def test_the_next_process_goes_on_with_the_lease_in_the_file(self):
        with tempfile.TemporaryDirectory(prefix="paddock-") as folder:
            file = pathlib.Path(folder, "lease")
            lease = self.suspect()
            file.write_text(f'{{"locks":["{self.name}"],"lease_id":"{lease.lease_id}","holder":"worker-1"}}')
            with self.paddock.hold(self.name, on_expiry="hold", ttl=60, lease_id_file=file) as next_lease:
                self.assertEqual((next_lease.token, self.paddock.lock(self.name)["state"]), (lease.token, "held"))

    def test_it_is_refused_in_a_session_with_the_name_of_the_option(self):
        with self.paddock.hold_session() as session, self.assertRaises(InvalidRequest) as raised:
            self.paddock.hold(self.name, session=session, on_expiry="hold")
        self.assertRegex(raised.exception.detail, "^on_expiry ")


class InAsyncio(AioTest):
    @in_loop
    async def test_a_lost_lease_is_not_released(self):
        async def block(client, lose):
            async with client.hold(self.name, **STAYS) as lease:
                await lose(lease)
                await lease.lost.wait()

        async def release(client, lose):
            lease = await client.hold(self.name, **STAYS)
            await lose(lease)
            await lease.release()

        async def once(client, lose):
            await client.once(self.name, lose, at_least=3600, **STAYS)

        for run in (block, release, once):
            self.name, proxy = self.new_name(), self.proxy()

            async def lose(lease):
                proxy.refuse()
                try:
                    await lease.lost.wait()
                finally:
                    await self.until(lambda: "suspected" in self.kinds(), "the lock is not suspect")
                    proxy.heal()

            async with aio.Paddock(proxy.url) as client:
                with self.assertRaises(LeaseLost) as raised:
                    await run(client, lose)
            self.assertIn(LOOK, raised.exception.detail)
            self.assertEqual(self.kinds(), ["granted", "suspected"])
