package paddock

import (
	"context"

	"github.com/paddock-lock/paddock/bench/system"
)

// HTTP is Paddock as anybody reaches it, by one request a call, with a lean client and a
// connection for each of them.
type HTTP struct {
	*Deployment
	SystemName, SystemTitle string // what to call it
}

// Name is what it is called in files.
func (s *HTTP) Name() string { return s.SystemName }

// Title is what it is called in tables.
func (s *HTTP) Title() string { return s.SystemTitle }

// Start starts the deployment, unless another system has.
func (s *HTTP) Start(ctx context.Context, dir string) error { return s.start(ctx, dir) }

// Stop stops the deployment, unless another system needs it.
func (s *HTTP) Stop() error { return s.stop() }

// Client returns one of the next replica.
func (s *HTTP) Client(context.Context) (system.Client, error) { return NewClient(s.address()), nil }
