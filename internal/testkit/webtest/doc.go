// Package webtest is a lock service in memory for tests of the admin page, with a clock of its own and a feed of
// events whose connections can be cut. The rules are those of package lock.
package webtest
