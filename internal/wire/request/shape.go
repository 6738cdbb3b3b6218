package request

import (
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// A field is a known member of request bodies.
type field uint

// The fields, in alphabetical order of their JSON names. Error texts list them in this order.
const (
	acquiredAtField field = iota
	capacityField
	fencingTokenField
	graceField
	holderField
	ifVersionField
	keepPlaceField
	leaseIDField
	lockField
	locksField
	maxHoldField
	metadataField
	modeField
	nameField
	namesField
	opField
	reasonField
	sessionIDField
	skipGraceField
	slotField
	taskIDField
	ttlField
	valueField
	waitField
	whereField
	fieldCount
)

var fieldNames = [fieldCount]string{
	"acquired_at", "capacity", "fencing_token", "grace_ms", "holder", "if_version", "keep_place", "lease_id", "lock",
	"locks", "max_hold_ms", "metadata", "mode", "name", "names", "op", "reason", "session_id", "skip_grace", "slot",
	"task_id", "ttl_ms", "value", "wait_ms", "where",
}

// A fieldSet is a set of fields, one bit each.
type fieldSet uint32

func setOf(fields ...field) (s fieldSet) {
	for _, f := range fields {
		s |= 1 << f
	}
	return s
}

func (s fieldSet) has(f field) bool { return s&(1<<f) != 0 }

func (s fieldSet) names() (names []string) {
	for f := range fieldCount {
		if s.has(f) {
			names = append(names, fieldNames[f])
		}
	}
	return names
}

// A shape describes the members of a body, an item or a lock of a set. A test compares the shapes with openapi.yaml.
type shape struct {
	kind              string // "body", "item" or "lock"
	allowed, required fieldSet
}

var (
	acquireBody = shape{
		kind: "body",
		allowed: setOf(capacityField, graceField, holderField, keepPlaceField, leaseIDField, maxHoldField, metadataField,
			modeField, sessionIDField, taskIDField, ttlField, waitField),
		required: setOf(holderField),
	}
	renewBody   = shape{kind: "body", allowed: setOf(leaseIDField, metadataField, ttlField), required: setOf(leaseIDField)}
	releaseBody = shape{kind: "body", allowed: setOf(leaseIDField), required: setOf(leaseIDField)}
	revokeBody  = shape{
		kind: "body", allowed: setOf(acquiredAtField, fencingTokenField, reasonField, skipGraceField, slotField),
		required: setOf(fencingTokenField, reasonField),
	}
	verifyBody = shape{
		kind: "body", allowed: setOf(fencingTokenField, nameField, slotField), required: setOf(fencingTokenField, nameField),
	}
	reportBody = shape{
		kind: "body", allowed: setOf(fencingTokenField, nameField, slotField, whereField),
		required: setOf(fencingTokenField, nameField),
	}
	fencedWriteBody = shape{
		kind: "body", allowed: setOf(fencingTokenField, ifVersionField, lockField, slotField, valueField),
		required: setOf(fencingTokenField, lockField, valueField),
	}
	openSessionBody = shape{
		kind: "body", allowed: setOf(graceField, holderField, metadataField, sessionIDField, ttlField),
		required: setOf(holderField),
	}
	renewSessionBody  = shape{kind: "body", allowed: setOf(sessionIDField, ttlField), required: setOf(sessionIDField)}
	closeSessionBody  = shape{kind: "body", allowed: setOf(sessionIDField), required: setOf(sessionIDField)}
	revokeSessionBody = shape{kind: "body", allowed: setOf(reasonField, skipGraceField), required: setOf(reasonField)}

	noBody = shape{kind: "body"}

	acquireSetBody = shape{
		kind: "body", allowed: acquireBody.allowed&^setOf(capacityField, modeField) | setOf(locksField),
		required: acquireBody.required | setOf(locksField),
	}
	renewSetBody   = renewBody.ofSet()
	releaseSetBody = releaseBody.ofSet()
	setMember      = shape{kind: "lock", allowed: setOf(capacityField, modeField, nameField), required: setOf(nameField)}

	acquireItem = acquireBody.item()
	renewItem   = renewBody.item()
	releaseItem = releaseBody.item()
)

// ofSet returns the shape of the body for the same operation as s on a set.
func (s shape) ofSet() shape {
	added := setOf(namesField)
	return shape{kind: s.kind, allowed: s.allowed | added, required: s.required | added}
}

// item returns the shape of a batch item for the same operation as s, which is the shape of a body.
func (s shape) item() shape {
	added := setOf(opField, nameField)
	return shape{kind: "item", allowed: s.allowed&^setOf(keepPlaceField, waitField) | added, required: s.required | added}
}

// errUnknownMember returns the error for a member that s does not allow.
func (s shape) errUnknownMember(name string) error {
	switch {
	case s.kind == "item" && name == fieldNames[waitField]:
		return lock.ValidateBatchItem(lock.Acquire{Wait: lock.MaxWait})
	case s.kind == "item" && name == fieldNames[keepPlaceField]:
		return lock.ValidateBatchItem(lock.Acquire{KeepPlace: true})
	case s.kind == "item" && name == fieldNames[locksField]:
		return lock.ValidateBatchItem(lock.Acquire{Set: []lock.Member{{}}})
	case s.kind == "item" && name == fieldNames[namesField]:
		return lock.ValidateBatchItem(lock.Release{Set: []string{""}})
	}
	if s.allowed == 0 {
		return errUnknown(name, "is not known: this call has no body; leave it out")
	}
	return errUnknown(name, "is not a member of this %s, which may have %s", s.kind, strings.Join(s.allowed.names(), ", "))
}

// errUnknown is [lock.Invalid] for a member of any name. Its Field is part of a JSON Pointer, so it escapes the name.
func errUnknown(name, format string, args ...any) error {
	return &lock.Error{
		Code: lock.ErrInvalid, Field: escape.Replace(name), Detail: name + " " + fmt.Sprintf(format, args...) + ".",
	}
}

// escape escapes a name for a JSON Pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")
