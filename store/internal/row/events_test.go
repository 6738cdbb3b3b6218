package row

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

func anyEvent(t *rapid.T, name string, at time.Time, revision int64) lock.Event {
	var cycle []lock.DeadlockStep
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		cycle = append(cycle, lock.DeadlockStep{
			Name: rapid.String().Draw(t, "lock"), Holder: rapid.String().Draw(t, "caller"), Ahead: rapid.Bool().Draw(t, "ahead"), At: rapid.String().Draw(t, "there"),
		})
	}
	kind := rapid.OneOf(rapid.SampledFrom([]lock.Kind{lock.Revoked, lock.Released, lock.Frozen, lock.Thawed, lock.Opened}), rapid.Map(rapid.Int16(), func(n int16) lock.Kind { return lock.Kind(n) })).Draw(t, "kind")
	if kind == lock.Refused { // it has other fields there
		cycle = nil
	}
	slots := lock.Slots("")
	if kind != lock.Refused && len(cycle) == 0 {
		slots = rapid.SampledFrom([]lock.Slots{"", "1 2", "7 12 1000"}).Draw(t, "slots")
	}
	until := time.Time{}
	if kind != lock.Refused && len(cycle) == 0 {
		until = rapid.SampledFrom([]time.Time{{}, time.UnixMicro(1).UTC(), at.Add(time.Hour)}).Draw(t, "until").Truncate(time.Microsecond).UTC()
		if until.UnixMicro() == 0 {
			until = time.Time{}
		}
	}
	return lock.Event{
		Caller:  anyCaller(t),
		Session: lock.SessionRef(rapid.SampledFrom([]int64{0, 1, 1<<63 - 1}).Draw(t, "session")),
		Set:     rapid.SampledFrom([][]string{nil, {"a", "b:c"}, {"a", "b", "c"}}).Draw(t, "set"),
		Until:   until,
		Slots:   slots,
		Cycle:   lock.CycleOf(cycle),
		Name:    name, At: at.Add(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "delay")) * time.Microsecond), Revision: revision,
		Slot: rapid.IntRange(0, 1000).Draw(t, "slot"), Kind: kind,
		Mode: lock.Mode(rapid.Int16().Draw(t, "mode")), Holder: rapid.String().Draw(t, "holder"), Reason: rapid.String().Draw(t, "reason"),
		Token: anyStoredToken.Draw(t, "token"), Place: rapid.Int64().Draw(t, "place"),
	}
}

// anyCaller draws a caller that is known in full, in part or not at all.
func anyCaller(t *rapid.T) lock.Caller {
	return lock.Caller{
		Name: rapid.String().Draw(t, "key"), KeyID: rapid.SampledFrom([]string{"", "k3f9a2xyqw"}).Draw(t, "key id"),
		Trace: rapid.SampledFrom([]string{"", "0af7651916cd43dd8448eb211c80319c"}).Draw(t, "trace"),
	}
}

// anyStoredToken draws a token that is known, or one that the row of the event grants.
var anyStoredToken = rapid.OneOf(anyToken, rapid.Custom(func(t *rapid.T) lock.Token {
	return lock.Provisional(rapid.IntRange(0, 9).Draw(t, "provisional token"))
}))

func TestParseEntryReturnsWhatAppendEntryWrote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name, at := rapid.String().Draw(t, "name"), anyInstant.Draw(t, "at")
		previous, batch := rapid.Int64Min(0).Draw(t, "previous"), rapid.Int64Range(1, 1<<45-1).Draw(t, "batch")
		first := rapid.IntRange(0, EventsPerBatch-10).Draw(t, "first")
		firstToken := rapid.IntRange(0, TokensPerBatch-10).Draw(t, "first token")
		var events []lock.Event
		for i := range rapid.IntRange(0, 10).Draw(t, "events") {
			events = append(events, anyEvent(t, name, at, int64(i)))
		}
		e, err := ParseEntry(appendEntry([]byte("x"), name, previous, first, firstToken, events, at)[1:], batch, at)
		if err != nil || e.Name != name || e.Previous != previous || len(e.Events) != len(events) {
			t.Fatalf("%+v, %v", e, err)
		}
		for i, want := range events {
			want.ID = batch*EventsPerBatch + int64(first+i)
			want.SetTokens(lock.Token(batch*TokensPerBatch + int64(firstToken)))
			if !reflect.DeepEqual(e.Events[i], want) {
				t.Errorf("read  %+v\nwrote %+v", e.Events[i], want)
			}
		}
	})
}

// FuzzEntryText: any text comes back; bytes that are no UTF-8 come back as the replacement character.
func FuzzEntryText(f *testing.F) {
	for _, text := range []string{"", "a", "\x00", "\x1f\"\\/<>&", "\x7f", "é\u2028\U0001f984", "\xff\xed\xa0\x80", strings.Repeat("n", 200)} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		at := time.Unix(1, 0).UTC()
		e, err := ParseEntry(appendEntry(nil, name, 7, 0, 0, []lock.Event{{Holder: text, Reason: text, Caller: lock.Caller{Name: text}, At: at}}, at), 1, at)
		if err != nil || len(e.Events) != 1 {
			t.Fatalf("%+v, %v", e, err)
		}
		for wrote, read := range map[string]string{name: e.Name, text: e.Events[0].Holder} {
			if utf8.ValidString(wrote) && read != wrote {
				t.Errorf("wrote %q, read %q", wrote, read)
			}
			if !utf8.ValidString(read) {
				t.Errorf("read %q", read)
			}
		}
		if v := e.Events[0]; v.Reason != v.Holder || v.Caller.Name != v.Holder {
			t.Errorf("reason %q, revoked by %q, holder %q", v.Reason, v.Caller.Name, v.Holder)
		}
	})
}

// TestEntryOfARefusedTokenIsReadBack between other events, which have fewer fields.
func TestEntryOfARefusedTokenIsReadBack(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0).UTC()
	events := []lock.Event{
		{Revision: 1, Kind: lock.Granted, Mode: lock.Exclusive, Holder: "a", Token: 3},
		{Revision: 2, Kind: lock.Refused, Mode: lock.Shared, Slot: 2, Holder: "b", Token: 2, Reason: "table \"t\"",
			Newest: 3, Late: 1500 * time.Microsecond, HeldBy: "a [1]"},
		{Revision: 3, Kind: lock.Released, Mode: lock.Exclusive, Holder: "a", Token: 3},
	}
	for i := range events {
		events[i].ID, events[i].Name, events[i].At = 9*EventsPerBatch+int64(i), "n", at
	}
	e, err := ParseEntry(appendEntry(nil, "n", 0, 0, 0, events, at), 9, at)
	if diff := cmp.Diff(events, e.Events); err != nil || diff != "" {
		t.Errorf("%v, read other events (-wrote +read):\n%s", err, diff)
	}
}

// FuzzParseEntry: what is no entry is an error, whatever it is, and an entry that is read can be written again.
func FuzzParseEntry(f *testing.F) {
	at := time.Unix(1, 0).UTC()
	f.Add([]byte(`["a",3,[0,0,1,1,1,"h",5,0,"",0]]`))
	for _, bad := range []string{``, `null`, `[]`, `["a"]`, `["a","b"]`, `["a",1,2]`, `["a",1,[0,0,1,1,1,"h",5,0,""]]`, `["a",1,[0,0,1,1,1,2,5,0,"",0]]`, `{}`} {
		f.Add([]byte(bad))
	}
	f.Fuzz(func(t *testing.T, element []byte) {
		e, err := ParseEntry(element, 9, at)
		if err != nil {
			if !strings.Contains(err.Error(), "event_batches (id = 9)") {
				t.Errorf("the error does not name the row: %v", err)
			}
			return
		}
		if _, err := ParseEntry(appendEntry(nil, e.Name, e.Previous, 0, 0, e.Events, at), 9, at); err != nil {
			t.Errorf("written again: %v", err)
		}
	})
}
