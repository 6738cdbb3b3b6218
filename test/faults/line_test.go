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

// A line is a way through toxiproxy on which things can go wrong.
type line struct {
	*entrance // the far end
	proxy     *toxiproxy.Proxy
}

// A direction is that of what is sent on a line.
type direction string

// The directions, as toxiproxy calls them: from who dials, and to who dials.
const (
	requests direction = "upstream"
	answers  direction = "downstream"
)

func newLine(name string) (*line, error) {
	far, err := newEntrance()
	if err != nil {
		return nil, err
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &line{entrance: far, proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", far.address)}
	if err := l.proxy.Start(); err != nil {
		return nil, errors.Join(err, far.close())
	}
	return l, nil
}

// near returns the address at which the line begins, host:port.
func (l *line) near() string { return l.proxy.Listen }

func (l *line) close() error {
	l.proxy.Stop()
	return l.entrance.close()
}

// A toxic is what goes wrong on a line: one of toxiproxy's, with its attributes.
type toxic struct {
	kind       string
	direction  direction
	attributes map[string]int
}

// poison puts the toxic on the line. The cure takes it away.
func (l *line) poison(x toxic) (cure, error) {
	name := x.kind + " of " + string(x.direction)
	described, err := json.Marshal(map[string]any{
		"name": name, "type": x.kind, "stream": string(x.direction), "toxicity": 1, "attributes": x.attributes,
	})
	if err != nil {
		return nil, err
	}
	if _, err := l.proxy.Toxics.AddToxicJson(bytes.NewReader(described)); err != nil {
		return nil, fmt.Errorf("%s on the line of %s: %w", name, l.proxy.Name, err)
	}
	return func(ctx context.Context) error { return l.proxy.Toxics.RemoveToxic(ctx, name) }, nil
}
