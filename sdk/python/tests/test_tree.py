"""Trees of locks, in which a lock covers the locks below it."""

import threading

from service import BOUND, ServiceTest, url

from paddock import InvalidRequest, LockHeld, PaddockError, StaleToken


class TreeTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.src, self.file, self.doc = self.name + ":src", self.name + ":src:a", self.name + ":doc"

    def roots(self):
        return [tree["root"] for tree in self.paddock.trees()["trees"]]

    def assert_refused(self, code, call, *args):
        with self.assertRaises(PaddockError) as refused:
            call(*args)
        self.assertEqual((refused.exception.code, refused.exception.status), (code, 409), refused.exception)
        self.assertFalse(refused.exception.transient)
        return refused.exception

    def assert_blocked(self, name, blocker, **ask):
        """Asserts that the lock is refused, because of a lease of the holder worker-1 of the lock blocker."""
        with self.assertRaises(LockHeld) as held:
            self.paddock.acquire(name, **ask)
        self.assertEqual([(at["name"], at["holder"]) for at in held.exception.blockers], [(blocker, "worker-1")])
        self.assertEqual(held.exception.holder, "worker-1")
        self.assertGreater(held.exception.retry_after, 0)

    def hold_in_thread(self, name, granted):
        """Waits for the lock in a thread, which appends the lease to granted."""
        wait = threading.Thread(target=lambda: granted.append(self.client(url()).hold(name, wait=BOUND)), daemon=True)
        wait.start()
        return wait


class Declaring(TreeTest):
    def test_a_tree_is_declared_listed_and_removed(self):
        tree = self.paddock.declare_tree(self.name)
        self.assertEqual((tree["root"], self.paddock.declare_tree(self.name)), (self.name, tree))
        self.assertIn(tree, self.paddock.trees()["trees"])
        self.assertEqual(self.roots(), sorted(self.roots()))
        for _ in range(2):
            self.assertIsNone(self.paddock.remove_tree(self.name))
        self.assertNotIn(self.name, self.roots())
        with self.paddock.hold(self.file), self.paddock.hold(self.name):
            pass  # they are independent

    def test_a_tree_in_use_is_neither_declared_nor_removed(self):
        with self.paddock.hold(self.file):
            self.assertIn(self.file, self.assert_refused("tree_busy", self.paddock.declare_tree, self.name).detail)
            self.assertNotIn(self.name, self.roots())
        self.paddock.declare_tree(self.name)
        with self.paddock.hold(self.file):
            self.assert_refused("tree_busy", self.paddock.remove_tree, self.name)
            self.assertIn(self.name, self.roots())
        self.paddock.remove_tree(self.name)

    def test_trees_do_not_overlap(self):
        self.paddock.declare_tree(self.src)
        for root in (self.name, self.file):
            self.assert_refused("tree_overlaps", self.paddock.declare_tree, root)
        self.paddock.declare_tree(self.doc)
        self.assertEqual([root for root in self.roots() if root.startswith(self.name)], [self.doc, self.src])

    def test_an_invalid_root_is_refused(self):
        for root in (self.name + ":", "", "a b", ".."):
            with self.subTest(root), self.assertRaises(InvalidRequest):
                self.paddock.declare_tree(root)
        with self.assertRaises(InvalidRequest):
            self.paddock.remove_tree("..")

    def test_a_lost_answer_is_an_unknown_outcome(self):
        proxy = self.proxy()
        paddock = self.client(proxy.url)
        for change in (paddock.declare_tree, paddock.remove_tree):
            proxy.cut(1)
            with self.assertRaises(PaddockError) as lost:
                change(self.name)
            self.assertEqual(lost.exception.code, "unknown_outcome")
            change(self.name)
        self.assertNotIn(self.name, self.roots())


class Locking(TreeTest):
    def setUp(self):
        super().setUp()
        self.paddock.declare_tree(self.name)

    def test_a_lease_excludes_those_above_and_below(self):
        with self.paddock.hold(self.src, holder="worker-1") as lease:
            for name in (self.name, self.src, self.file):
                for mode in ("exclusive", "shared"):
                    self.assert_blocked(name, self.src, mode=mode)
            root, below = self.paddock.lock(self.name), self.paddock.lock(self.file)
            self.assertEqual((root["state"], below["state"]), ("free", "free"))
            self.assertEqual([(info["name"], info["fencing_token"]) for info in root["below"]], [(self.src, lease.token)])
            self.assertEqual([(info["name"], info["holder"]) for info in below["above"]], [(self.src, "worker-1")])
            self.paddock.hold(self.doc).release()
        with self.paddock.hold(self.name) as later:
            self.assertGreater(later.token, lease.token)
        self.assertNotIn("below", self.paddock.lock(self.name))

    def test_shared_leases_go_together(self):
        with self.paddock.hold(self.name, mode="shared", holder="worker-1"), self.paddock.hold(self.file, mode="shared"):
            self.assert_blocked(self.src, self.name, mode="exclusive")
        self.paddock.hold(self.src).release()

    def test_permits_are_refused(self):
        with self.assertRaises(InvalidRequest) as refused:
            self.paddock.hold(self.file, mode="permit", capacity=2)
        self.assertEqual(refused.exception.fields["pointer"], "/mode")

    def test_a_waiter_for_a_part_of_the_tree_is_not_overtaken(self):
        first, granted = self.paddock.hold(self.file), []
        src = self.hold_in_thread(self.src, granted)
        self.await_waiters(1, self.src)
        waiter, = self.paddock.queue(self.name)["waiters"]
        self.assertEqual(waiter["name"], self.src)
        with self.assertRaises(LockHeld):
            self.paddock.hold(self.src + ":b")  # free, but below what the waiter waits for
        self.paddock.hold(self.doc).release()
        later, granted_later = self.src + ":b", []
        below = self.hold_in_thread(later, granted_later)
        self.await_waiters(1, later)
        first.release()
        src.join(BOUND)
        self.assertEqual(granted[0].name, self.src)
        self.assertEqual(granted_later, [])
        granted[0].release()
        below.join(BOUND)
        self.assertGreater(granted_later[0].token, granted[0].token)
        granted_later[0].release()

    def test_a_guard_renews_its_lease_and_excludes_until_its_end(self):
        with self.paddock.hold(self.file, ttl=6, holder="worker-1") as lease:
            self.assertFalse(lease.lost.wait(8))
            self.assertEqual((lease.name, lease.tokens), (self.file, {self.file: lease.token}))
            self.assert_blocked(self.name, self.file)
        self.assertEqual(self.kinds(self.file), ["granted", "released"])

    def test_locks_of_a_tree_are_acquired_together(self):
        with self.paddock.hold([self.file, self.doc]) as lease:
            self.assertEqual(sorted(lease.tokens), [self.doc, self.file])
            with self.assertRaises(LockHeld):
                self.paddock.hold(self.name)
        self.paddock.hold(self.name).release()

    def test_a_session_keeps_leases_of_a_tree(self):
        with self.paddock.hold_session() as session:
            lease = self.paddock.hold(self.file, session=session)
            info = self.paddock.session(session.ref)
            self.assertEqual((info["leases"], [lock["name"] for lock in info["locks"]]), (1, [lease.name]))
        self.paddock.hold(self.name).release()

    def test_a_late_write_is_rejected_at_every_level(self):
        def write(lease):
            self.paddock.write_fenced(self.name, lock=lease.name, token=lease.token, value=lease.name)

        below = self.paddock.acquire(self.file)
        write(below)
        self.paddock.revoke(self.file, token=below.token, reason="test")
        with self.paddock.hold(self.name, wait=BOUND) as root:
            write(root)
            self.assertRaises(StaleToken, write, below)
        with self.paddock.hold(self.file) as again:
            write(again)
            self.assertRaises(StaleToken, write, root)
        self.assertEqual(self.paddock.read_fenced(self.name)["value"], self.file)
