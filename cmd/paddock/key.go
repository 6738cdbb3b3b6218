package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
)

type keyCommand struct {
	New    keyNewCommand    `cmd:"" help:"Create an API key and print it once."`
	List   keyListCommand   `cmd:"" help:"List the API keys, without their secrets."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke an API key."`
}

func (keyCommand) Help() string {
	return `API keys control access to a service that runs with --auth-file. The file contains hashes only and may be
edited by hand; paddock serve reads it again within about two seconds after a change. Every replica needs the same
file. The roles:

    read   read locks, queues, sessions, events and fenced values; verify tokens
    lock   also acquire, renew and release locks; open, renew and close sessions; write fenced values; report stale writes
    admin  also revoke leases and sessions of other holders; declare and remove trees;
           freeze locks; set rules

    paddock key new --auth-file keys.json --role lock --prefix billing 'billing workers'
    paddock serve --auth-file keys.json`
}

// An authFile is the flag of the file of keys.
type authFile struct {
	AuthFile string `placeholder:"FILE" variable:"PADDOCK_AUTH_FILE" help:"The file of keys that paddock serve uses."`
	configFlag
}

func (f authFile) check() error {
	if f.AuthFile == "" {
		return usagef("the file of keys is missing; give --auth-file, or set PADDOCK_AUTH_FILE, to the file that " +
			"paddock serve uses")
	}
	return checkFileName("--auth-file", f.AuthFile)
}

type keyNewCommand struct {
	Name string `arg:"" help:"Name of the client that uses the key, for people."`
	authFile

	Role    string        `required:"" enum:"read,lock,admin" placeholder:"ROLE" help:"Role of the key: read, lock or admin."`
	Prefix  []string      `placeholder:"NAME" unset:"all names" help:"The key is valid for the lock of this name and all locks under it: billing covers billing and billing:eu, not billing2. May be repeated."`
	Expires time.Duration `unset:"no limit" help:"How long the key is valid, such as 30d."`
}

func (keyNewCommand) Help() string {
	return `Prints the key, and nothing else, to standard output. It is stored nowhere: if you lose it, create another
one. The file is created if it does not exist. To replace a key, create another of the same name, distribute it, and
then revoke the first.

    paddock key new --auth-file keys.json --role lock --prefix billing --prefix jobs:eu 'billing workers'
    paddock key new --auth-file keys.json --role admin --expires 8h 'on call' > admin.key`
}

// Run creates the key. A key that cannot be printed is revoked.
func (c *keyNewCommand) Run(_ context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	var expires time.Time
	switch {
	case c.Expires > 0 && c.Expires < time.Second:
		return usagef("--expires is %v; give at least 1s, or leave it out", c.Expires)
	case c.Expires > 0:
		expires = time.Now().Add(c.Expires)
	}
	key, secret, err := access.Issue(c.Name, access.RoleOf(c.Role), c.Prefix, expires)
	if err != nil {
		return usagef("%w", err)
	}
	if err := access.Add(c.AuthFile, key); err != nil {
		return err
	}
	if _, err := io.WriteString(p.stdout, secret+"\n"); err != nil {
		_, undone := access.Revoke(c.AuthFile, key.ID)
		return errors.Join(err, undone)
	}
	fmt.Fprintf(p.stderr, "Created the key %s: role %s, %s, %s.\n", printable.Text(key.String()), key.Role,
		validNames(key), validUntil(key))
	fmt.Fprintf(p.stderr, "It is not shown again; %s contains only its hash. To revoke it: paddock key revoke "+
		"--auth-file %s %s\n", c.AuthFile, printable.ShellWord(c.AuthFile), key.ID)
	return nil
}

// validNames returns the names that the key covers.
func validNames(k access.Key) string {
	if len(k.Prefixes) == 0 {
		return "for all names"
	}
	return "for names under " + strings.Join(k.Prefixes, ", ")
}

// validUntil returns when the key expires.
func validUntil(k access.Key) string {
	if k.ExpiresAt.IsZero() {
		return "no expiry"
	}
	return "until " + local(k.ExpiresAt)
}

type keyRevokeCommand struct {
	ID string `arg:"" name:"id" help:"The key's id, as list shows it: the part between the underscores of the key."`
	authFile
}

func (keyRevokeCommand) Help() string {
	return `Replicas that use the file refuse the key within about two seconds, and end its waiting calls and streams.
An unknown id is an error, so that a typing mistake does not leave a key in use.

    paddock key list --auth-file keys.json
    paddock key revoke --auth-file keys.json k3f9a2xyqw`
}

func (c *keyRevokeCommand) Run(_ context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	if likeAPIKey.MatchString(c.ID) {
		id, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(c.ID), "pk_"), "_")
		return usagef("that is the key itself, which other users of the machine could see just now; give only its id, %s",
			id)
	}
	key, err := access.Revoke(c.AuthFile, c.ID)
	if errors.Is(err, access.ErrKeyNotFound) {
		return fmt.Errorf("no key with the id %s is in %s; list the keys with paddock key list", printable.Text(c.ID),
			c.AuthFile)
	}
	if err != nil {
		return err
	}
	return printProse(p.stdout, "Revoked the key %s. Replicas that use this file refuse it within about two seconds.",
		printable.Text(key.String()))
}

type keyListCommand struct {
	authFile
	outputFlags
}

func (keyListCommand) Help() string {
	return `Prints neither keys nor hashes.

    paddock key list --auth-file keys.json
    paddock key list --auth-file keys.json -o json | jq -r '.[] | select(.role == "admin") | .name'`
}

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

// A keyJSON is a key as JSON shows it.
type keyJSON struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Prefixes  []string   `json:"prefixes"`
	CreatedAt *time.Time `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Expired   bool       `json:"expired"`
}

func showKeys(keys []access.Key, now time.Time) output {
	ids := namesIn(keys, func(k access.Key) string { return k.ID })
	shown := make([]keyJSON, 0, len(keys))
	for _, k := range keys {
		shown = append(shown, keyJSON{
			ID: k.ID, Name: k.Name, Role: k.Role.String(), Prefixes: append([]string{}, k.Prefixes...),
			CreatedAt: nilIfZero(k.CreatedAt), ExpiresAt: nilIfZero(k.ExpiresAt), Expired: k.Expired(now),
		})
	}
	return output{wire: shown, names: ids, empty: "No keys found.", table: func(t *table) {
		t.head("ID", "NAME", "ROLE", "PREFIXES", "CREATED", "EXPIRES")
		for _, k := range keys {
			t.row(k.ID, k.Name, k.Role.String(), prefixCell(k), local(k.CreatedAt), expiryCell(k, now))
		}
	}}
}

func nilIfZero(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func prefixCell(k access.Key) string {
	if len(k.Prefixes) == 0 {
		return "(all names)"
	}
	return strings.Join(k.Prefixes, " ")
}

func expiryCell(k access.Key, now time.Time) string {
	switch {
	case k.ExpiresAt.IsZero():
		return "never"
	case k.Expired(now):
		return local(k.ExpiresAt) + " (expired)"
	}
	return local(k.ExpiresAt)
}
