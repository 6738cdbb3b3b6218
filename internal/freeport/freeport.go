// Package freeport finds ports for servers that tests and benchmarks start.
//
// The usual way, to listen on port 0, to close the listener and to hand its port on, has two races: until the server
// listens, an outgoing connection of any process can get the port, and an attempt to connect to the server can get it
// as its own source and then connects to itself, so that the server seems to be ready. Ports below the range of
// outgoing connections have neither.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Outgoing connections start at 32768 on Linux and at 49152 elsewhere.
const (
	least    = 12000
	ports    = 20000
	attempts = 100
)

// Find returns a port of 127.0.0.1 on which nothing listens. Another server may still take it first.
func Find() (int, error) {
	var err error
	for range attempts {
		port := least + rand.IntN(ports)
		listener, errListen := net.Listen("tcp", Address(port))
		if errListen == nil {
			return port, listener.Close()
		}
		err = errListen
	}
	return 0, fmt.Errorf("no free port in %d attempts: %w", attempts, err)
}

// Address returns the address of a port.
func Address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
