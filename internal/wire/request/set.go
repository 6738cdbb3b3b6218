package request

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
)

// AcquireSet decodes the body of an acquire of a set.
func (d *Decoder) AcquireSet(_ string, body []byte) (lock.Acquire, error) {
	o := d.read(body, acquireSetBody)
	set := o.members()
	a, err := o.acquire("")
	a.Set = set
	return a, err
}

// RenewSet decodes the body of a renewal of a set.
func (d *Decoder) RenewSet(_ string, body []byte) (lock.Renew, error) {
	o := d.read(body, renewSetBody)
	names := o.names()
	r, err := o.renew("")
	r.Set = names
	return r, err
}

// ReleaseSet decodes the body of a release of a set.
func (d *Decoder) ReleaseSet(_ string, body []byte) (lock.Release, error) {
	o := d.read(body, releaseSetBody)
	names := o.names()
	r, err := o.release("")
	r.Set = names
	return r, err
}

// members returns the locks of a set, at least one.
func (o *object) members() []lock.Member {
	var set []lock.Member
	o.list(locksField, `an object such as {"name": "jobs:nightly"}`, func(d *Decoder, list []byte) error {
		one := &d.object
		if err := d.readObject(one, list); err != nil {
			return err
		}
		if one.notObject {
			return errElement
		}
		one.check(setMember)
		m := lock.Member{Name: one.text(nameField), Mode: one.mode(), Capacity: one.nonZeroCount(capacityField)}
		set = append(set, m)
		return one.err
	})
	return set
}

// names returns the names of a set, at least one.
func (o *object) names() []string {
	var names []string
	o.list(namesField, "a string", func(d *Decoder, _ []byte) error {
		v, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		name, err := unquote(v)
		if err != nil {
			return errElement
		}
		names = append(names, name)
		return nil
	})
	return names
}

// errElement means that an element of a list has another type.
var errElement = errors.New("another type")

// list calls read for each element of a required list, with a Decoder that is in front of the element. An error about
// the element becomes one about the body. Every element must be of this kind.
func (o *object) list(f field, kind string, read func(d *Decoder, list []byte) error) {
	list := o.value(f)
	if list == nil {
		return
	}
	var d Decoder
	d.source = *bytes.NewBuffer(list)
	d.json.Reset(&d.source, jsontext.AllowDuplicateNames(true))
	if list.Kind() != '[' {
		o.err = lock.Invalid(fieldNames[f], "must be in a list, in brackets")
		return
	}
	_, err := d.json.ReadToken()
	n := 0
	for ; err == nil && d.json.PeekKind() != ']'; n++ {
		at := fmt.Sprintf("%s/%d", fieldNames[f], n)
		if err = read(&d, list); errors.Is(err, errElement) {
			err = lock.Invalid(at, "must be %s", kind)
		} else if err != nil {
			err = within(at, err)
		}
	}
	if err == nil && n == 0 {
		err = lock.Invalid(fieldNames[f], "are missing; give 1 to %d of them, in a list", lock.MaxSetSize)
	}
	o.fail(err)
}

// within returns the error of a member of the element at this place.
func within(at string, err error) error {
	e, ok := err.(*lock.Error) //nolint:errorlint // this package has just made it
	if !ok {
		return notJSON(err)
	}
	return &lock.Error{Code: e.Code, Field: at + "/" + e.Field, Detail: at + "/" + e.Detail}
}
