// Package zookeeper measures the lock recipe of ZooKeeper's documentation: each who wants the
// lock makes an ephemeral sequence node under it, the lowest has it, and each of the others
// watches the one before its own.
//
// One server from Debian's libzookeeper-java, with the log synced before each answer as it is by
// default. The recipe is written out here, with the nodes that go-zookeeper's Lock makes: that
// one can neither try nor be told to stop waiting. The token is the sequence number.
package zookeeper
