package freeport_test

import (
	"net"
	"testing"

	"github.com/paddock-lock/paddock/internal/freeport"
)

// firstOutgoing is the first port that Linux gives to outgoing connections.
const firstOutgoing = 32768

func TestAFoundPortIsFreeAndNoOutgoingConnectionGetsIt(t *testing.T) {
	t.Parallel()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	if port < 1024 || port >= firstOutgoing {
		t.Errorf("got port %d, want one from 1024 to %d", port, firstOutgoing-1)
	}
	listener, err := net.Listen("tcp", freeport.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
