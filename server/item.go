package server

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// An item is one of a batch as it was read. It has room for all members that there
// are, which are those of an acquire.
type item struct {
	openapi.BatchAcquire
	seen    fieldSet
	unknown []string // the first member that no item has
	foreign bool     // it is no object
	size    int      // of its text, in bytes
	fault   error    // of the first member that is there twice, or of another type
	null    fieldSet // the members that are null
}

// take notes a member of the item. Whether the item may have it is known at the end,
// when it is known what that is.
func (i *item) take(name string, value jsontext.Value) {
	place := placeOf(name)
	if place < 0 {
		i.unknown = append(i.unknown, name)[:1]
		return
	}
	switch {
	case i.seen.has(place):
		i.blame(lock.Invalid(name, "is there twice; keep one of them"))
	case value.Kind() == 'n':
		i.null |= 1 << place
	case !fields[place].set(&i.BatchAcquire, value):
		i.blame(member{name: name}.mistyped(fields[place].kind))
	}
	i.seen |= 1 << place
}

func (i *item) blame(err error) {
	if i.fault == nil {
		i.fault = err
	}
}

// command returns the command that the item is.
func (i *item) command() (lock.Command, error) {
	k, known := kinds[i.Op]
	switch {
	case i.foreign:
		return nil, &lock.Error{Code: lock.ErrInvalid, Detail: "The item is not a JSON object. Send one, in braces."}
	case i.size > MaxBodySize:
		return nil, tooLarge("item", MaxBodySize)
	case !known:
		return nil, lock.Invalid("op", "must be acquire, renew or release")
	}
	if err := i.check(k); err != nil {
		return nil, err
	}
	return k.command(i.BatchAcquire)
}

// check refuses what an item of the kind does not have.
func (i *item) check(k kind) error {
	extra, missing := append(i.unknown, (i.seen&^k.may).names()...), k.must&^i.seen
	switch {
	case i.fault != nil:
		return i.fault
	case len(extra) > 0:
		return k.hasNo(extra[0])
	case i.null != 0:
		name := i.null.names()[0]
		return member{name: name, required: k.must.has(placeOf(name))}.checkNull(jsontext.Value("null"))
	case missing != 0:
		return lock.Invalid(missing.names()[0], "is missing; add it to the item")
	case i.Metadata != nil:
		return checkFreeForm("metadata", jsontext.Value(i.Metadata))
	}
	return nil
}

// A kind is what an item can be.
type kind struct {
	may, must fieldSet
	command   func(openapi.BatchAcquire) (lock.Command, error)
}

// hasNo refuses a member that items of the kind do not have. Of what goes with waiting
// it says where one can wait.
func (k kind) hasNo(name string) error {
	switch name {
	case "wait_ms":
		return lock.ValidateBatchItem(lock.Acquire{Wait: lock.MaxWait})
	case "keep_place":
		return lock.ValidateBatchItem(lock.Acquire{KeepPlace: true})
	}
	return lock.Invalid(name, "is not a member of such an item, which may have %s", strings.Join(k.may.names(), ", "))
}

// checkFreeForm refuses a member that may be any JSON if it has a name twice, or is too
// deep.
func checkFreeForm(name string, text jsontext.Value) error {
	var at *jsontext.SyntacticError
	if _, err := jsontext.NewDecoder(bytes.NewReader(text)).ReadValue(); errors.As(err, &at) {
		return lock.Invalid(name, "has the name %q twice in one object; keep one of them", at.JSONPointer.LastToken())
	}
	return member{name: name}.checkDepth(text)
}
