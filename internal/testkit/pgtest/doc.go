// Package pgtest gives each test its own PostgreSQL database. Only tests may import it.
//
// The database is a clone of a template that was migrated once, so it costs about 20 ms. It is dropped after the
// test, unless the test failed: then it is kept and its name is logged.
//
// # The server
//
// All test processes of a run share one server. Each prints it on standard error:
//
//  1. the one at PADDOCK_TEST_DATABASE_URL (postgres://…), whose role must be allowed to create databases and roles;
//     several test processes may share it;
//  2. a shared private server from the installed programs;
//  3. one from programs that were fetched before;
//  4. a container, if Docker runs;
//  5. one from programs that are fetched, which is announced. Package pgserver describes this order.
//
// Without any of these the first test that needs a server ends the process with an error that says what was tried and
// what to do. No test is skipped, because a skipped test looks like one that passed.
//
// The shared server neither syncs nor writes full pages; commits are as in production in all else. A test about
// durability starts one of its own with Server. Databases share roles, sessions and locks, so a query of
// pg_stat_activity or pg_locks must name its database, and a role needs a name of its own.
//
// # The end
//
// A package with database tests calls Main from its TestMain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// The first process that needs the shared server runs its test program once more as a keeper, which starts the server
// and outlives the process. Each process holds a shared lock on a file while it uses the server. The keeper stops the
// server some seconds after no process holds that lock, see folder. If the keeper is killed, the next process starts
// another.
//
// Main also raises the default of -parallel, puts temporary files in memory, the server's among them, and makes garbage
// collections rare: see testmain.
package pgtest
