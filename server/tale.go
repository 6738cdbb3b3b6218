package server

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/paddock-lock/paddock/lock"
)

// A tale is a stream of pages in the words of text/event-stream.
type tale struct {
	text   bytes.Buffer
	synced bool // whether all has been told since the beginning, or since the last gap
}

// A position is what sync and gap say: a cursor.
type position struct {
	Cursor string `json:"cursor"`
}

// page returns the page that was asked for with that cursor. It is never empty: a
// page on which there is nothing is a sign of life. The text is good until the
// next call.
//
// Whichever id a reader has last, it is a cursor after all that the reader was
// told and before all that it was not: that of a gap is where the gap begins.
func (t *tale) page(p lock.Page[lock.Event], cursor string) []byte {
	t.text.Reset()
	if p.Gap {
		t.event(cursor, "gap", position{cursor})
		t.synced = false
	}
	for _, e := range p.Items {
		t.event(strconv.FormatInt(e.ID, 10), e.Kind.String(), eventOf(e))
	}
	if !t.synced && len(p.Items) < streamPage {
		t.event(p.Next, "sync", position{p.Next})
		t.synced = true
	}
	if t.text.Len() == 0 {
		t.alive(p.Next != cursor, p.Next)
	}
	return t.text.Bytes()
}

// alive tells nothing but that the stream is there, and where it is if it moved:
// an id without data is kept by readers, and is no event to them.
func (t *tale) alive(moved bool, cursor string) {
	if moved {
		t.text.WriteString("id: " + cursor + "\n")
	}
	t.text.WriteString(": still here\n\n")
}

func (t *tale) event(id, name string, data any) {
	t.text.WriteString("id: " + id + "\nevent: " + name + "\ndata: ")
	e := json.NewEncoder(&t.text)
	e.SetEscapeHTML(false)
	if err := e.Encode(data); err != nil {
		panic(err) // Nothing that is told here fails to be JSON. recovered cuts the stream off.
	}
	t.text.WriteString("\n")
}
