// Package zookeeper measures the lock recipe from ZooKeeper's documentation: each client creates an
// ephemeral sequence node under the lock, the lowest node is the holder, and each other client watches
// the node before its own.
//
// It runs one server from Debian's libzookeeper-java, which syncs its log before each answer by default.
// The package implements the recipe itself, with the same nodes as go-zookeeper's Lock, because that can
// neither try nor cancel a wait. The token is the sequence number.
package zookeeper
