package paddock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Subscribed is Paddock over HTTP with subscribers, which the bench reads and discards.
type Subscribed struct {
	HTTP
	Streams int
	Query   string // of each stream; empty for all events

	conns   []net.Conn
	reading sync.WaitGroup
	mu      sync.Mutex
	ended   []error // of streams
}

// Start starts the deployment and opens the streams.
func (s *Subscribed) Start(ctx context.Context, dir string) error {
	if err := s.start(ctx, dir); err != nil {
		return err
	}
	for range s.Streams {
		if err := s.subscribe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// subscribe opens a stream over a connection of its own, and reads until that is closed.
func (s *Subscribed) subscribe(ctx context.Context) error {
	address := s.address()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	s.conns = append(s.conns, conn)
	if _, err := fmt.Fprintf(conn, "GET /v1/events/stream%s HTTP/1.1\r\nHost: %s\r\n\r\n", s.Query, address); err != nil {
		return err
	}
	const head = "HTTP/1.1 200 OK\r\n"
	answer := make([]byte, len(head))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != head {
		return fmt.Errorf("opening a stream: %q, %w", answer, err)
	}
	s.reading.Go(func() {
		_, err := io.Copy(io.Discard, conn)
		if !errors.Is(err, net.ErrClosed) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, fmt.Errorf("a stream has ended: %w", err))
		}
	})
	return nil
}

// Stop closes the streams and stops the deployment. It returns an error if a stream has ended before.
func (s *Subscribed) Stop() error {
	for _, conn := range s.conns {
		s.ended = append(s.ended, conn.Close())
	}
	s.reading.Wait()
	err := errors.Join(s.ended...)
	s.conns, s.ended = nil, nil
	return errors.Join(err, s.stop())
}
