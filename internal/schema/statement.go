package schema

import "sync/atomic"

// A Statement is SQL that is written for Default. Make one with NewStatement.
type Statement struct {
	text  func() string
	other atomic.Pointer[inSchema] // the text in the last other schema that was asked for
}

type inSchema struct {
	name Name
	text string
}

// NewStatement returns the Statement with the text that a function returns. It is called for each use, and so must be
// quick.
func NewStatement(text func() string) *Statement { return &Statement{text: text} }

// In returns the text for the schema. A process has one, so it is changed once.
func (s *Statement) In(n Name) string {
	if n == "" || n == Default {
		return s.text()
	}
	if last := s.other.Load(); last != nil && last.name == n {
		return last.text
	}
	text := n.In(s.text())
	s.other.Store(&inSchema{n, text})
	return text
}
