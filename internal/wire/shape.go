package wire

import (
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// A field is a member that the body of some request has.
type field uint

// The fields, in alphabetical order of their names, which is the order in which details list them.
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
	maxHoldField
	metadataField
	modeField
	nameField
	opField
	reasonField
	skipGraceField
	slotField
	ttlField
	valueField
	waitField
	fieldCount
)

var fieldNames = [fieldCount]string{
	"acquired_at", "capacity", "fencing_token", "grace_ms", "holder", "if_version", "keep_place", "lease_id", "lock",
	"max_hold_ms", "metadata", "mode", "name", "op", "reason", "skip_grace", "slot", "ttl_ms", "value", "wait_ms",
}

// renamed has the members that had another name in a version before, and their names now.
var renamed = map[string]field{"at_once": skipGraceField}

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

// A shape is the set of members that a body may have and the set of those that it must have. A test compares the
// shapes with openapi.yaml.
type shape struct {
	what      string // "body" or "item"
	may, must fieldSet
}

var (
	acquireBody = shape{
		what: "body",
		may: setOf(capacityField, graceField, holderField, keepPlaceField, leaseIDField, maxHoldField, metadataField,
			modeField, ttlField, waitField),
		must: setOf(holderField),
	}
	renewBody   = shape{what: "body", may: setOf(leaseIDField, metadataField, ttlField), must: setOf(leaseIDField)}
	releaseBody = shape{what: "body", may: setOf(leaseIDField), must: setOf(leaseIDField)}
	revokeBody  = shape{
		what: "body", may: setOf(acquiredAtField, fencingTokenField, reasonField, skipGraceField, slotField),
		must: setOf(fencingTokenField, reasonField),
	}
	verifyBody = shape{
		what: "body", may: setOf(fencingTokenField, nameField, slotField), must: setOf(fencingTokenField, nameField),
	}
	fencedWriteBody = shape{
		what: "body", may: setOf(fencingTokenField, ifVersionField, lockField, slotField, valueField),
		must: setOf(fencingTokenField, lockField, valueField),
	}
	acquireItem = acquireBody.item()
	renewItem   = renewBody.item()
	releaseItem = releaseBody.item()
)

// item returns the shape of the item of a batch that does what a body of shape s does.
func (s shape) item() shape {
	added := setOf(opField, nameField)
	return shape{what: "item", may: s.may&^setOf(keepPlaceField, waitField) | added, must: s.must | added}
}

// hasNo returns the error about a member that s does not have.
func (s shape) hasNo(name string) error {
	now, old := renamed[name]
	switch {
	case old && s.may.has(now):
		return lock.Invalid(name, "is now %s; send it under that name", fieldNames[now])
	case s.what == "item" && name == fieldNames[waitField]:
		return lock.ValidateBatchItem(lock.Acquire{Wait: lock.MaxWait})
	case s.what == "item" && name == fieldNames[keepPlaceField]:
		return lock.ValidateBatchItem(lock.Acquire{KeepPlace: true})
	}
	return lock.Invalid(name, "is not a member of this %s, which may have %s", s.what, strings.Join(s.may.names(), ", "))
}
