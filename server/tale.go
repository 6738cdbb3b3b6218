package server

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// A sseEncoder is a stream of pages in the words of text/event-stream.
type sseEncoder struct {
	events *eventCache
	synced bool // whether all has been told since the beginning, or since the last gap
}

// A cursorData is what sync and gap say: a cursor.
type cursorData struct {
	Cursor string `json:"cursor"`
}

// encodePage returns the page that was asked for with that cursor, in texts to be written one after the other, and the cursor
// after them. There is always a text: a page on which there is nothing is a sign of life. Texts of events are shared
// with other streams. Those beyond maxStreamText bytes are left out, and come when the stream asks with the cursor.
//
// Whichever id a reader has last, it is a cursor after all that the reader was
// told and before all that it was not: that of a gap is where the gap begins.
func (t *sseEncoder) encodePage(p lock.Page[lock.Event], cursor string) (texts [][]byte, next string) {
	texts = make([][]byte, 0, len(p.Items)+2) // a gap before, a sync after
	if p.Gap {
		texts = append(texts, encodeSSE(cursor, "gap", cursorData{cursor}))
		t.synced = false
	}
	size := 0
	for i, e := range p.Items {
		text := t.events.text(e)
		if size += len(text); size > maxStreamText && i > 0 {
			return texts, eventID(p.Items[i-1])
		}
		texts = append(texts, text)
	}
	if !t.synced && len(p.Items) < streamPage {
		texts = append(texts, encodeSSE(p.Next, "sync", cursorData{p.Next}))
		t.synced = true
	}
	if len(texts) == 0 {
		texts = append(texts, keepAliveComment(p.Next != cursor, p.Next))
	}
	return texts, p.Next
}

// keepAliveComment tells nothing but that the stream is there, and where it is if it moved:
// an id without data is kept by readers, and is no event to them.
func keepAliveComment(moved bool, cursor string) []byte {
	if moved {
		return []byte("id: " + cursor + "\n: still here\n\n")
	}
	return []byte(": still here\n\n")
}

func eventID(e lock.Event) string { return strconv.FormatInt(e.ID, 10) }

// sseEvent returns e in the form of text/event-stream.
func sseEvent(e lock.Event) []byte { return encodeSSE(eventID(e), e.Kind.String(), wire.EventOf(e)) }

func encodeSSE(id, name string, data any) []byte {
	var text bytes.Buffer
	text.WriteString("id: " + id + "\nevent: " + name + "\ndata: ")
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(data); err != nil {
		panic(err) // Nothing that is told here fails to be JSON. recovered cuts the stream off.
	}
	text.WriteString("\n")
	return bytes.Clone(text.Bytes())
}
