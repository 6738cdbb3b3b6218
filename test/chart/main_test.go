package chart_test

import (
	"testing"

	"github.com/paddock-lock/paddock/test/internal/program"
)

// built is the program that all tests of this process run. It is a package variable because tests have no other way to
// share it.
var built program.Built

func TestMain(m *testing.M) { built.Main(m) }
