package webtest

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock"
)

// Info returns how a service with three cells is: main is well, with a replica that has died; spare has paused grants
// after a fail-over, and shows no standbys; old is away.
func Info(context.Context) paddock.ServiceInfo {
	now, behind, lag := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), int64(5<<20), 42*time.Millisecond
	replica := func(id, host string, beat time.Duration) paddock.ReplicaInfo {
		return paddock.ReplicaInfo{
			ID: id, Host: host, Version: "1.2.3", StartedAt: now.Add(-26 * time.Hour), BeatAt: now.Add(-beat), Alive: beat < time.Second,
			Connections: 120, Waiters: 17, Streams: 4,
		}
	}
	self := replica("3f0c2a9e51d7b864", "paddock-0", 300*time.Millisecond)
	self.Self = true
	well := paddock.DatabaseInfo{
		Cell: "main", AsOf: now,
		Epoch:    paddock.EpochInfo{Number: 1, BeganAt: now.Add(-240 * time.Hour), Reason: "installed", Timeline: "00000001", Quorum: true},
		Replicas: []paddock.ReplicaInfo{self, replica("0a7d1fe2b3c4d5e6", "paddock-1", 12*time.Minute), replica("1111111111111111", Hostile, 0)},
		Server: paddock.ServerInfo{
			Version: "17.5", Address: "10.0.0.5:5432", StartedAt: now.Add(-240 * time.Hour), SynchronousStandbys: "ANY 1 (a, b)",
		},
		Standbys: []paddock.StandbyInfo{
			{Name: "a", Address: "10.0.0.6", State: "streaming", Sync: "quorum", LagBytes: &behind, Lag: &lag}, {Name: Hostile, State: "startup"},
		},
		Tables:      []paddock.TableInfo{{Name: "event_batches", Bytes: 3 << 30}, {Name: "records", Bytes: 20_000}},
		OldestEvent: now.Add(-7 * 24 * time.Hour), EventRetention: 7 * 24 * time.Hour,
	}
	paused := well
	paused.Cell, paused.Standbys, paused.Replicas = "spare", nil, well.Replicas[:1]
	paused.Epoch = paddock.EpochInfo{
		Number: 2, BeganAt: now.Add(-5 * time.Second), Reason: "the database was failed over", Timeline: "00000002",
		GrantsPausedUntil: now.Add(95 * time.Second),
	}
	paused.Hidden = []string{`The standbys cannot be seen. As a superuser, run: grant pg_monitor to "paddock_app";`}
	away := well
	away.Cell, away.Age, away.Problem = "old", 83*time.Second, "The database does not answer within 2s."
	return paddock.ServiceInfo{
		Settings: []paddock.Setting{
			{Name: "listen", Value: ":8443", Source: "file", Place: "/etc/paddock/paddock.toml:1"}, {Name: "max-ttl", Value: "24h", Source: "default"},
			{Name: "metrics-listen", Source: "default"},
		},
		Databases: []paddock.DatabaseInfo{well, paused, away},
	}
}
