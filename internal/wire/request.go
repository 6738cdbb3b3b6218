package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxDepth is the number of arrays and objects of free-form JSON that may contain each other.
	maxDepth = 32
	// uuidLength is the length of a UUID in its canonical form.
	uuidLength = 36
)

// A Decoder reads bodies of requests, one after the other. What it returns shares no memory with it. The zero
// Decoder is ready to use.
type Decoder struct {
	// Body is memory for the caller to read a body into. The methods do not use it.
	Body bytes.Buffer

	json   jsontext.Decoder
	source bytes.Buffer // of json
	object object
}

// Acquire decodes the body of an acquire of the lock of that name.
func (d *Decoder) Acquire(name string, body []byte) (lock.Acquire, error) {
	return d.read(body, acquireBody).acquire(name)
}

// Renew decodes the body of a renewal.
func (d *Decoder) Renew(name string, body []byte) (lock.Renew, error) {
	return d.read(body, renewBody).renew(name)
}

// Release decodes the body of a release.
func (d *Decoder) Release(name string, body []byte) (lock.Release, error) {
	return d.read(body, releaseBody).release(name)
}

// Revoke decodes the body of a revocation.
func (d *Decoder) Revoke(name string, body []byte) (lock.Revoke, error) {
	o := d.read(body, revokeBody)
	return lock.Revoke{
		Name: name, AcquiredAt: o.instant(acquiredAtField), Token: o.token(), Reason: o.text(reasonField),
		SkipGrace: o.boolean(skipGraceField), Slot: o.slot(),
	}, o.err
}

// Verify decodes the body of a question for a token. Its lock is named in the body.
func (d *Decoder) Verify(_ string, body []byte) (lock.Verify, error) {
	o := d.read(body, verifyBody)
	return lock.Verify{Token: o.token(), Name: o.text(nameField), Slot: o.slot()}, o.err
}

// FencedWrite decodes the body of a write to the resource of that key.
func (d *Decoder) FencedWrite(key string, body []byte) (lock.FencedWrite, error) {
	o := d.read(body, fencedWriteBody)
	w := lock.FencedWrite{Key: key, Token: o.token()}
	if version, ok := o.integer(ifVersionField, 64); ok {
		w.IfVersion = &version
	}
	w.Lock, w.Slot, w.Value = o.text(lockField), o.count(slotField), o.freeForm(valueField)
	return w, o.err
}

func (o *object) acquire(name string) (lock.Acquire, error) {
	return lock.Acquire{
		Name: name, Capacity: o.count(capacityField), Grace: o.duration(graceField), Holder: o.text(holderField),
		KeepPlace: o.boolean(keepPlaceField), LeaseID: o.chosenID(), MaxHold: o.positive(maxHoldField),
		Metadata: o.freeForm(metadataField), Mode: o.mode(), TTL: o.positive(ttlField), Wait: o.duration(waitField),
	}, o.err
}

func (o *object) renew(name string) (lock.Renew, error) {
	return lock.Renew{
		Name: name, LeaseID: o.id(leaseIDField), Metadata: o.freeForm(metadataField), TTL: o.positive(ttlField),
	}, o.err
}

func (o *object) release(name string) (lock.Release, error) {
	return lock.Release{Name: name, LeaseID: o.id(leaseIDField)}, o.err
}

// read reads a body, which must be one object of that shape and nothing else.
func (d *Decoder) read(body []byte, s shape) *object {
	o := &d.object
	err := d.begin(body, `{"holder": "worker-1"} to acquire`)
	if err == nil {
		err = d.readObject(o, body)
		switch {
		case o.err != nil:
			err = o.err
		case err != nil:
			err = notJSON(err)
		default:
			err = d.end()
		}
	}
	o.err = err
	o.check(s)
	return o
}

// begin begins to read a body, which must be an object.
func (d *Decoder) begin(body []byte, example string) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return InvalidBody("is empty. Send a JSON object, such as %s", example)
	}
	d.source = *bytes.NewBuffer(body)
	d.json.Reset(&d.source, jsontext.AllowDuplicateNames(true)) // readObject finds them
	if kind := d.json.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return InvalidBody("is not a JSON object. Send one, in braces")
	}
	return nil
}

// end returns an error unless the body ends after its object.
func (d *Decoder) end() error {
	if _, err := d.json.ReadToken(); !errors.Is(err, io.EOF) {
		return InvalidBody("has something after its object. Send one object and nothing else")
	}
	return nil
}

// An object is the JSON object of a single call or of an item of a batch. Reading it notes the text of each member;
// the methods return values and note the first fault, in the order in which they are called.
type object struct {
	shape     shape
	values    [fieldCount]jsontext.Value // nil: not sent; of the memory of the body
	unknown   *string                    // the first in alphabetical order of the names that no body has
	size      int                        // of the text, in bytes
	notObject bool
	err       error
}

// readObject reads the next value of body into o. It returns an error if the text is not JSON.
func (d *Decoder) readObject(o *object, body []byte) error {
	*o = object{}
	start := d.json.InputOffset()
	if d.json.PeekKind() != '{' {
		o.notObject = true
		return d.json.SkipValue()
	}
	_, err := d.json.ReadToken()
	for err == nil && d.json.PeekKind() != '}' {
		var name, value jsontext.Value
		if name, err = d.json.ReadValue(); err != nil {
			break
		}
		f := o.field(name) // now: reading on overwrites name
		if value, err = d.json.ReadValue(); err == nil && f < fieldCount {
			end := int(d.json.InputOffset())
			o.values[f] = body[end-len(value) : end : end]
		}
	}
	if err == nil {
		_, err = d.json.ReadToken()
		o.size = len(bytes.TrimLeft(body[start:d.json.InputOffset()], ", \t\r\n"))
	}
	return err
}

// field returns the field that the JSON string names, or fieldCount if there is none. It notes unknown names and
// names that are there twice.
func (o *object) field(name jsontext.Value) field {
	bare := name[1 : len(name)-1]
	if bytes.IndexByte(bare, '\\') >= 0 {
		text, _ := unquote(name) // it was read as a name
		bare = []byte(text)
	}
	for f := range fieldCount {
		if fieldNames[f] != string(bare) {
			continue
		}
		if o.values[f] != nil {
			o.fail(lock.Invalid(fieldNames[f], "is there twice; keep one of them"))
		}
		return f
	}
	if o.unknown == nil || string(bare) < *o.unknown {
		o.unknown = new(string(bare))
	}
	return fieldCount
}

func (o *object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// check notes whether o has a member that its shape does not have.
func (o *object) check(s shape) {
	o.shape = s
	if o.err != nil {
		return
	}
	extra := o.unknown
	for f := range fieldCount {
		if o.values[f] != nil && !s.may.has(f) && (extra == nil || fieldNames[f] < *extra) {
			extra = &fieldNames[f]
		}
	}
	if extra != nil {
		o.err = s.hasNo(*extra)
	}
}

// value returns the text of a member, nil if it was not sent or after a fault. It refuses null.
func (o *object) value(f field) jsontext.Value {
	v := o.values[f]
	switch {
	case o.err != nil:
		return nil
	case v == nil && o.shape.must.has(f):
		o.err = lock.Invalid(fieldNames[f], "is missing; add it to the %s", o.shape.what)
	case v == nil || v.Kind() != 'n' || f == valueField:
		return v
	case o.shape.must.has(f):
		o.err = lock.Invalid(fieldNames[f], "is null; give it a value")
	default:
		o.err = lock.Invalid(fieldNames[f], "is null; give it a value or leave it out")
	}
	return nil
}

func (o *object) text(f field) string {
	v := o.value(f)
	if v == nil {
		return ""
	}
	text, err := unquote(v)
	if err != nil {
		o.err = lock.Invalid(fieldNames[f], "must be a string")
	}
	return text
}

func (o *object) id(f field) (id lock.LeaseID) {
	v := o.value(f)
	if v == nil {
		return id
	}
	parsed, err := uuid.UUID{}, strconv.ErrSyntax
	if v.Kind() == '"' && len(v) == uuidLength+len(`""`) {
		parsed, err = uuid.ParseBytes(v[1 : 1+uuidLength])
	}
	if err != nil {
		o.err = lock.Invalid(fieldNames[f], "must be a UUID: a string of 32 hexadecimal digits, grouped 8-4-4-4-12")
	}
	return lock.LeaseID(parsed)
}

// chosenID returns the lease_id of an acquire, which may be left out but is not all zeros.
func (o *object) chosenID() lock.LeaseID {
	id := o.id(leaseIDField)
	if o.err == nil && o.values[leaseIDField] != nil && id == (lock.LeaseID{}) {
		o.err = lock.Invalid("lease_id", "is all zeros; give a random UUID, or leave it out")
	}
	return id
}

// integer returns a number in digits, without fraction or exponent, and whether it was sent.
func (o *object) integer(f field, bits int) (n int64, ok bool) {
	v := o.value(f)
	if v == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, bits)
	if err != nil {
		o.err = lock.Invalid(fieldNames[f], "must be a whole number within its bounds, in digits, "+
			"without fraction or exponent")
	}
	return n, err == nil
}

func (o *object) token() lock.Token {
	n, _ := o.integer(fencingTokenField, 64)
	return lock.Token(n)
}

func (o *object) slot() *int {
	n, ok := o.integer(slotField, strconv.IntSize)
	if !ok {
		return nil
	}
	return new(int(n))
}

// count returns a number that may be left out but is not zero.
func (o *object) count(f field) int {
	n, ok := o.integer(f, strconv.IntSize)
	if ok && n == 0 {
		o.err = lock.Invalid(fieldNames[f], "is 0; give 1 to %d, or leave it out", lock.MaxHolders)
	}
	return int(n)
}

// duration returns a member in milliseconds as a Duration, or the nearest Duration.
func (o *object) duration(f field) time.Duration {
	ms, _ := o.integer(f, 64)
	return durationOf(ms)
}

func durationOf(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

// positive returns a duration that may be left out but is not zero or less.
func (o *object) positive(f field) time.Duration {
	ms, ok := o.integer(f, 64)
	if ok && ms <= 0 {
		o.err = lock.Invalid(fieldNames[f], "is %d; give %d or more (milliseconds), or leave it out",
			ms, lock.MinTTL.Milliseconds())
	}
	return durationOf(ms)
}

func (o *object) boolean(f field) bool {
	v := o.value(f)
	if v != nil && v.Kind() != 't' && v.Kind() != 'f' {
		o.err = lock.Invalid(fieldNames[f], "must be true or false, without quotes")
	}
	return v.Kind() == 't'
}

func (o *object) instant(f field) (at time.Time) {
	if v := o.value(f); v != nil && strict.Unmarshal(v, &at) != nil {
		o.err = lock.Invalid(fieldNames[f], "must be an instant as in RFC 3339, such as 2026-01-02T03:04:05.678901Z")
	}
	return at
}

// mode returns the mode; for an unknown one, a mode that the domain refuses.
func (o *object) mode() lock.Mode {
	text := o.text(modeField)
	if o.values[modeField] == nil {
		return 0
	}
	return cmp.Or(lock.ModeOf(text), -1)
}

// freeForm returns a copy of a member that may be any JSON, within maxDepth and without duplicate names.
func (o *object) freeForm(f field) json.RawMessage {
	v := o.value(f)
	if v == nil {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	_, err := d.ReadToken()
	for ; err == nil; _, err = d.ReadToken() {
		if d.StackDepth() > maxDepth {
			o.err = lock.Invalid(fieldNames[f], "is more than %d arrays and objects deep; make it flatter", maxDepth)
			return nil
		}
	}
	if at := (*jsontext.SyntacticError)(nil); errors.As(err, &at) { // of a duplicate: v is known to be JSON
		o.err = lock.Invalid(fieldNames[f], "has the name %q twice in one object; keep one of them",
			at.JSONPointer.LastToken())
	}
	return json.RawMessage(bytes.Clone(v))
}

func unquote(text jsontext.Value) (string, error) {
	if text.Kind() != '"' {
		return "", strconv.ErrSyntax
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1]), nil
	}
	b, err := jsontext.AppendUnquote(nil, text)
	return string(b), err
}

// notJSON says where the body stops being JSON.
func notJSON(err error) error {
	if at := (*jsontext.SyntacticError)(nil); errors.As(err, &at) {
		return InvalidBody("is not valid JSON at byte %d. Send one JSON object, in UTF-8", at.ByteOffset)
	}
	return InvalidBody("is cut short. Send a whole JSON object")
}
