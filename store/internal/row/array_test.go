package row

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// samples are values of each type of columns, of which the last is null.
var samples = map[string][]any{
	"bigint":   {new(bigint(-1 << 60)), new(bigint(7)), &pgtype.Int8{}},
	"boolean":  {&pgtype.Bool{Bool: true, Valid: true}, &pgtype.Bool{Valid: true}, &pgtype.Bool{}},
	"integer":  {new(integer(-5)), new(integer(1 << 30)), &pgtype.Int4{}},
	"json":     {&[]byte{'{', '}'}, new([]byte(nil))},
	"smallint": {new(smallint(-3)), &pgtype.Int2{}},
	"text":     {new(text("it's \"é\"")), new(text("")), &pgtype.Text{}},
	"tid":      {&pgtype.TID{BlockNumber: 1 << 31, OffsetNumber: 1 << 15, Valid: true}, &pgtype.TID{}},
	"timestamptz": {
		new(timestamp(time.Date(1999, 12, 31, 23, 59, 59, 999_999_999, time.UTC))),
		new(timestamp(time.Date(2026, 1, 2, 3, 4, 5, 678_912_345, time.Local))), new(infinity), &pgtype.Timestamptz{},
	},
	"uuid": {&pgtype.UUID{Bytes: [16]byte{1, 2, 15: 3}, Valid: true}, &pgtype.UUID{}},
	"xid":  {&pgtype.Uint32{Uint32: 1 << 31, Valid: true}, &pgtype.Uint32{}},
}

// TestAnArrayIsSentAsPgxWouldSendIt: with a null, without, and empty.
func TestAnArrayIsSentAsPgxWouldSendIt(t *testing.T) {
	t.Parallel()
	if len(samples) != len(elements) {
		t.Errorf("%d types have samples, of %d", len(samples), len(elements))
	}
	plain, ours := pgtype.NewMap(), pgtype.NewMap()
	acceptArrays(ours)
	acceptArrays(ours) // the next statement of the connection
	for kind, all := range samples {
		for n := range len(all) + 1 {
			a := newArrays([]column{{kind: kind}}, 1)
			for _, value := range all[:n] {
				a[0].add(value)
			}
			want, err := plain.Encode(elements[kind].array, pgtype.BinaryFormatCode, pgtype.FlatArray[any](all[:n]), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ours.Encode(elements[kind].array, ours.FormatCodeForOID(elements[kind].array), &a[0], []byte("before"))
			if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("%d elements of %s are sent as %x, %v; pgx sends %x", n, kind, got, err, want)
			}
		}
	}
}

// TestEveryColumnOfASwapCanBeSent: a column of another type would panic when it is first written.
func TestEveryColumnOfASwapCanBeSent(t *testing.T) {
	t.Parallel()
	for _, set := range inSwap {
		for i, a := range newArrays(set.columns, 0) {
			c := set.columns[i]
			a.add(c.value)
			if a.oid == 0 || a.n != 1 {
				t.Errorf("%s: the column %s of type %s", set.name, c.name, c.kind)
			}
		}
	}
}

// TestAConnectionStillSendsOtherArrays of the same types.
func TestAConnectionStillSendsOtherArrays(t *testing.T) {
	t.Parallel()
	m := pgtype.NewMap()
	acceptArrays(m)
	sent, err := m.Encode(pgtype.TextArrayOID, m.FormatCodeForOID(pgtype.TextArrayOID), []string{"a", `"b"`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := m.Scan(pgtype.TextArrayOID, pgtype.BinaryFormatCode, sent, &got); err != nil || len(got) != 2 || got[1] != `"b"` {
		t.Errorf("%q, %v", got, err)
	}
}
