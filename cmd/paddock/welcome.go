package main

import (
	"fmt"
	"io"
	"net"
	"text/template"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

// The lines that begin with curl work in this order when pasted as they stand,
// within the ten minutes of the lease.
const welcomeText = `Paddock is ready: {{.URL}}   page: {{.URL}}/ui/   PostgreSQL {{.Postgres}}
Data: {{.Data}}
Database, for tables of your own, too: {{.Database}}
Anybody on this machine may do anything. Stop with Ctrl-C.

Acquire a lock, look at it, release it:

  curl -i --json '{"holder":"me","ttl_ms":600000,"lease_id":"{{.LeaseID}}"}' {{.URL}}/v1/locks/{{.Lock}}/acquire
  curl -i {{.URL}}/v1/locks/{{.Lock}}
  curl -i --json '{"lease_id":"{{.LeaseID}}"}' {{.URL}}/v1/locks/{{.Lock}}/release

What a fencing token is for: paddock demo --url {{.URL}}

`

// welcome tells people what there is and what to try. Lock and lease_id are new
// each time, so that the lines work whatever happened before.
func (c *devCommand) welcome(w io.Writer, address net.Addr, db *pgserver.Server) error {
	url, err := urlOf(address.String())
	if err != nil {
		return err
	}
	data := db.Dir() + ", kept for the next time"
	if c.Ephemeral {
		data = db.Dir() + ", removed at the end"
	}
	id := uuid.New()
	text, err := template.New("welcome").Parse(welcomeText)
	if err != nil {
		return err
	}
	return text.Execute(w, map[string]string{
		"URL": url, "Postgres": db.Version(), "Data": data, "Database": db.URL("postgres"),
		"LeaseID": id.String(), "Lock": fmt.Sprintf("hello:%x", id[:2]),
	})
}
