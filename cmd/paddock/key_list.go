package main

import (
	"context"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
)

type keyListCommand struct {
	authFile
	outputFlags
}

// Help shows how to use it.
func (keyListCommand) Help() string {
	return `Neither a key nor its hash is shown.

    paddock key list --auth-file keys.json
    paddock key list --auth-file keys.json -o json | jq -r '.[] | select(.role == "admin") | .name'`
}

// Run prints the keys, in the order of the file.
func (c *keyListCommand) Run(_ context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	keys, err := access.ReadFile(c.AuthFile)
	if err != nil {
		return err
	}
	return p.print(c.Output, showKeys(keys, time.Now()))
}

// A shownKey is a key as JSON shows it.
type shownKey struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Prefixes  []string   `json:"prefixes"`
	CreatedAt *time.Time `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Expired   bool       `json:"expired"`
}

func showKeys(keys []access.Key, now time.Time) finding {
	shown := make([]shownKey, 0, len(keys))
	for _, k := range keys {
		shown = append(shown, shownKey{
			ID: k.ID, Name: k.Name, Role: k.Role.String(), Prefixes: append([]string{}, k.Prefixes...),
			CreatedAt: unlessNever(k.CreatedAt), ExpiresAt: unlessNever(k.ExpiresAt), Expired: k.Expired(now),
		})
	}
	return finding{wire: shown, table: func(s sheet) {
		s.row("ID", "NAME", "ROLE", "PREFIXES", "CREATED", "EXPIRES")
		for _, k := range keys {
			s.row(k.ID, k.Name, k.Role.String(), prefixesOf(k), local(k.CreatedAt), expiryOf(k, now))
		}
	}}
}

func unlessNever(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func prefixesOf(k access.Key) string {
	if len(k.Prefixes) == 0 {
		return "(all names)"
	}
	return strings.Join(k.Prefixes, " ")
}

func expiryOf(k access.Key, now time.Time) string {
	switch {
	case k.ExpiresAt.IsZero():
		return "never"
	case k.Expired(now):
		return local(k.ExpiresAt) + " (expired)"
	}
	return local(k.ExpiresAt)
}
