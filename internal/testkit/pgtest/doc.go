// Package pgtest gives each test a PostgreSQL database of its own.
//
// The database is a clone of a template that the migrations have made once, so
// it costs some 20 ms. It is dropped when the test has passed; that of a failed
// test is kept and its name logged.
//
// # Which server
//
// One server serves all tests of a process. It is, and the process says which
// on its standard error:
//
//  1. the one at PADDOCK_TEST_DATABASE_URL (postgres://…), whose role must be
//     allowed to create databases and roles; several test processes may share it;
//  2. a private one, from the programs that are installed (package postgres);
//  3. a container, where Docker runs and has the image or can get it.
//
// Where there is none the test fails with the command that installs one. It is
// never skipped: a skipped test looks green.
//
// # Ending
//
// A package whose tests need a database hands over its TestMain, so that the
// server ends with the tests:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Without it a private server still dies with the process on Linux, but its
// directory stays until the next one starts.
//
// Only tests may import this package.
package pgtest
