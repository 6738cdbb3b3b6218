package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// A checking is a test, or one of rapid's.
type checking interface {
	rapid.TB
	Context() context.Context
}

// asRead returns what PostgreSQL makes of the elements of a swap's array, by their columns.
func asRead(t checking, conn *pgx.Conn, swaps []*swapping) []map[string]any {
	t.Helper()
	var element uint32
	if err := conn.QueryRow(t.Context(), sqlSwapType).Scan(&element, nil); err != nil {
		t.Fatal(err)
	}
	array := newSwapArray(element, len(swaps))
	for _, one := range swaps {
		array.add(one)
	}
	const read = "select (to_jsonb(s) || jsonb_build_object('until', s.until::text))::text from unnest($1::paddock.swap[]) s order by ord"
	result := conn.PgConn().ExecParams(t.Context(), read, [][]byte{array.bytes()}, nil, []int16{pgx.BinaryFormatCode}, nil).Read()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	all := make([]map[string]any, len(result.Rows))
	for i, row := range result.Rows {
		d := json.NewDecoder(strings.NewReader(string(row[0])))
		d.UseNumber()
		if err := d.Decode(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// asMeant returns what it should, for the columns where nothing is null.
func asMeant(ord int, one *swapping) map[string]any {
	now := one.after
	m := map[string]any{
		"ord": number(ord), "name": now.Name, "version": strconv.FormatUint(uint64(one.before.version), 10), "until": "infinity",
		"draws": one.draws, "revision": number(now.Revision), "last_token": number(now.Token), "last_end": number(now.LastEnd),
		"changed_at": instant(now.ChangedAt), "place": number(0), "attachment": number(0), "queued": number(len(now.Queue)),
		"at": fmt.Sprintf("(%d,%d)", one.before.at.BlockNumber, one.before.at.OffsetNumber),
	}
	if one.unused != 0 {
		m["unused"] = number(one.unused)
	}
	for _, l := range now.Leases {
		m["until"] = l.ExpiresAt.UTC().Format("2006-01-02 15:04:05.999999+00")
		maps.Copy(m, map[string]any{
			"lease_id": uuid.UUID(l.ID).String(), "mode": number(l.Mode), "holder": l.Holder, "ttl_ms": number(l.TTL.Milliseconds()),
			"grace_ms": number(l.Grace.Milliseconds()), "max_hold_ms": number(l.MaxHold.Milliseconds()), "acquired_at": instant(l.AcquiredAt),
			"expires_at": instant(l.ExpiresAt), "place": number(l.Place), "attachment": number(l.Attachment),
		})
		if l.Metadata != nil {
			m["metadata"] = string(l.Metadata)
		}
	}
	if e := one.told; e != nil {
		maps.Copy(m, map[string]any{
			"kind": number(e.Kind), "event_mode": number(e.Mode), "event_holder": e.Holder, "event_place": number(e.Place), "reason": e.Reason,
		})
		if e.Ref != 0 {
			m["lease_ref"] = number(e.Ref)
		}
	}
	return m
}

func number[N ~int | ~int16 | ~int64](n N) json.Number {
	return json.Number(strconv.FormatInt(int64(n), 10))
}

// instant is as PostgreSQL writes one in JSON, in UTC.
func instant(t time.Time) string {
	text := t.UTC().Format("2006-01-02T15:04:05.999999")
	return text + "+00:00"
}

// compare fails unless each column is as meant, and null where nothing is.
func compare(t checking, conn *pgx.Conn, swaps ...*swapping) {
	t.Helper()
	read := asRead(t, conn, swaps)
	if len(read) != len(swaps) {
		t.Fatalf("%d elements were read, of %d", len(read), len(swaps))
	}
	for i, one := range swaps {
		want := asMeant(i, one)
		if len(read[i]) != swapColumns {
			t.Fatalf("an element has %d columns", len(read[i]))
		}
		for column, got := range read[i] {
			if got != want[column] {
				t.Errorf("%s of %q was read as %v, not %v", column, one.after.Name, got, want[column])
			}
		}
	}
}

func utc(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := pgtest.Conn(t)
	if _, err := conn.Exec(t.Context(), "set timezone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestASwapIsReadAsItIsMeant(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_012_000, time.UTC)
	full := lock.Lease{
		ID: lock.LeaseID(uuid.New()), Mode: lock.Exclusive, Holder: "Ωμέγα 🦄 \"\\{},()", Token: 7, TTL: 24 * time.Hour, Grace: time.Minute,
		MaxHold: lock.MaxHold, AcquiredAt: at, ExpiresAt: at.Add(24 * time.Hour), Metadata: json.RawMessage(`{"a": "ü", "b":null}`),
		Place: 1<<62 + 3, Attachment: -5,
	}
	bare := lock.Lease{ID: lock.LeaseID(uuid.New()), Mode: lock.Exclusive, Holder: "h", TTL: time.Second, AcquiredAt: at, ExpiresAt: at.Add(1)}
	ended := lock.Event{Kind: lock.Revoked, Mode: lock.Exclusive, Holder: "h", Place: 4, Reason: "it's, (over)", Ref: 1<<63 - 1}
	compare(t, utc(t),
		decidedSwap(1<<32-1, lock.Record{Name: strings.Repeat("n", lock.MaxNameLength), Revision: 1<<62 + 1, Token: lock.MaxToken, ChangedAt: at, Leases: []lock.Lease{full}}),
		decidedSwap(3, lock.Record{Name: "free", LastEnd: lock.Revoked, ChangedAt: at}, ended),
		decidedSwap(4, lock.Record{Name: "granted", ChangedAt: time.Date(1999, 12, 31, 23, 59, 59, 1000, time.UTC), Leases: []lock.Lease{bare}},
			lock.Event{Kind: lock.Granted, Mode: lock.Exclusive, Holder: "h"}),
		&swapping{unused: 9, draws: true, after: lock.Record{Name: "first", ChangedAt: at, Queue: make([]*lock.Waiter, 3)}},
	)
	compare(t, utc(t))
}

func decidedSwap(version uint32, s lock.Record, told ...lock.Event) *swapping {
	one := &swapping{after: s}
	one.before.version, one.before.at = version, pgtype.TID{BlockNumber: version, OffsetNumber: uint16(version), Valid: true}
	if len(told) > 0 {
		one.told = &told[0]
	}
	return one
}

func TestAnySwapIsReadAsItIsMeant(t *testing.T) {
	t.Parallel()
	conn := utc(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 }))
		micro := rapid.Map(rapid.Int64Range(-1e15, 4e15), func(n int64) time.Time { return time.UnixMicro(n).UTC() })
		whole := rapid.Map(rapid.Int64Range(0, 1e10), fromMS)
		swaps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *swapping {
			s := lock.Record{
				Name: text.Draw(t, "name"), Revision: rapid.Int64().Draw(t, "revision"), Token: lock.Token(rapid.Int64().Draw(t, "token")),
				LastEnd: lock.Kind(rapid.Int16().Draw(t, "end")), ChangedAt: micro.Draw(t, "changed"),
			}
			if rapid.Bool().Draw(t, "held") {
				s.Leases = []lock.Lease{{
					ID: lock.LeaseID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), Mode: lock.Mode(rapid.Int16().Draw(t, "mode")),
					Holder: text.Draw(t, "holder"), TTL: whole.Draw(t, "ttl"), Grace: whole.Draw(t, "grace"), MaxHold: whole.Draw(t, "max hold"),
					AcquiredAt: micro.Draw(t, "acquired"), ExpiresAt: micro.Draw(t, "expires"), Place: rapid.Int64().Draw(t, "place"),
					Metadata: rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("{}"), json.RawMessage(`{"é":[1]}`)}).Draw(t, "metadata"),
				}}
			}
			one := decidedSwap(rapid.Uint32().Draw(t, "version"), s)
			one.draws, one.unused = rapid.Bool().Draw(t, "draws"), lock.LeaseRef(rapid.Int64().Draw(t, "unused"))
			if rapid.Bool().Draw(t, "tells") {
				one.told = &lock.Event{Kind: lock.Kind(rapid.Int16().Draw(t, "kind")), Mode: 1, Holder: text.Draw(t, "of"), Reason: text.Draw(t, "reason")}
			}
			return one
		}), 1, 20).Draw(t, "swaps")
		compare(t, conn, swaps...)
	})
}

// TestADecisionHoldsUntil the lease that there was is over, or the one that it gives.
func TestADecisionHoldsUntil(t *testing.T) {
	t.Parallel()
	conn, at := utc(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	was := lock.Lease{ExpiresAt: at, Grace: time.Second}
	gives := func(end time.Time) []lock.Lease { return []lock.Lease{{ExpiresAt: end}} }
	for name, c := range map[string]struct {
		before, after []lock.Lease
		want          string
	}{
		"a release ends what is not over":     {[]lock.Lease{was}, nil, "2026-01-01 00:00:01+00"},
		"a renewal finds its lease in time":   {[]lock.Lease{was}, gives(at.Add(time.Minute)), "2026-01-01 00:00:01+00"},
		"a renewal that comes to little":      {[]lock.Lease{was}, gives(at.Add(time.Millisecond)), "2026-01-01 00:00:00.001+00"},
		"a grant is not over when it is made": {nil, gives(at.Add(time.Minute)), "2026-01-01 00:01:00+00"},
		"nothing ends":                        {nil, nil, "infinity"},
	} {
		one := &swapping{after: lock.Record{Name: "a", Leases: c.after}}
		one.before.state.Leases = c.before
		if got := asRead(t, conn, []*swapping{one})[0]["until"]; got != c.want {
			t.Errorf("%s: until %v, want %s", name, got, c.want)
		}
	}
}
