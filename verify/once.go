package verify

import (
	"fmt"

	"github.com/paddock-lock/paddock/lock"
)

// uniqueness checks that no lease_id has had two leases, and no token was granted twice. After a restore
// a lease_id may have another lease, since its first one is forgotten.
func (x *examination) uniqueness(c *Check) {
	type grantee struct {
		*lease
		t *lockHistory
	}
	granted := map[lock.Token]grantee{}
	for _, t := range x.locks {
		for _, r := range t.groups {
			if len(r.acquires) > 0 && !x.options.Restored {
				c.Examined++
				r.grantedOnce(t, c)
			}
		}
		for _, l := range t.leases {
			c.Examined++
			o, again := granted[l.token]
			if !again {
				granted[l.token] = grantee{l, t}
				continue
			}
			if o.t != t || o.mode != lock.Shared || l.mode != lock.Shared {
				c.violated(t, fmt.Sprintf("Token %d was granted to %q, and to %q of %s.", l.token, l.holder, o.holder, o.t.name),
					[]*Call{o.firstAnswer(), l.firstAnswer()}, l.granted)
			}
		}
	}
}

// grantedOnce checks that at most one lease was granted under the lease_id, but for
// such as were withdrawn before anybody was told.
func (r *callGroup) grantedOnce(t *lockHistory, c *Check) {
	var kept []*lease
	for _, l := range r.leases {
		if l.ended == nil || l.ended.Kind != lock.Withdrawn {
			kept = append(kept, l)
		}
	}
	if len(kept) > 1 {
		a, b := kept[0], kept[1]
		c.violated(t, fmt.Sprintf("One lease_id of %q was granted the lock twice, with token %d in slot %d and with token %d in slot %d.",
			r.holder(), a.token, a.slot, b.token, b.slot), append(r.acquires[:len(r.acquires):len(r.acquires)], a.firstAnswer(), b.firstAnswer()), a.granted, b.granted)
	}
}
