package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
)

const (
	// listenCheck is how long a connection that listens may be silent before it is
	// asked whether it is still there.
	listenCheck = 5 * time.Second
	// maxListenPause is the longest pause before it is made anew.
	maxListenPause = 5 * time.Second
)

// listen hears what other replicas tell, until the store closes. The connection
// is its own: a pooler in transaction mode would lose what it is to hear.
func (s *Store) listen() {
	var deaf trouble
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, maxListenPause
	for s.ctx.Err() == nil {
		err := s.listenOnce(func() { pause.Reset(); deaf = trouble{} })
		s.troubled(&deaf, "hearing the other replicas", err)
		if !s.sleep(pause.NextBackOff()) {
			return
		}
	}
}

// listenOnce listens for as long as the connection holds. Whatever was told
// before it stood was not heard, so all who wait ask how they stand.
func (s *Store) listenOnce(connected func()) error {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(s.ctx)) //nolint:errcheck // it is given up
	if _, err := conn.Exec(ctx, "listen paddock"); err != nil {
		return err
	}
	connected()
	s.seats.askAll()
	s.tail.pokeIfAny()
	for {
		if err := s.hear(conn); err != nil {
			return err
		}
	}
}

// hear waits for a notice and heeds it, or checks the connection when none comes.
func (s *Store) hear(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(s.ctx, listenCheck)
	defer cancel()
	told, err := conn.WaitForNotification(ctx)
	if err != nil {
		if s.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed() {
			ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
			defer cancel()
			return conn.Ping(ctx)
		}
		return err
	}
	var n notice
	if err := json.Unmarshal([]byte(told.Payload), &n); err != nil {
		s.log.Warn("a notice cannot be read", "error", err)
		return nil
	}
	if n.From == s.self {
		return nil
	}
	if len(n.Granted) > 0 {
		s.seats.ask(n.Granted...)
	}
	if n.Events {
		s.tail.pokeIfAny()
	}
	return nil
}
