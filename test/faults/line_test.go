package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A proxy is a way through toxiproxy on which things can go wrong.
type proxy struct {
	*relay    // the far end
	toxiproxy *toxiproxy.Proxy
}

// A direction is that of what is sent on a line.
type direction string

// The directions, as toxiproxy calls them: from who dials, and to who dials.
const (
	requests direction = "upstream"
	answers  direction = "downstream"
)

func newProxy(name string) (*proxy, error) {
	far, err := newRelay()
	if err != nil {
		return nil, err
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &proxy{relay: far, toxiproxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", far.address)}
	if err := l.toxiproxy.Start(); err != nil {
		return nil, errors.Join(err, far.close())
	}
	return l, nil
}

// listenAddress returns the address at which the line begins, host:port.
func (l *proxy) listenAddress() string { return l.toxiproxy.Listen }

func (l *proxy) close() error {
	l.toxiproxy.Stop()
	return l.relay.close()
}

// A toxic is what goes wrong on a line: one of toxiproxy's, with its attributes.
type toxic struct {
	kind       string
	direction  direction
	attributes map[string]int
}

// addToxic puts the toxic on the line. The cure takes it away.
func (l *proxy) addToxic(x toxic) (undoFunc, error) {
	name := x.kind + " of " + string(x.direction)
	described, err := json.Marshal(map[string]any{
		"name": name, "type": x.kind, "stream": string(x.direction), "toxicity": 1, "attributes": x.attributes,
	})
	if err != nil {
		return nil, err
	}
	if _, err := l.toxiproxy.Toxics.AddToxicJson(bytes.NewReader(described)); err != nil {
		return nil, fmt.Errorf("%s on the line of %s: %w", name, l.toxiproxy.Name, err)
	}
	return func(ctx context.Context) error { return l.toxiproxy.Toxics.RemoveToxic(ctx, name) }, nil
}
