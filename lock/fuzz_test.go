package lock_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

var names = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}\z`)

func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"", "a", "jobs:nightly", "a/b", "-a", "a b", "a\x00", "é", "\xff", "a@b-c_d.e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := lock.CheckName(name)
		if (err == nil) != names.MatchString(name) {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
		if err != nil && !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("CheckName(%q) = %v, want ErrInvalid", name, err)
		}
	})
}
