package verify_test

import (
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestRestoreMayLoseGrantsButNotRepeatTokens(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	s := editable{t, &h}
	s.removeEvents(of("eve"))
	if r := h.Check(verify.CheckOptions{}); r.OK() {
		t.Error("a lost grant passes without a restore")
	}
	restored := verify.CheckOptions{Restored: true}
	if r := h.Check(restored); !r.OK() {
		t.Error(text(t, r))
	}
	again := s.call(verify.Acquire, "fay", 0)
	g := again.Response.(lock.Grant)
	g.Token = s.call(verify.Acquire, "eve", 0).Response.(lock.Grant).Token
	again.Response = g
	if r := h.Check(restored); r.OK() {
		t.Error("a token granted twice passes after a restore")
	}
}
