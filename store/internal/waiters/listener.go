package waiters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/store/internal/database"
)

const (
	// listenCheck is how long the connection may be silent before it is checked.
	listenCheck = 5 * time.Second
	// echoTimeout is how long the connection may take to receive what this replica sent to itself over another one. It
	// is longer than listenCheck, so that what arrives with the check is read first.
	echoTimeout = listenCheck + time.Second
	// maxListenPause is the longest pause before the next connection.
	maxListenPause = 5 * time.Second
)

// errDeaf says that a connection listens, and receives nothing.
var errDeaf = errors.New("a notification of this replica to itself did not arrive")

// A listener receives the notifications of other replicas. Its connection is its own, since a pooler in transaction
// mode would lose them. To find out whether there is such a pooler, each connection begins with an echo: a
// notification that the replica sends to itself over another connection.
type listener struct {
	*Registry
	onEvents           func()             // see Hooks
	sendEcho           func(string) error // sends a notification to this replica
	check, echoTimeout time.Duration      // the constants, but in tests
	pause              *backoff.ExponentialBackOff
	lost               database.Trouble
	deaf               bool // the last connection received nothing, which was logged
}

func newListener(r *Registry, onEvents func()) *listener {
	l := &listener{
		Registry: r, onEvents: onEvents, check: listenCheck, echoTimeout: echoTimeout, pause: database.NewPause(),
	}
	l.sendEcho = l.notifySelf
	l.pause.MaxInterval = maxListenPause
	return l
}

// run listens until the database is stopped.
func (l *listener) run() {
	for {
		err := l.listen()
		l.db.Report(&l.lost, "listener", err)
		if errors.Is(err, errDeaf) && !l.deaf {
			l.deaf = true
			l.db.Log.Error(
				"notifications do not arrive; is there a pooler in transaction mode? start with --pooler-mode=transaction",
				"waited", l.echoTimeout, "error", err)
		}
		if !l.db.Sleep(l.pause.NextBackOff()) {
			return
		}
	}
}

// hear records that the connection has received the echo.
func (l *listener) hear() {
	if l.deaf {
		l.db.Log.Info("notifications resumed")
	}
	l.pause.Reset()
	l.lost, l.deaf = database.Trouble{}, false
}

// listen connects, and listens until the connection fails or the database is stopped. It returns errDeaf if the echo
// does not arrive within echoTimeout. What was sent before was not received, so all calls are woken.
func (l *listener) listen() error {
	conn, err := l.connect()
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(l.db.Context())) //nolint:errcheck // it is given up
	l.wakeAll()
	l.onEvents()
	echo := uuid.NewString()
	if err := l.sendEcho(echo); err != nil {
		return err
	}
	sent, heard := time.Now(), false
	for {
		received, err := l.receive(conn)
		switch {
		case err != nil:
			return err
		case received != nil && received.Channel != l.echoChannel():
			l.handle(received.Payload)
		case received != nil && received.Payload == echo:
			heard = true
			l.hear()
		}
		if !heard && time.Since(sent) >= l.echoTimeout {
			return errDeaf
		}
	}
}

// connect returns a connection that listens to the other replicas and to the echo.
func (l *listener) connect() (conn *pgx.Conn, err error) {
	err = l.db.Within(func(ctx context.Context) error {
		if conn, err = pgx.ConnectConfig(ctx, l.db.Rest.Config().ConnConfig); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "listen paddock; listen "+l.echoChannel()); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
		return nil
	})
	return conn, err
}

// notifySelf sends the echo over a connection of the pool. It prepares no statement, so it works through a pooler,
// too.
func (l *listener) notifySelf(echo string) error {
	return l.db.Within(func(ctx context.Context) error {
		sql := fmt.Sprintf("set local synchronous_commit = off; notify %s, '%s'", l.echoChannel(), echo)
		_, err := l.db.Rest.Exec(ctx, sql)
		return err
	})
}

// echoChannel returns the channel on which the replica notifies itself. It is the same for each connection, since a
// pooler may continue to listen when the connection is closed.
func (l *listener) echoChannel() string { return fmt.Sprintf("paddock_echo_%d", l.self) }

// receive returns the next notification, or nil if the connection was silent for a while and is sound.
func (l *listener) receive(conn *pgx.Conn) (*pgconn.Notification, error) {
	ctx, cancel := context.WithTimeout(l.db.Context(), l.check)
	defer cancel()
	received, err := conn.WaitForNotification(ctx)
	silent := errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed() && l.db.Context().Err() == nil
	if silent {
		return nil, l.db.Within(conn.Ping)
	}
	return received, err
}

// handle acts on a notification of another replica.
func (l *listener) handle(payload string) {
	var n notification
	if err := json.Unmarshal([]byte(payload), &n); err != nil {
		l.db.Log.Warn("notification is malformed; ignoring it", "error", err)
		return
	}
	if n.From == l.self {
		return
	}
	l.wake(n.Granted...)
	if n.Events {
		l.onEvents()
	}
}
