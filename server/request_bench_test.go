package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// An instantService is a Service that succeeds at once.
type instantService struct{ lock.Service }

func (instantService) Acquire(_ context.Context, a lock.Acquire) (lock.Grant, error) {
	a.Mode, a.TTL = lock.Exclusive, time.Minute
	return grantOf(a), nil
}

func (s instantService) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return s.Acquire(ctx, lock.Acquire{Name: r.Name, LeaseID: r.LeaseID, Holder: "worker-1"})
}

func (instantService) Release(context.Context, lock.Release) error { return nil }

// benchCalls are the most frequent calls, as bytes on the wire.
var benchCalls = []struct{ verb, body string }{
	{"acquire", `{"lease_id":"` + leaseID + `","holder":"worker-1","ttl_ms":30000}`},
	{"renew", `{"lease_id":"` + leaseID + `","ttl_ms":30000}`},
	{"release", `{"lease_id":"` + leaseID + `"}`},
}

func benchText(verb, body, header string) []byte {
	return fmt.Appendf(nil, "POST /v1/locks/bench:017:042/%s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		verb, header, len(body), body)
}

// BenchmarkRequest measures a request on a kept-alive connection, with a minimal client and a Service that answers at
// once. The case nothing has an empty handler: it is the cost of net/http and of the client.
func BenchmarkRequest(b *testing.B) {
	b.Run("nothing", func(b *testing.B) {
		h := &http.Server{ReadTimeout: server.ReadTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusNoContent)
		})}
		b.Cleanup(func() { _ = h.Close() })
		exchangeInLoop(b, h.Serve, benchText(benchCalls[0].verb, benchCalls[0].body, ""))
	})
	for _, call := range benchCalls {
		b.Run(call.verb, func(b *testing.B) {
			s := server.New(server.Options{Locks: instantService{}})
			exchangeInLoop(b, func(l net.Listener) error { return s.Serve(b.Context(), l) }, benchText(call.verb, call.body, ""))
		})
		b.Run(call.verb+" with a key", func(b *testing.B) {
			ring, log := newKeyring(b), nowhere(b)
			s := server.New(server.Options{
				Locks: access.Guard(instantService{}, access.Limits{}), Keys: ring.Keyring,
				Log: slog.New(slog.NewJSONHandler(log, nil)),
			})
			exchangeInLoop(b, func(l net.Listener) error { return s.Serve(b.Context(), l) },
				benchText(call.verb, call.body, "Authorization: Bearer "+ring.secrets["lock"]+"\r\n"))
		})
	}
}

// nowhere returns /dev/null for the log, so that each line still costs a write.
func nowhere(b *testing.B) *os.File {
	b.Helper()
	file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	return file
}

// exchangeInLoop sends the request and reads the answer in a loop, on 32 connections per core.
func exchangeInLoop(b *testing.B, serve func(net.Listener) error, request []byte) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = serve(l) }()
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", l.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for pb.Next() {
			if _, err = conn.Write(request); err == nil {
				err = readAnswer(in)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// readAnswer reads an answer, which must be a success, without allocating.
func readAnswer(in *bufio.Reader) error {
	for length, at := 0, 0; ; at++ {
		line, err := in.ReadSlice('\n')
		switch line = bytes.TrimSpace(line); {
		case err != nil:
			return err
		case at == 0 && !bytes.HasPrefix(line, []byte("HTTP/1.1 2")):
			return fmt.Errorf("the answer is %s", line)
		case len(line) == 0:
			_, err = in.Discard(length)
			return err
		}
		if digits, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(digits)); err != nil {
				return err
			}
		}
	}
}
