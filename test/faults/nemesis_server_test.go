package faults_test

import (
	"context"
	"time"
)

// The ways in which PostgreSQL crashes.
const (
	serverKilled  = "PostgreSQL is killed"
	serverStopped = "PostgreSQL is stopped at once"
	backendKilled = "a backend is killed"
)

// awaitsLull reports whether the fault waits for a lull of the load: two of three crashes
// of PostgreSQL do.
func (f fault) awaitsLull() bool {
	return (f.name == serverKilled || f.name == serverStopped || f.name == backendKilled) && f.seed%3 != 0
}

func serverNemeses() []nemesis {
	return []nemesis{
		{serverKilled, 2, server, 100, durationRange{0, time.Second}, killServer},
		{serverStopped, 2, server, 100, durationRange{0, time.Second}, stopServerAtOnce},
		{"PostgreSQL is restarted", 1, server, 100, durationRange{0, time.Second}, restartServer},
		{"PostgreSQL hangs", 2, server, 100, aboutASecond, hangServer},
		{backendKilled, 2, server, 100, durationRange{}, killBackend},
	}
}

func killServer(_ context.Context, d *deployment, _ fault) (undoFunc, error) {
	return d.database.start, d.database.host.Kill()
}

// stopServerAtOnce has PostgreSQL end without a checkpoint, so that it recovers when it
// starts.
func stopServerAtOnce(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return d.database.start, d.database.host.StopAtOnce(ctx)
}

func restartServer(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return d.database.start, d.database.host.Shutdown(ctx)
}

func hangServer(_ context.Context, d *deployment, _ fault) (undoFunc, error) {
	goOn := func(context.Context) error { return d.database.host.Resume() }
	return goOn, d.database.host.Pause()
}

func killBackend(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	return d.database.answers, d.database.killBackend(ctx, f.rng().IntN(maxConnections))
}
