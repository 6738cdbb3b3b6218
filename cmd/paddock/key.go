package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
)

type keyCommand struct {
	New    keyNewCommand    `cmd:"" help:"Make an API key and print it, once."`
	List   keyListCommand   `cmd:"" help:"Show the API keys that there are, without what is secret."`
	Revoke keyRevokeCommand `cmd:"" help:"Take an API key back."`
}

// Help says what keys are.
func (keyCommand) Help() string {
	return `API keys say who may do what with a service that runs with --auth-file. The file holds hashes alone, may be edited by hand, and is read again by ` +
		`paddock serve when it changes, within about two seconds. Each replica needs the same file.

    read   look at locks, queues and events
    lock   that, and hold locks
    admin  that, and take leases away from others

    paddock key new --auth-file keys.json --role lock --prefix billing 'billing workers'
    paddock serve --auth-file keys.json`
}

// An authFile is the flag that says where the keys are.
type authFile struct {
	AuthFile string `placeholder:"FILE" variable:"PADDOCK_AUTH_FILE" help:"The file with the keys, as paddock serve has it."`
}

func (f authFile) check() error {
	if f.AuthFile == "" {
		return usagef("which keys? Give --auth-file, or set PADDOCK_AUTH_FILE, to the file that paddock serve has")
	}
	return checkFileName("--auth-file", f.AuthFile)
}

type keyNewCommand struct {
	Name string `arg:"" help:"Who or what uses the key, for people."`
	authFile

	Role    string        `required:"" enum:"read,lock,admin" placeholder:"ROLE" help:"What the key is good for: read, lock or admin."`
	Prefix  []string      `placeholder:"NAME" help:"The key is good for the lock of this name and for all under it: billing is for billing and billing:eu, not for billing2. Give it more than once for more; leave it out for all names."`
	Expires time.Duration `placeholder:"DURATION" help:"For how long the key is good, such as 720h (for ever)."`
}

// Help shows how to use it.
func (keyNewCommand) Help() string {
	return `Prints the key, and nothing else, to standard output. It is kept nowhere: who loses it needs another one. The file is made if there is none. ` +
		`To replace a key, make another of the same name, hand it out, and then revoke the first.

    paddock key new --auth-file keys.json --role lock --prefix billing --prefix jobs:eu 'billing workers'
    paddock key new --auth-file keys.json --role admin --expires 8h 'on call' > admin.key`
}

// Run makes the key. One that could not be printed is taken back.
func (c *keyNewCommand) Run(_ context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	var expires time.Time
	switch {
	case c.Expires < 0 || c.Expires > 0 && c.Expires < time.Second:
		return usagef("--expires is %v; give how long the key is good, or leave it out", c.Expires)
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
	fmt.Fprintf(p.stderr, "Made the key %s: role %s, %s, %s.\n", legible(key.String()), key.Role, forNames(key), untilWhen(key))
	fmt.Fprintf(p.stderr, "It is shown this once; %s has its hash alone. To take it back: paddock key revoke --auth-file %s %s\n", c.AuthFile, quoted(c.AuthFile), key.ID)
	return nil
}

// forNames says what the key covers.
func forNames(k access.Key) string {
	if len(k.Prefixes) == 0 {
		return "for all names"
	}
	return "for names under " + strings.Join(k.Prefixes, ", ")
}

// untilWhen says how long the key is good.
func untilWhen(k access.Key) string {
	if k.ExpiresAt.IsZero() {
		return "for ever"
	}
	return "until " + local(k.ExpiresAt)
}

type keyRevokeCommand struct {
	ID string `arg:"" name:"id" help:"The key's id, as list shows it: what stands between the underscores of the key."`
	authFile
}

// Help shows how to use it.
func (keyRevokeCommand) Help() string {
	return `Replicas that have the file refuse the key within about two seconds; calls that wait under it, and streams, end then. ` +
		`An id that is not there is a failure, so that a slip of the hand does not leave a key in use.

    paddock key list --auth-file keys.json
    paddock key revoke --auth-file keys.json k3f9a2xyqw`
}

// Run revokes the key.
func (c *keyRevokeCommand) Run(_ context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	if keyAlone.MatchString(c.ID) {
		id, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(c.ID), "pk_"), "_")
		return usagef("that is the key itself, which other users of the machine could see just now; give its id, %s, alone", id)
	}
	key, err := access.Revoke(c.AuthFile, c.ID)
	if errors.Is(err, access.ErrKeyNotFound) {
		return fmt.Errorf("there is no key with the id %s in %s: it was revoked before, or never there; paddock key list shows those that are", legible(c.ID), c.AuthFile)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "Revoked the key %s. Replicas that have this file refuse it within about two seconds.\n", legible(key.String()))
	return err
}
