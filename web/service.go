package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
)

// serviceRoot is the path of the page of the service.
const serviceRoot = "/ui/service"

// A servicePage shows how the service is, or an error.
type servicePage struct {
	view
	Settings  []paddock.Setting
	Databases []databaseView
}

// A databaseView is a database as the page shows it.
type databaseView struct {
	paddock.DatabaseInfo
	Pause *pause // of grants; nil: there is none, or the database is away
}

func (u *ui) service(w http.ResponseWriter, r *http.Request) {
	p := servicePage{view: u.viewOf(r, "Service", nil)} // a heartbeat is no event
	status := http.StatusOK
	if p.Reader.SignedIn {
		if err := access.CheckAll(r.Context(), access.Admin); err != nil {
			status = p.failed(u.problem(r, err))
		}
	}
	if p.Problem == "" {
		info := u.info(r.Context())
		p.Settings = info.Settings
		for _, d := range info.Databases {
			shown := databaseView{DatabaseInfo: d}
			if d.Problem == "" { // otherwise an operator may have ended the pause since
				shown.Pause = pauseOf(d, p.Reader)
			}
			p.Databases = append(p.Databases, shown)
		}
		p.AsOf = asOfAll(info.Databases)
	}
	u.show(w, r, status, "service", p)
}

// asOfAll returns when the databases were read, or zero if one of them is away: its part of the page says its age.
func asOfAll(all []paddock.DatabaseInfo) (oldest time.Time) {
	for i, d := range all {
		if d.Problem != "" {
			return time.Time{}
		}
		if i == 0 || d.AsOf.Before(oldest) {
			oldest = d.AsOf
		}
	}
	return oldest
}

// Given returns the settings that are not the default.
func (p servicePage) Given() (given []paddock.Setting) {
	for _, s := range p.Settings {
		if s.Source != "default" {
			given = append(given, s)
		}
	}
	return given
}

// Known reports whether the database was ever read.
func (d databaseView) Known() bool { return !d.AsOf.IsZero() }

// Old returns how long ago the database was read.
func (d databaseView) Old() elapsed { return elapsed(d.Age) }

// ago returns how long ago the instant was on the clock of the database.
func (d databaseView) ago(t time.Time) elapsed { return elapsed(d.AsOf.Sub(t) + d.Age) }

// EpochAge returns how long ago the epoch began, ServerUp for how long the server has run, and OldestAge how long ago the
// oldest event happened.
func (d databaseView) EpochAge() elapsed  { return d.ago(d.Epoch.BeganAt) }
func (d databaseView) ServerUp() elapsed  { return d.ago(d.Server.StartedAt) }
func (d databaseView) OldestAge() elapsed { return d.ago(d.OldestEvent) }

// Retention returns for how long events are kept.
func (d databaseView) Retention() string {
	if days := d.EventRetention / (24 * time.Hour); days*24*time.Hour == d.EventRetention {
		return fmt.Sprintf("%d d", days)
	}
	return words(d.EventRetention)
}

// Silent returns how many replicas had stopped to send heartbeats when the database was read.
func (d databaseView) Silent() (n int) {
	for _, r := range d.Replicas {
		if !r.Alive {
			n++
		}
	}
	return n
}

// Alive returns how many replicas were sending heartbeats then.
func (d databaseView) Alive() int { return len(d.Replicas) - d.Silent() }

// Size returns the size of all tables.
func (d databaseView) Size() string {
	sum := int64(0)
	for _, t := range d.Tables {
		sum += t.Bytes
	}
	return paddock.SizeText(sum)
}

// A replicaRow is a replica with its ages.
type replicaRow struct {
	paddock.ReplicaInfo
	Up, Beat elapsed
	State    string // alive, silent or unknown
}

// Class returns the class of the row's colour.
func (r replicaRow) Class() string {
	return map[string]string{"alive": "held", "silent": "suspect", "unknown": "grace"}[r.State]
}

// Rows returns the replicas.
func (d databaseView) Rows() (rows []replicaRow) {
	for _, r := range d.Replicas {
		rows = append(rows, replicaRow{r, d.ago(r.StartedAt), d.ago(r.BeatAt), r.State(d.DatabaseInfo)})
	}
	return rows
}

// A standbyRow is a standby, with its lag in words; empty: unknown.
type standbyRow struct {
	paddock.StandbyInfo
	Bytes, Time string
}

// StandbyRows returns the standbys.
func (d databaseView) StandbyRows() (rows []standbyRow) {
	for _, s := range d.Standbys {
		row := standbyRow{StandbyInfo: s}
		if s.LagBytes != nil {
			row.Bytes = paddock.SizeText(*s.LagBytes)
		}
		if s.Lag != nil {
			row.Time = s.Lag.Round(time.Millisecond).String()
		}
		rows = append(rows, row)
	}
	return rows
}

// A tableRow is a table with its size in words.
type tableRow struct{ Name, Size string }

// TableRows returns the tables.
func (d databaseView) TableRows() (rows []tableRow) {
	for _, t := range d.Tables {
		rows = append(rows, tableRow{t.Name, paddock.SizeText(t.Bytes)})
	}
	return rows
}
