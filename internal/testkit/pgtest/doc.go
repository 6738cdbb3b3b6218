// Package pgtest gives each test its own PostgreSQL database. Only tests may import it.
//
// The database is a clone of a template that was migrated once, so it costs about 20 ms. It is dropped after the
// test, unless the test failed: then it is kept and its name is logged.
//
// # The server
//
// One server serves all tests of a process, which prints the server on standard error:
//
//  1. the one at PADDOCK_TEST_DATABASE_URL (postgres://…), whose role must be allowed to create databases and roles;
//     several test processes may share it;
//  2. a private server from the installed programs, see package pgserver.
//
// Without either of these the test fails with the command that installs a server. It is never skipped, because a skipped
// test looks like one that passed.
//
// # The end
//
// A package with database tests calls Main from its TestMain, so that the server ends with the tests:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Without it a private server still ends with the process on Linux, but its directory stays until the next server
// starts.
package pgtest
