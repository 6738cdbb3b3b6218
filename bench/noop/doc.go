// Package noop is what HTTP costs by itself: a handler on net/http, in a process of its own,
// that answers like Paddock, at the same length, and does nothing. Nothing over net/http is
// faster.
package noop
