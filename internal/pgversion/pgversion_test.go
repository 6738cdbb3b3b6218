package pgversion_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgversion"
)

func TestOnlyVersionsBefore14AreRefused(t *testing.T) {
	t.Parallel()
	for number, want := range map[pgversion.Number]struct {
		text            string
		refused, tested bool
	}{
		90624:  {"9.6.24", true, false},
		100023: {"10.23", true, false},
		130023: {"13.23", true, false},
		140000: {"14.0", false, true},
		150018: {"15.18", false, true},
		180004: {"18.4", false, true},
		190000: {"19.0", false, false},
		200001: {"20.1", false, false},
	} {
		err := number.Check()
		var tooOld *pgversion.TooOldError
		if number.String() != want.text || errors.As(err, &tooOld) != want.refused || number.Tested() != want.tested {
			t.Errorf("%d: %v, tested: %t, %v", number, number, number.Tested(), err)
		}
		if want.refused && !strings.Contains(err.Error(), "is PostgreSQL "+want.text+", and Paddock needs 14 or newer") {
			t.Errorf("%d: %v", number, err)
		}
	}
}
