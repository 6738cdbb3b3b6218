package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// listenCheck is how long a connection that listens may be silent before it is
	// asked whether it is still there.
	listenCheck = 5 * time.Second
	// echoWithin is how long a connection that listens may take to hear what this store sent
	// to itself over another connection. It is longer than listenCheck, so that what the check of
	// the connection has read is heeded before.
	echoWithin = listenCheck + time.Second
	// maxListenPause is the longest pause before it is made anew.
	maxListenPause = 5 * time.Second
)

// errDeaf says that a connection listens and hears nothing.
var errDeaf = errors.New("a notification of this replica to itself did not arrive")

// listen hears what other replicas tell, until the store closes. The connection
// is its own: a pooler in transaction mode would lose what it is to hear.
func (s *Store) listen() {
	var lost, deaf trouble
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, maxListenPause
	for s.ctx.Err() == nil {
		err := s.listenOnce(func() {
			if deaf.told {
				s.log.Info("notifications resumed")
			}
			pause.Reset()
			lost, deaf = trouble{}, trouble{}
		})
		if errors.Is(err, errDeaf) {
			s.reportDeaf(&deaf)
		} else {
			s.troubled(&lost, "listener", err)
		}
		if !s.sleep(pause.NextBackOff()) {
			return
		}
	}
}

// reportDeaf logs that notifications do not arrive: as an error the first time, at debug level
// until they do.
func (s *Store) reportDeaf(t *trouble) {
	level := slog.LevelError
	if t.told {
		level = slog.LevelDebug
	}
	t.told = true
	s.log.Log(s.ctx, level, "notifications do not arrive; is there a pooler in transaction mode? start with --pooler-mode=transaction",
		"waited", echoWithin, "error", errDeaf)
}

// listenOnce listens for as long as the connection holds, and calls sound when the connection has
// heard this store itself. It returns errDeaf if that takes longer than echoWithin. Whatever was
// told before the connection stood was not heard, so all who wait ask how they stand.
func (s *Store) listenOnce(sound func()) error {
	conn, err := s.openListener()
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(s.ctx)) //nolint:errcheck // it is given up
	s.seats.askAll()
	s.tail.pokeIfAny()
	echo := uuid.NewString()
	if err := s.sendEcho(echo); err != nil {
		return err
	}
	sent, heard := time.Now(), false
	for {
		told, err := s.hear(conn)
		if err != nil {
			return err
		}
		if told != nil && told.Payload == echo {
			heard = true
			sound()
		}
		if !heard && time.Since(sent) >= echoWithin {
			return errDeaf
		}
	}
}

// openListener connects, and listens to the other replicas and to this store's echo.
func (s *Store) openListener() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "listen paddock; listen "+s.echoChannel()); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// sendEcho notifies this store over a connection of its pool. It prepares nothing, so it works
// through a pooler, too. It waits for no flush.
func (s *Store) sendEcho(echo string) error {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, fmt.Sprintf("set local synchronous_commit = off; notify %s, '%s'", s.echoChannel(), echo))
	return err
}

// echoChannel is the channel on which the store notifies itself. It is the same for each
// connection, since a pooler may keep listening when the connection is closed.
func (s *Store) echoChannel() string { return fmt.Sprintf("paddock_echo_%d", s.self) }

// hear waits for a notification, heeds it and returns it. When none comes it checks the connection,
// and returns nil if that is sound.
func (s *Store) hear(conn *pgx.Conn) (*pgconn.Notification, error) {
	ctx, cancel := context.WithTimeout(s.ctx, listenCheck)
	defer cancel()
	told, err := conn.WaitForNotification(ctx)
	if err != nil {
		if s.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed() {
			ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
			defer cancel()
			return nil, conn.Ping(ctx)
		}
		return nil, err
	}
	if told.Channel != s.echoChannel() {
		s.heed(told.Payload)
	}
	return told, nil
}

// heed does what a notice of another replica asks for.
func (s *Store) heed(payload string) {
	var n notice
	if err := json.Unmarshal([]byte(payload), &n); err != nil {
		s.log.Warn("notification is malformed; ignoring it", "error", err)
		return
	}
	if n.From == s.self {
		return
	}
	if len(n.Granted) > 0 {
		s.seats.ask(n.Granted...)
	}
	if n.Events {
		s.tail.pokeIfAny()
	}
}
