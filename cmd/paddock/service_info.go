package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/wire"
)

type serviceCommand struct {
	serviceFlags
	retryFlags
	outputFlags
}

func (serviceCommand) Help() string {
	return `Asks a replica for its replicas, for each database with its newest epoch, its server, standbys and tables, and for the
settings that are not the defaults. It also answers while a database is away: with what it has read last, and how old
that is. The names of -o name are those of the hosts of the replicas. The key needs the role admin for all names.

    paddock service
    paddock service -o json | jq '.databases[].epoch.grants_paused_ms'`
}

func (c *serviceCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, locks.ServiceInfo)
	if err != nil {
		return err
	}
	var names []string
	for _, d := range found.Databases {
		names = append(names, namesIn(d.Replicas, nameOfReplica)...)
	}
	return p.print(c.Output, output{wire: wire.ServiceInfoOf(found), names: names, table: func(t *table) { t.service(found) }})
}

// nameOfReplica returns the host of the replica, or its id.
func nameOfReplica(r paddock.ReplicaInfo) string { return cmp.Or(r.Host, r.ID) }

// service adds how the service is.
func (t *table) service(s paddock.ServiceInfo) {
	for _, d := range s.Databases {
		if d.Cell != "" {
			t.text("Cell " + d.Cell)
		}
		t.database(d)
	}
	given := slices.DeleteFunc(slices.Clone(s.Settings), func(s paddock.Setting) bool { return s.Source == "default" })
	if len(given) > 0 {
		t.head("SETTING", "VALUE", "FROM")
	}
	for _, one := range given {
		t.row(one.Name, cmp.Or(one.Value, none), cmp.Or(one.Place, one.Source))
	}
}

// database adds what is known of the database.
func (t *table) database(d paddock.DatabaseInfo) {
	if d.Problem != "" {
		t.field("Problem:", d.Problem)
	}
	if d.AsOf.IsZero() {
		return
	}
	if d.Problem != "" {
		t.field("What follows is:", short(d.Age)+" old")
	}
	t.field("Epoch:", fmt.Sprintf("%d, since %s: %s", d.Epoch.Number, local(d.Epoch.BeganAt), d.Epoch.Reason))
	t.field("Grants:", grantsText(d))
	if s := d.Server; s.Version != "" {
		role := "primary"
		if s.Standby {
			role = "standby, accepts no writes"
		}
		t.field("Server:", fmt.Sprintf("PostgreSQL %s, %s, %s, since %s", s.Version, role, cmp.Or(s.Address, "on a socket"), local(s.StartedAt)))
		t.field("Commits wait for:", cmp.Or(s.SynchronousStandbys, "no standby"))
	}
	oldest := "none yet"
	if !d.OldestEvent.IsZero() {
		oldest = "since " + local(d.OldestEvent)
	}
	t.field("Events:", oldest+", kept for "+durationText(d.EventRetention))
	if len(d.Tables) > 0 {
		sum := int64(0)
		for _, table := range d.Tables {
			sum += table.Bytes
		}
		t.field("Tables:", fmt.Sprintf("%s; the largest is %s, %s", paddock.SizeText(sum), d.Tables[0].Name, paddock.SizeText(d.Tables[0].Bytes)))
	}
	for _, hidden := range d.Hidden {
		t.field("Hidden:", hidden)
	}
	t.replicas(d)
	if len(d.Standbys) > 0 {
		t.head("STANDBY", "ADDRESS", "STATE", "SYNC", "BEHIND", "LAG")
		for _, s := range d.Standbys {
			t.row(s.Name, cmp.Or(s.Address, none), s.State, s.Sync, known(s.LagBytes, paddock.SizeText),
				known(s.Lag, time.Duration.String))
		}
	}
}

// grantsText says whether grants are paused. While the database is away, nothing is known of that.
func grantsText(d paddock.DatabaseInfo) string {
	text := "not paused"
	if d.Problem != "" {
		text = "unknown"
	} else if left := d.GrantsPaused(); left > 0 {
		text = fmt.Sprintf("paused for another %s, until %s", short(left), local(d.Epoch.GrantsPausedUntil))
	}
	if d.Epoch.Quorum {
		text += "; a quorum is required"
	}
	return text
}

// known returns the text of a value, or none for nil.
func known[T any](v *T, text func(T) string) string {
	if v == nil {
		return none
	}
	return text(*v)
}

// replicas adds the replicas of the database.
func (t *table) replicas(d paddock.DatabaseInfo) {
	t.head("REPLICA", "ID", "STATE", "LAST HEARTBEAT", "UP", "VERSION", "CONNECTIONS", "WAITERS", "STREAMS")
	for _, r := range d.Replicas {
		state, up := r.State(d), none
		if state == "alive" {
			up = short(d.AsOf.Sub(r.StartedAt) + d.Age)
		}
		t.row(nameOfReplica(r), r.ID, state, short(d.AsOf.Sub(r.BeatAt)+d.Age)+" ago", up, cmp.Or(r.Version, none),
			strconv.Itoa(r.Connections), strconv.Itoa(r.Waiters), strconv.Itoa(r.Streams))
	}
}
