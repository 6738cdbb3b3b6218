package faults_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
)

// writes are the sizes of what was written.
type writes struct {
	bytes.Buffer
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return w.Buffer.Write(b)
}

func TestASlicerWritesSmallPieces(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("paddock", 100)
	for _, average := range []int64{0, 20} {
		var size atomic.Int64
		size.Store(average)
		to := &writes{}
		n, err := slicer{to, &size}.Write([]byte(text))
		if n != len(text) || err != nil || to.String() != text {
			t.Errorf("average %d: wrote %d bytes, %q, %v", average, n, to, err)
		}
		for _, piece := range to.sizes {
			if average > 0 && piece > 2*int(average) || average == 0 && piece != len(text) {
				t.Errorf("average %d: the pieces are %v", average, to.sizes)
			}
		}
	}
}
