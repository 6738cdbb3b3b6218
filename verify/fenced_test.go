package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// changeFenced changes the answer of the nth fenced write of the holder, or of the nth fenced read.
func (s editable) changeFenced(verb verify.Verb, holder string, nth int, change func(*lock.FencedValue)) {
	s.t.Helper()
	c := s.call(verb, holder, nth)
	f := c.Response.(lock.FencedValue)
	change(&f)
	c.Response = f
}

func TestFencedWritesOutOfOrderAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"two writes with one version": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "bob", 0, func(f *lock.FencedValue) { f.Version = 2 })
		}, "Two writes have the same version 2"},
		"a missing version": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "bob", 0, func(f *lock.FencedValue) { f.Version = 4 })
		}, "1 versions belong to no known write"},
		"a decreasing token": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "bob", 0, func(f *lock.FencedValue) { f.Token = 0 })
		}, "was written under token 0, after"},
		"a decreasing version": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "bob", 0, func(f *lock.FencedValue) { f.Version = 1 })
		}, "but a later call was answered version 1"},
		"a repeated version without a retry": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "bob", 0, func(f *lock.FencedValue) { f.Version = 2 })
		}, "but a later write was answered the same version"},
		"a read of an old version": {byFenced, func(s editable) {
			s.changeFenced(verify.ReadFenced, "", 1, func(f *lock.FencedValue) { f.Version = 1 })
		}, "but a later call was answered version 1"},
		"a read that finds nothing": {byFenced, func(s editable) {
			refuse(s.call(verify.ReadFenced, "", 1), lock.Error{Code: lock.ErrNotFound})
		}, "but a later read found nothing"},
		"a read of an unknown version": {byFenced, func(s editable) {
			s.changeFenced(verify.ReadFenced, "", 1, func(f *lock.FencedValue) { f.Version = 9 })
		}, "but no call wrote it"},
		"a read of another value": {byFenced, func(s editable) {
			s.changeFenced(verify.ReadFenced, "", 1, func(f *lock.FencedValue) { f.Value = json.RawMessage("1") })
		}, "with another value or token"},
		"a read before the write": {byFenced, func(s editable) {
			c, w := s.call(verify.ReadFenced, "", 1), s.call(verify.WriteFenced, "bob", 0)
			c.Sent, c.Answered = w.Sent-2000, w.Sent-1000
		}, "was read before it was written"},
		"an operation written again by another holder": {byFenced, func(s editable) {
			w := s.call(verify.WriteFenced, "eve", 0)
			w.Response = lock.FencedValue{Key: fencedKey, Lock: exclusiveLock, Token: w.Request.(lock.FencedWrite).Token, Version: 5, Value: w.Request.(lock.FencedWrite).Value}
		}, "Version 5 was read, but no call wrote it"},
		"an operation written twice by its holder": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "bob", 2, func(f *lock.FencedValue) { f.Version = 5 })
			s.changeFenced(verify.WriteFenced, "eve", 0, func(f *lock.FencedValue) { f.Version = 5 })
		}, "Version 5 was read, but no call wrote it"},
		"an operation that no call wrote": {byFenced, func(s editable) {
			for n := range 2 {
				s.changeFenced(verify.WriteFenced, "bob", 1+n, func(f *lock.FencedValue) { f.Version, f.Value = 3, json.RawMessage(`{"by":"bob"}`) })
			}
			s.changeFenced(verify.WriteFenced, "eve", 0, func(f *lock.FencedValue) { f.Version, f.Value = 3, json.RawMessage(`{"by":"bob"}`) })
		}, "answered as done, but no call wrote it"},
		"a repetition that answers another value": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "eve", 0, func(f *lock.FencedValue) { f.Value = json.RawMessage("1") })
		}, "with another value or token"},
		"a repetition that answers an old version": {byFenced, func(s editable) {
			s.changeFenced(verify.WriteFenced, "eve", 0, func(f *lock.FencedValue) { f.Version = 3 })
		}, "but a later call was answered version 3"},
		"a write under an old token": {byFenced, func(s editable) {
			c := s.call(verify.WriteFenced, "ann", 3)
			c.Err, c.Response = nil, lock.FencedValue{Key: fencedKey, Lock: exclusiveLock, Token: 1, Version: 4}
		}, "after token 2 was known to be granted"},
	})
}

func TestUnansweredWriteMayBeMissing(t *testing.T) {
	t.Parallel()
	expectPasses(t, func(s editable) {
		for _, c := range []*verify.Call{s.call(verify.WriteFenced, "ann", 1), s.call(verify.WriteFenced, "ann", 2)} {
			refuse(c, lock.Error{Code: lock.ErrUnknownOutcome})
		}
	})
}

// TestRepetitionsOfAnUnansweredWriteMayAllBeRepetitions of an operation.
func TestRepetitionsOfAnUnansweredWriteMayAllBeRepetitions(t *testing.T) {
	t.Parallel()
	expectPasses(t, func(s editable) {
		refuse(s.call(verify.WriteFenced, "bob", 1), lock.Error{Code: lock.ErrUnknownOutcome})
	})
}
