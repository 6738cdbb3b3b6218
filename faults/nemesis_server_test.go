package faults_test

import (
	"context"
	"time"
)

func ofTheServer() []nemesis {
	return []nemesis{
		{"PostgreSQL is killed", 2, server, 100, span{0, time.Second}, killServer},
		{"PostgreSQL is restarted", 1, server, 100, span{0, time.Second}, restartServer},
		{"PostgreSQL hangs", 2, server, 100, forASecond, hangServer},
		{"a backend is killed", 2, server, 100, span{}, killBackend},
	}
}

func killServer(_ context.Context, d *deployment, _ fault) (cure, error) {
	return d.database.start, d.database.host.Kill()
}

func restartServer(ctx context.Context, d *deployment, _ fault) (cure, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.database.start, d.database.host.Shutdown(ctx)
}

func hangServer(_ context.Context, d *deployment, _ fault) (cure, error) {
	goOn := func(context.Context) error { return d.database.host.Resume() }
	return goOn, d.database.host.Pause()
}

func killBackend(ctx context.Context, d *deployment, f fault) (cure, error) {
	return d.database.answers, d.database.killBackend(ctx, f.dice().IntN(maxConnections))
}
