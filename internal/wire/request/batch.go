package request

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// Batch decodes the body of a batch. It returns a command and a result for each item. If an item cannot be decoded,
// its result has the error and its command is undefined. A returned error concerns the batch as a whole.
func Batch(body []byte) ([]lock.Command, []paddock.Result, error) {
	var b struct {
		Items items `json:"items"`
	}
	// AllowDuplicateNames, since an item that has one is refused alone.
	options := json.JoinOptions(strictNoNull, jsontext.AllowDuplicateNames(true))
	var whole *lock.Error
	switch err := json.Unmarshal(body, &b, options); {
	case errors.As(err, &whole):
		return nil, nil, whole
	case err != nil:
		return nil, nil, refusal(body, err, reflect.TypeOf(b))
	case b.Items.commands == nil:
		return nil, nil, lock.Invalid("items", "is missing; add it")
	case len(b.Items.commands) == 0:
		return nil, nil, lock.Invalid("items", "has 0 items; give 1 to %d", paddock.MaxBatch)
	}
	return b.Items.commands, b.Items.results, nil
}

// items are the commands of the items that were decoded, and their errors.
type items struct {
	commands []lock.Command // nil before the list
	results  []paddock.Result

	json   jsontext.Decoder
	source bytes.Buffer // that json reads
}

// UnmarshalJSONFrom decodes the list, item by item.
func (i *items) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch {
	case i.commands != nil:
		return fault("is there twice; keep one of them")
	case d.PeekKind() != '[':
		return fault("must be in a list, in brackets")
	}
	i.commands = []lock.Command{}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != ']' {
		if err := paddock.CheckBatch(len(i.commands) + 1); err != nil {
			return err
		}
		var text jsontext.Value
		if text, err = d.ReadValue(); err == nil {
			command, err := i.item(text)
			i.commands, i.results = append(i.commands, command), append(i.results, paddock.Result{Err: err})
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return err
}

// The models of items.
type (
	acquireItem api.BatchAcquire
	renewItem   api.BatchRenew
	releaseItem api.BatchRelease
)

// item decodes an item.
func (i *items) item(text jsontext.Value) (lock.Command, error) {
	switch {
	case text.Kind() != '{':
		return nil, &lock.Error{Code: lock.ErrInvalid, Detail: "The item is not a JSON object. Send one, in braces."}
	case len(text) > MaxBodySize:
		return nil, TooLarge("item", MaxBodySize)
	}
	switch i.op(text) {
	case string(api.Acquire):
		return asCommand(Read[acquireItem]("", text))
	case string(api.Renew):
		return asCommand(Read[renewItem]("", text))
	case string(api.Release):
		return asCommand(Read[releaseItem]("", text))
	}
	return nil, lock.Invalid("op", "must be acquire, renew or release")
}

// op returns the op of an item, empty if there is none or it is no string.
func (i *items) op(text jsontext.Value) string {
	i.source = *bytes.NewBuffer(text)
	i.json.Reset(&i.source, jsontext.AllowDuplicateNames(true))
	_, err := i.json.ReadToken()
	for err == nil && i.json.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = i.json.ReadToken(); name.String() != "op" {
			err = i.json.SkipValue()
		} else if i.json.PeekKind() == '"' {
			name, _ = i.json.ReadToken()
			return name.String()
		}
	}
	return ""
}

func asCommand[Command lock.Command](c Command, err error) (lock.Command, error) { return c, err }

func (m acquireItem) command(string) (lock.Acquire, error) {
	a, err := Acquire{
		Capacity: m.Capacity, GraceMs: m.GraceMs, Holder: m.Holder, LeaseID: m.LeaseID, MaxHoldMs: m.MaxHoldMs,
		Metadata: m.Metadata, Mode: m.Mode, Once: m.Once, OnExpiry: m.OnExpiry, Permits: m.Permits, SessionID: m.SessionID, TaskID: m.TaskID, TTLMs: m.TTLMs,
	}.command(m.Name)
	return *a, err
}

func (m renewItem) command(string) (lock.Renew, error) {
	return Renew{LeaseID: m.LeaseID, Metadata: m.Metadata, TTLMs: m.TTLMs}.command(m.Name)
}

func (m releaseItem) command(string) (lock.Release, error) {
	return Release{LeaseID: m.LeaseID, ClosedMs: m.ClosedMs, OncePer: m.OncePer, TimeZone: m.TimeZone}.command(m.Name)
}
