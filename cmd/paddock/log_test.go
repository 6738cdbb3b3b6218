package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

func TestLogHasDurationsInMillisecondsAndErrorsInOneLine(t *testing.T) {
	t.Parallel()
	twice := errors.New("failed to connect:\n\t127.0.0.1:1: refused\n\t127.0.0.1:1: refused\n\t127.0.0.2:1: refused")
	const once = "failed to connect: 127.0.0.1:1: refused; 127.0.0.2:1: refused"
	var b bytes.Buffer
	log := newLog(&b, slog.LevelInfo).With("limit", time.Minute)
	log.LogAttrs(t.Context(), slog.LevelInfo, "waiting", slog.Duration("wait", 1500*time.Millisecond),
		slog.Any("short", 1500*time.Microsecond), slog.Group("in", slog.Duration("retry", time.Second)), slog.Any("error", twice))
	var got struct {
		Limit int64 `json:"limit_ms"`
		Wait  int64 `json:"wait_ms"`
		Short int64 `json:"short_ms"`
		In    struct {
			Retry int64 `json:"retry_ms"`
		} `json:"in"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Limit != 60_000 || got.Wait != 1500 || got.Short != 2 ||
		got.In.Retry != 1000 || got.Error != once || strings.Contains(b.String(), `"wait":`) {
		t.Errorf("logged %s (%v)", &b, err)
	}
	b.Reset()
	slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: replaceAttribute})).
		Info("waiting", "wait", 1500*time.Millisecond, "error", twice)
	if got := b.String(); !strings.Contains(got, `msg=waiting wait_ms=1500 error="`+once+`"`) {
		t.Errorf("logged %s", got)
	}
}

// TestWaitForTheDatabaseIsLoggedSparsely fails all attempts, of which there are several a second at first.
func TestWaitForTheDatabaseIsLoggedSparsely(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until time.Duration // the database answers
		err   error         // and fails permanently with this error
		last  string        // record
		said  string        // in the error
	}{
		"it answers in the end":  {until: 22 * time.Second, last: "database reachable"},
		"it answers never":       {until: time.Hour, last: "database not reachable; retrying", said: "cannot connect to the database after"},
		"it refuses in the end":  {until: 22 * time.Second, err: io.EOF, last: "database not reachable; retrying", said: "EOF"},
		"it answers immediately": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				start, attempts := time.Now(), 0
				err := waitFor(t.Context(), newLog(&b, slog.LevelInfo), 30*time.Second, func() error {
					attempts++
					switch {
					case time.Since(start) < c.until:
						return fmt.Errorf("not\n\tyet")
					case c.err != nil:
						return backoff.Permanent(c.err)
					}
					return nil
				})
				records := records(t, &b)
				if c.until == 0 {
					if err != nil || len(records) != 0 || attempts != 1 {
						t.Errorf("%d attempts, %v, %v", attempts, records, err)
					}
					return
				}
				if text := fmt.Sprint(err); (err == nil) != (c.said == "") || !strings.Contains(text, c.said) || strings.Contains(text, "\n") {
					t.Errorf("error %q, want %q", text, c.said)
				}
				if most := int(min(c.until, 30*time.Second)/reportEvery) + 2; len(records) < 4 || len(records) > most || attempts < 2*len(records) {
					t.Errorf("%d attempts and %d records, want at most %d:\n%v", attempts, len(records), most, records)
				}
				for i, r := range records[1 : len(records)-1] {
					if gap := r["waited_ms"].(float64) - records[i]["waited_ms"].(float64); gap < 5000 || gap > 6500 || r["error"] != "not; yet" {
						t.Errorf("record %d after %v ms: %v", i+1, gap, r)
					}
				}
				if first, last := records[0], records[len(records)-1]; first["waited_ms"] != 0.0 || last["msg"] != c.last {
					t.Errorf("the first and the last record are\n%v\n%v", first, last)
				}
			})
		})
	}
}

func TestStoppedWaitForTheDatabaseEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := waitFor(ctx, slog.New(slog.DiscardHandler), time.Hour, func() error {
		cancel()
		return io.EOF
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// records returns the records of a log in JSON.
func records(t *testing.T, r io.Reader) []map[string]any {
	t.Helper()
	var all []map[string]any
	for d := json.NewDecoder(r); ; {
		var record map[string]any
		switch err := d.Decode(&record); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, record)
	}
}
