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
		if left := o.Lenience(); left != 0 {
			t.Errorf("%v without an outage", left)
		}
		o.Note()
		time.Sleep(time.Second)
		if left := o.Lenience(); left != lenience-time.Second {
			t.Errorf("%v are left a second after an outage of %v", left, lenience)
		}
		o.Note()
		if left := o.Lenience(); left != lenience {
			t.Errorf("%v are left after another outage", left)
		}
		time.Sleep(lenience + 1)
		if left := o.Lenience(); left != 0 {
			t.Errorf("%v are left at the end", left)
		}
	})
}
