package request

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxDepth is the maximum nesting of arrays and objects in free-form JSON.
	maxDepth = 32
	// uuidLength is the length of a UUID in its canonical form.
	uuidLength = 36
)

// A Decoder decodes the bodies of requests, one at a time. Its results share no memory with it or the body. The zero
// Decoder is ready to use.
type Decoder struct {
	// Body is a buffer that callers may reuse for the body. The methods do not use it.
	Body bytes.Buffer

	json   jsontext.Decoder
	source bytes.Buffer // that json reads
	object object
}

// Acquire decodes the body of an acquire of the lock with this name.
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

// Verify decodes the body of a token verification. The body has the name of the lock.
func (d *Decoder) Verify(_ string, body []byte) (lock.Verify, error) {
	o := d.read(body, verifyBody)
	return lock.Verify{Token: o.token(), Name: o.text(nameField), Slot: o.slot()}, o.err
}

// ReportStale decodes the body of a report of a stale token. The body has the name of the lock.
func (d *Decoder) ReportStale(_ string, body []byte) (lock.ReportStale, error) {
	o := d.read(body, reportBody)
	return lock.ReportStale{Token: o.token(), Name: o.text(nameField), Slot: o.slot(), Where: o.text(whereField)}, o.err
}

// FencedWrite decodes the body of a write to the resource with this key.
func (d *Decoder) FencedWrite(key string, body []byte) (lock.FencedWrite, error) {
	o := d.read(body, fencedWriteBody)
	w := lock.FencedWrite{Key: key, Token: o.token()}
	if version, ok := o.integer(ifVersionField, 64); ok {
		w.IfVersion = &version
	}
	w.Lock, w.Slot, w.Value = o.text(lockField), o.nonZeroCount(slotField), o.freeForm(valueField)
	return w, o.err
}

// None checks the body of a call that has none. It may be an object without members.
func (d *Decoder) None(body []byte) error { return d.read(body, noBody).err }

func (o *object) acquire(name string) (lock.Acquire, error) {
	return lock.Acquire{
		Name: name, Capacity: o.nonZeroCount(capacityField), Grace: o.duration(graceField), Holder: o.text(holderField),
		KeepPlace: o.boolean(keepPlaceField), LeaseID: o.optionalID(leaseIDField, "a random UUID"), MaxHold: o.positiveDuration(maxHoldField),
		Metadata: o.freeForm(metadataField), Mode: o.mode(), TTL: o.positiveDuration(ttlField), Wait: o.duration(waitField),
		SessionID: lock.SessionID(o.optionalID(sessionIDField, "that of an open session")), Task: lock.TaskID(o.text(taskIDField)),
	}, o.err
}

func (o *object) renew(name string) (lock.Renew, error) {
	return lock.Renew{
		Name: name, LeaseID: o.id(leaseIDField), Metadata: o.freeForm(metadataField), TTL: o.positiveDuration(ttlField),
	}, o.err
}

func (o *object) release(name string) (lock.Release, error) {
	return lock.Release{Name: name, LeaseID: o.id(leaseIDField)}, o.err
}

// read decodes a body, which must be one object of shape s and nothing else. The object has the error, if any.
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

// begin resets the decoder to body, which must be an object.
func (d *Decoder) begin(body []byte, example string) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return InvalidBody("is empty. Send a JSON object, such as %s", example)
	}
	d.source = *bytes.NewBuffer(body)
	d.json.Reset(&d.source, jsontext.AllowDuplicateNames(true)) // readObject detects duplicates
	if kind := d.json.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return InvalidBody("is not a JSON object. Send one, in braces")
	}
	return nil
}

// end returns an error if anything follows the object.
func (d *Decoder) end() error {
	if _, err := d.json.ReadToken(); !errors.Is(err, io.EOF) {
		return InvalidBody("has something after its object. Send one object and nothing else")
	}
	return nil
}

// An object is the JSON object of a single call or of an item of a batch. readObject stores the text of each member.
// The methods text, id and so on decode one member each. The first error stays in err, and later methods return zero.
type object struct {
	shape     shape
	values    [fieldCount]jsontext.Value // parts of the body; nil: missing
	unknown   *string                    // the alphabetically first name that is no field
	size      int                        // of the text, in bytes
	notObject bool
	err       error
}

// readObject reads the next value of body into o. It returns only syntax errors; invalid members set o.err.
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
		f := o.field(name) // before the next read, which overwrites name
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

// field returns the field with this name, a JSON string, or fieldCount if there is none. It records unknown and
// duplicate names.
func (o *object) field(name jsontext.Value) field {
	bare := name[1 : len(name)-1]
	if bytes.IndexByte(bare, '\\') >= 0 {
		text, _ := unquote(name) // cannot fail: the decoder has accepted it
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

// check sets the shape, and an error if o has a member that the shape does not allow.
func (o *object) check(s shape) {
	o.shape = s
	if o.err != nil {
		return
	}
	extra := o.unknown
	for f := range fieldCount {
		if o.values[f] != nil && !s.allowed.has(f) && (extra == nil || fieldNames[f] < *extra) {
			extra = &fieldNames[f]
		}
	}
	if extra != nil {
		o.err = s.errUnknownMember(*extra)
	}
}

// value returns the JSON of a member; nil if it is missing, or after an error. It refuses null, except for valueField.
func (o *object) value(f field) jsontext.Value {
	v := o.values[f]
	switch {
	case o.err != nil:
		return nil
	case v == nil && o.shape.required.has(f):
		o.err = lock.Invalid(fieldNames[f], "is missing; add it to the %s", o.shape.kind)
	case v == nil || v.Kind() != 'n' || f == valueField:
		return v
	case o.shape.required.has(f):
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

func (o *object) id(f field) (id [16]byte) {
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
	return parsed
}

// optionalID returns a UUID that may be missing, but not all zeros. The error names what to give instead.
func (o *object) optionalID(f field, instead string) [16]byte {
	id := o.id(f)
	if o.err == nil && o.values[f] != nil && id == [16]byte{} {
		o.err = lock.Invalid(fieldNames[f], "is all zeros; give %s, or leave it out", instead)
	}
	return id
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

// nonZeroCount returns a number that may be missing, but not zero.
func (o *object) nonZeroCount(f field) int {
	n, ok := o.integer(f, strconv.IntSize)
	if ok && n == 0 {
		o.err = lock.Invalid(fieldNames[f], "is 0; give 1 to %d, or leave it out", lock.MaxHolders)
	}
	return int(n)
}

// duration returns a member in milliseconds. A value out of range becomes the nearest Duration.
func (o *object) duration(f field) time.Duration {
	ms, _ := o.integer(f, 64)
	return wire.DurationOf(ms)
}

// positiveDuration returns a duration that may be missing, but neither zero nor negative.
func (o *object) positiveDuration(f field) time.Duration {
	ms, ok := o.integer(f, 64)
	if ok && ms <= 0 {
		o.err = lock.Invalid(fieldNames[f], "is %d; give %d or more (milliseconds), or leave it out",
			ms, lock.MinTTL.Milliseconds())
	}
	return wire.DurationOf(ms)
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

// mode returns the mode, zero if missing, and -1 for an unknown mode, which Resolve refuses.
func (o *object) mode() lock.Mode {
	text := o.text(modeField)
	if o.values[modeField] == nil {
		return 0
	}
	return cmp.Or(lock.ModeOf(text), -1)
}

// freeForm returns a copy of a member that may be any JSON up to maxDepth levels deep, without duplicate names.
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
	if at := (*jsontext.SyntacticError)(nil); errors.As(err, &at) { // a duplicate name: v is valid JSON
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

// notJSON returns the error for a body that is not JSON, with the position if known.
func notJSON(err error) error {
	if at := (*jsontext.SyntacticError)(nil); errors.As(err, &at) {
		return InvalidBody("is not valid JSON at byte %d. Send one JSON object, in UTF-8", at.ByteOffset)
	}
	return InvalidBody("is cut short. Send a whole JSON object")
}
