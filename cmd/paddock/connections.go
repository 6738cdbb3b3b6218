package main

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// noteEvery is how often, at most, refused connections are logged.
const noteEvery = 10 * time.Second

// A cappedListener accepts so many connections at once, and closes what comes beyond
// them: who is refused knows at once, and can go to another replica.
type cappedListener struct {
	net.Listener
	most int64
	log  *slog.Logger

	open    atomic.Int64
	refused int64     // since it was logged last
	noted   time.Time // when that was
}

func capped(l net.Listener, most int, log *slog.Logger) net.Listener {
	return &cappedListener{Listener: l, most: int64(most), log: log}
}

// Accept returns the next connection for which there is room.
func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &countedConn{Conn: c, done: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refuse(c)
	}
}

// refuse closes the connection. One goroutine accepts, so that nothing here is shared.
func (l *cappedListener) refuse(c net.Conn) {
	l.refused++
	if time.Since(l.noted) >= noteEvery {
		l.log.Warn("connections are refused: as many are open as may be (--max-connections)", "open", l.most, "refused", l.refused)
		l.refused, l.noted = 0, time.Now()
	}
	if err := c.Close(); err != nil {
		l.log.Debug("closing a connection that was refused", "error", err)
	}
}

// A countedConn makes room when it is closed.
type countedConn struct {
	net.Conn
	done func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}
