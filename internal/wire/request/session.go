package request

import (
	"github.com/paddock-lock/paddock/lock"
)

// OpenSession decodes the body of a call that opens a session.
func (d *Decoder) OpenSession(_ string, body []byte) (lock.OpenSession, error) {
	o := d.read(body, openSessionBody)
	return lock.OpenSession{
		ID: o.optionalID(sessionIDField, "a random UUID"), Holder: o.text(holderField), TTL: o.positiveDuration(ttlField),
		Grace: o.duration(graceField), Metadata: o.freeForm(metadataField),
	}, o.err
}

// RenewSession decodes the body of a renewal of a session.
func (d *Decoder) RenewSession(_ string, body []byte) (lock.RenewSession, error) {
	o := d.read(body, renewSessionBody)
	return lock.RenewSession{ID: o.id(sessionIDField), TTL: o.positiveDuration(ttlField)}, o.err
}

// CloseSession decodes the body of a call that closes a session.
func (d *Decoder) CloseSession(_ string, body []byte) (lock.CloseSession, error) {
	o := d.read(body, closeSessionBody)
	return lock.CloseSession{ID: o.id(sessionIDField)}, o.err
}

// RevokeSession decodes the body of a revocation of the session with this public name.
func (d *Decoder) RevokeSession(session string, body []byte) (lock.RevokeSession, error) {
	o := d.read(body, revokeSessionBody)
	ref, err := lock.ParseSessionRef("session", session)
	if err != nil {
		o.fail(err)
	}
	return lock.RevokeSession{Ref: ref, Reason: o.text(reasonField), SkipGrace: o.boolean(skipGraceField)}, o.err
}
