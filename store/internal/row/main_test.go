package row

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
