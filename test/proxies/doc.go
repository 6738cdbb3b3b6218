// Package proxies tests waiting calls through nginx, HAProxy and Caddy, which cut them: the waiters keep their places, and
// learn to ask for shorter waits. It contains only tests.
//
// A proxy with its usual time-outs, and a hundred waiters for five minutes:
//
//	go test -C test ./proxies -count=1 -timeout 20m -run TestWaitersKeepTheirOrder -proxies.cut=0 -proxies.waiters=100 -proxies.hold=5m
package proxies
