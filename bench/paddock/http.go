package paddock

import (
	"context"

	"github.com/paddock-lock/paddock/bench/system"
)

// HTTP is Paddock over HTTP, with one request per call. Each client has its own connection.
type HTTP struct {
	*Deployment
	SystemName, SystemTitle string // results of Name and Title
}

// Name implements system.System.
func (s *HTTP) Name() string { return s.SystemName }

// Title implements system.System.
func (s *HTTP) Title() string { return s.SystemTitle }

// Start starts the deployment, unless another system has started it.
func (s *HTTP) Start(ctx context.Context, dir string) error { return s.start(ctx, dir) }

// Stop stops the deployment, unless another system still uses it.
func (s *HTTP) Stop() error { return s.stop() }

// Client returns a client of the next replica.
func (s *HTTP) Client(context.Context) (system.Client, error) { return NewClient(s.address()), nil }
