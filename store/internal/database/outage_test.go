package database

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLenienceEndsAWhileAfterTheLastOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		if left := o.AssumeAlive(); left != 0 {
			t.Errorf("%v without an outage", left)
		}
		o.Note()
		time.Sleep(time.Second)
		if left := o.AssumeAlive(); left != assumeAlive-time.Second {
			t.Errorf("%v are left a second after an outage of %v", left, assumeAlive)
		}
		o.Note()
		if left := o.AssumeAlive(); left != assumeAlive {
			t.Errorf("%v are left after another outage", left)
		}
		time.Sleep(assumeAlive + 1)
		if left := o.AssumeAlive(); left != 0 {
			t.Errorf("%v are left at the end", left)
		}
	})
}
