//go:build unix

package pgcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// StepTimeout is how long one step may take on a slow machine.
const StepTimeout = time.Minute

// Database is the database of a cluster.
const Database = "paddock"

// superuser is the role that package pgserver creates.
const superuser = "paddock"

// Options of a cluster. The zero value replicates asynchronously.
type Options struct {
	// Synchronous is synchronous_standby_names, such as "ANY 1 (a, b, c)".
	Synchronous string
	// Settings are further parameters, as in postgresql.conf.
	Settings map[string]string
	// Log receives the logs of the servers; nil: errors quote their end.
	Log io.Writer
}

// A Cluster is a primary and two standbys. Its methods and those of its nodes must not run concurrently.
type Cluster struct {
	opts     Options
	password string
	nodes    []*Node
	primary  *Node
}

// Start returns a cluster in which both standbys stream. The caller must Stop it.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts, password: rand.Text()}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("pgcluster: %w", errors.Join(err, c.Stop()))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	for _, name := range []string{"a", "b", "c"} {
		n, err := newNode(ctx, c, name)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	c.primary = c.nodes[0]
	if err := c.primary.initialise(ctx); err != nil {
		return err
	}
	for _, n := range c.nodes[1:] {
		if err := c.Rejoin(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops all servers and removes their data.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.host.Close())
	}
	return errors.Join(errs...)
}

// URL returns the URL for clients: it names all nodes and selects the one that accepts writes.
func (c *Cluster) URL() string { return c.URLAs(superuser, c.password) }

// URLAs returns the URL for another role than the superuser.
func (c *Cluster) URLAs(role, password string) string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, n.address())
	}
	return urlOf(url.UserPassword(role, password), strings.Join(hosts, ","), "&target_session_attrs=read-write")
}

func urlOf(user *url.Userinfo, hosts, query string) string {
	return "postgres://" + user.String() + "@" + hosts + "/" + Database + "?sslmode=disable&connect_timeout=2" + query
}

// Primary returns the node that accepts writes, or the last one that did.
func (c *Cluster) Primary() *Node { return c.primary }

// Standbys returns the other nodes in the order of their names.
func (c *Cluster) Standbys() []*Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *Node) bool { return n == c.primary })
}
