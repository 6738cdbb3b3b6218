// Package workload is what the clients do, the same with each system: take and give back
// locks of their own, pass one on, hold many and renew them. While it measures it checks that
// nobody has a lock that somebody else has, and that tokens grow with each grant.
//
// A client does one turn after the other, as fast as it is answered. What is done in the first
// moments, the warm-up, is not counted.
package workload
