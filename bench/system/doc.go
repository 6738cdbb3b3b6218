// Package system says what the bench wants of each system that it measures, so that one
// workload drives them all.
//
// The systems themselves are in packages beside this one, a package each. They start real
// servers, from what is installed, with the durability that they have when used in earnest.
package system
