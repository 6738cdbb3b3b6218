package request

import (
	"errors"
	"fmt"
	"io"

	"github.com/paddock-lock/paddock/api"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// MaxBodySize is the greatest size of the body of a single call, and of an item of a batch, in bytes.
	MaxBodySize = 16 << 10
	// minItemSize is the approximate size of the shortest item, in bytes. Batch estimates the number of items with it.
	minItemSize = 80
)

// Batch decodes the body of a batch. It returns a command and a result for each item. If an item cannot be decoded,
// its result has the error and its command is undefined. A returned error concerns the batch as a whole.
func (d *Decoder) Batch(body []byte) ([]lock.Command, []lock.Result, error) {
	sizeHint := min(len(body)/minItemSize+1, lock.MaxBatch)
	commands, results := make([]lock.Command, 0, sizeHint), make([]lock.Result, 0, sizeHint)
	err := d.readBatch(body, func(o *object) {
		command, err := o.command()
		commands, results = append(commands, command), append(results, lock.Result{Err: err})
	})
	return commands, results, err
}

// readBatch calls visit with each item of the batch. The object is valid until visit returns.
func (d *Decoder) readBatch(body []byte, visit func(*object)) error {
	if err := d.begin(body, `{"items": [{"op": "renew", "name": "jobs:nightly", "lease_id": "…"}]}`); err != nil {
		return err
	}
	err := d.readList(body, visit)
	if at := (*jsontext.SyntacticError)(nil); errors.As(err, &at) || errors.Is(err, io.ErrUnexpectedEOF) {
		return notJSON(err)
	} else if err != nil {
		return err
	}
	return d.end()
}

// readList reads {"items": […]}.
func (d *Decoder) readList(body []byte, visit func(*object)) error {
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	items, seen := 0, false
	for d.json.PeekKind() != '}' {
		name, err := d.json.ReadToken()
		switch {
		case err != nil:
			return err
		case name.String() != "items":
			return errUnknown(name.String(), "is not a member of this body, which may have items")
		case seen:
			return lock.Invalid("items", "is there twice; keep one of them")
		}
		if items, err = d.readItems(body, visit); err != nil {
			return err
		}
		seen = true
	}
	if items == 0 {
		return lock.Invalid("items", "are missing; give 1 to %d of them, in a list", lock.MaxBatch)
	}
	_, err := d.json.ReadToken()
	return err
}

// readItems reads a list and returns the number of its items.
func (d *Decoder) readItems(body []byte, visit func(*object)) (items int, err error) {
	if kind := d.json.PeekKind(); kind != '[' && kind != jsontext.KindInvalid {
		return 0, lock.Invalid("items", "must be in a list, in brackets")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return 0, err
	}
	for ; d.json.PeekKind() != ']'; items++ {
		if err := lock.CheckBatch(items + 1); err != nil {
			return 0, err
		}
		if err := d.readObject(&d.object, body); err != nil {
			return 0, err
		}
		visit(&d.object)
	}
	_, err = d.json.ReadToken()
	return items, err
}

// command converts an item to its command.
func (o *object) command() (lock.Command, error) {
	switch {
	case o.notObject:
		return nil, &lock.Error{Code: lock.ErrInvalid, Detail: "The item is not a JSON object. Send one, in braces."}
	case o.size > MaxBodySize:
		return nil, TooLarge("item", MaxBodySize)
	}
	op, _ := unquote(o.values[opField]) // empty if op is missing or no string
	switch op {
	case string(api.Acquire):
		o.check(acquireItem)
		return commandOf(o.acquire(o.text(nameField)))
	case string(api.Renew):
		o.check(renewItem)
		return commandOf(o.renew(o.text(nameField)))
	case string(api.Release):
		o.check(releaseItem)
		return commandOf(o.release(o.text(nameField)))
	}
	return nil, lock.Invalid("op", "must be acquire, renew or release")
}

func commandOf[Command lock.Command](c Command, err error) (lock.Command, error) { return c, err }

// InvalidBody returns an error about a body as a whole. The format continues a sentence that begins with "The body",
// without a full stop.
func InvalidBody(format string, args ...any) error {
	return &lock.Error{Code: lock.ErrInvalid, Detail: "The body " + fmt.Sprintf(format, args...) + "."}
}

// TooLarge returns the error about a body or an item with more bytes than its limit.
func TooLarge(what string, limit int64) error {
	detail := fmt.Sprintf("The %s has more than %d bytes. Send less.", what, limit)
	return &lock.Error{Code: lock.Code(api.CodeBodyTooLarge), Detail: detail}
}
