package paddock_test

import (
	"errors"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func mark(t *testing.T, cursor string) paddock.Mark {
	t.Helper()
	m, err := paddock.ParseMark(cursor)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMarksAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, cursor := range []string{"0", "4711", "00-7", "00-7.12-9223372036854775807", "03-n.62-e"} {
		if got := mark(t, cursor).String(); got != cursor {
			t.Errorf("%s is written %s", cursor, got)
		}
	}
	for _, cursor := range []string{"-7", "7.8", "x", "00-7.00-8", "01-7.00-8", "63-1", "00-", "00--7", "n", "7.01-8", "00-7.", "00-x"} {
		if m, err := paddock.ParseMark(cursor); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("%s is read as %v, %v", cursor, m, err)
		}
	}
}

func TestAMarkOfCellsHasAPlaceInEach(t *testing.T) {
	t.Parallel()
	m := mark(t, "00-7.02-n")
	for _, c := range []struct {
		e    lock.Event
		has  bool
		then string
	}{
		{lock.Event{ID: 7}, true, "00-7.02-n"}, {lock.Event{ID: 8}, false, "00-8.02-n"}, {lock.Event{ID: 3, Cell: 1}, false, "00-7.01-3.02-n"},
		{lock.Event{ID: 3, Cell: 2}, false, "00-7.02-3"},
	} {
		if m.Has(&c.e) != c.has || m.After(&c.e).String() != c.then {
			t.Errorf("of event %d of cell %d it has %v, then it is %s", c.e.ID, c.e.Cell, m.Has(&c.e), m.After(&c.e))
		}
	}
	if e := (lock.Event{ID: 9, Cell: 3}); mark(t, "8").Has(&e) || mark(t, "8").After(&e).String() != "9" {
		t.Error("a plain mark has a place in a cell")
	}
	for _, c := range []struct {
		m, o string
		want bool
	}{
		{"7", "7", true}, {"7", "8", false}, {"0", "0", true}, {"0", "1", false}, {"00-7.01-3", "00-7", true}, {"00-7", "00-7.01-3", false},
		{"00-7.01-3", "00-6.01-4", false}, {"00-7.01-3", "00-6.01-3.02-n", true},
	} {
		if mark(t, c.m).Covers(mark(t, c.o)) != c.want {
			t.Errorf("%s covers %s: %v", c.m, c.o, !c.want)
		}
	}
}
