package main

import "runtime"

// roominess is how much the heap of a service may grow beyond what Go would let it, in
// bytes, before it is collected; twice that, since Go collects when what lived has doubled.
const roominess = 64 << 20

// roomy has garbage be collected less often, until the function that it returns is called.
// A service has a small heap and makes much garbage: collected whenever the heap has doubled,
// a seventh of its time would go there. It reserves memory that is never touched, and so
// costs none. Whoever sets GOGC or GOMEMLIMIT has it his way.
func roomy(env lookup) (done func()) {
	room := make([]byte, heapRoom(env))
	return func() { runtime.KeepAlive(room) }
}

func heapRoom(env lookup) int {
	for _, own := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, set := env(own); set {
			return 0
		}
	}
	return roominess
}
