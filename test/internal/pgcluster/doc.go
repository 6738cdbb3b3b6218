// Package pgcluster runs a primary and two standbys, and fails over between them. It needs pg_basebackup beside the
// server's programs.
//
// # Clusters
//
// A Cluster has three nodes named a, b and c; a is the first primary. Each node is a server with its own directory
// and port, on loopback and with a password. The package itself connects through Unix sockets. [Cluster.URL] names
// all three nodes, so that clients find the one that accepts writes. The servers end with this process.
//
// All nodes have the same synchronous_standby_names, which only a primary obeys: with "ANY 1 (a, b, c)" each commit
// waits for one of the other two.
//
// # Fail-over
//
// [Cluster.Promote] is the correct procedure for that setting. First it stops replication to both standbys, so that
// an old primary that is still alive confirms no commit. Then it promotes the standby that has received the most,
// which has every confirmed commit. Then the other standby follows it. [Cluster.Rejoin] makes the old primary a
// standby. If one standby is unreachable, Promote refuses, because that standby alone may have a confirmed commit.
// [Cluster.Switchover] is the planned change, without a crash.
//
// [Node.Promote] promotes a standby as it is, for tests of the consequences.
//
// # Failures
//
// [Node.Kill] stops a node; after [Node.Cut] a standby receives nothing.
//
// [Cluster.Backup] and [Cluster.Restore] bring back an earlier state of the primary.
//
// Every step fails after [StepTimeout].
package pgcluster
