// Package pgcluster runs a primary and two standbys from the PostgreSQL programs that
// are installed, and fails over from one to another.
//
// # What a Cluster is
//
// Three nodes called a, b and c, of which a begins as the primary. Each is a server
// in a directory and with a port of its own, on loopback and with a password; the
// package itself talks to them over Unix sockets. [Cluster.URL] names all three, so
// that clients find the one that takes writes. The servers end with this process.
//
// All have the same synchronous_standby_names, for only a primary heeds them: with
// "ANY 1 (a, b, c)" each commit waits for one of the other two.
//
// # Failing over
//
// [Cluster.Promote] is the routine as it must be for that setting: first no standby
// receives any more, so the old primary, should it live, confirms nothing to anybody;
// then the one that has received the most is promoted, so whatever was confirmed is
// on it; then the other one follows it. [Cluster.Rejoin] makes the old primary a
// standby. With one standby out of reach Promote refuses: what was confirmed may be
// there alone. [Cluster.Switchover] is the planned change, in which nothing is killed.
//
// [Node.Promote] promotes a standby as it is. It is for tests of what happens then.
//
// # Making things worse
//
// [Node.Kill], [Node.Pause], and [Node.Cut], after which a standby receives nothing.
// To pause a standby is no cut: the kernel takes what the primary sends, and the
// standby applies it later, even when the primary is long dead.
//
// [Cluster.Backup] and [Cluster.Restore] put an earlier state in the primary's place.
//
// Every step has an end: what does not answer in [StepTimeout] is an error.
package pgcluster
