// Package system defines the interface of the measured systems, so that the same workloads drive all of
// them.
//
// The systems are in packages beside this one. They start real, installed servers with the durability
// settings of production use.
package system
