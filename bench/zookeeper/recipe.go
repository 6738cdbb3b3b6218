package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-lock/paddock/bench/system"
)

// root is the parent node of the locks.
const root = "/locks"

// digits is the length of the number that ZooKeeper appends to a sequence node's name.
const digits = 10

// A client follows the recipe over one session.
type client struct{ conn *zk.Conn }

func (c client) Close() error {
	c.conn.Close()
	return nil
}

// Acquire implements system.Client.
func (c client) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	parent := root + "/" + name
	own, err := c.createNode(parent)
	if err != nil {
		return nil, err
	}
	mine, err := number(own)
	for err == nil {
		var before string
		before, err = c.predecessor(parent, mine)
		if err == nil && before == "" {
			return node{c.conn, own, mine}, nil
		}
		if err == nil && !wait {
			err = system.ErrHeld
		}
		if err == nil {
			err = c.waitGone(ctx, before)
		}
	}
	return nil, errors.Join(err, c.conn.Delete(own, -1))
}

// createNode creates a sequence node, and the lock's node if needed.
func (c client) createNode(parent string) (string, error) {
	own, err := c.conn.CreateProtectedEphemeralSequential(parent+"/lock-", nil, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNoNode) {
		return own, err
	}
	for _, path := range []string{root, parent} {
		if _, err := c.conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return "", err
		}
	}
	return c.conn.CreateProtectedEphemeralSequential(parent+"/lock-", nil, zk.WorldACL(zk.PermAll))
}

// predecessor returns the path of the node before the own one, empty if the own one is the lowest.
func (c client) predecessor(parent string, mine int64) (string, error) {
	children, _, err := c.conn.Children(parent)
	if err != nil {
		return "", err
	}
	var next string
	highest := int64(-1)
	for _, child := range children {
		n, err := number(child)
		if err != nil {
			return "", err
		}
		if n < mine && n > highest {
			next, highest = parent+"/"+child, n
		}
	}
	return next, nil
}

// waitGone waits until the node changes, which can only mean that it was deleted.
func (c client) waitGone(ctx context.Context, path string) error {
	_, _, events, err := c.conn.GetW(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case e := <-events:
		return e.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func number(path string) (int64, error) {
	n, err := strconv.ParseInt(path[max(0, len(path)-digits):], 10, 64)
	if err != nil || !strings.Contains(path, "lock-") {
		return 0, fmt.Errorf("%s is not a node of a lock", path)
	}
	return n, nil
}

// A node is the sequence node of a holder.
type node struct {
	conn   *zk.Conn
	path   string
	number int64
}

// Token implements system.Lease. Sequence numbers start at 0.
func (n node) Token() int64 { return n.number + 1 }

// Renew implements system.Lease. The connection keeps the session alive.
func (n node) Renew(context.Context) error { return system.ErrUnsupported }

func (n node) Release(context.Context) error { return n.conn.Delete(n.path, -1) }
