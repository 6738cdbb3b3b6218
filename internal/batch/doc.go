// Package batch gathers calls that arrive at about the same time and runs them
// together.
//
// Nothing waits for company. Whatever arrives while one batch runs becomes the next, so
// an idle [Group] adds no delay, and under load batches grow just as long as the
// queue does. Calls keep their order. The one timer there can be is the Group's
// Patience, beyond which what runs keeps nobody waiting. A Group has a goroutine only while it has
// something to run; a [Crew] keeps those of many groups for a moment longer.
//
// Calls that came together can be offered together, see [Group.Offer], and waited for one
// after the other.
//
// Some calls need no batch, see [Group.Share]: alone they are done by their callers, as if
// there were no Group, and in company they make a batch.
//
// A [Call] is the piece of work of one caller. Its runner may answer it at any
// time and from any goroutine, also by adding it to another Group. What its
// caller may conclude on leaving early rests on Begin: a call that was left
// before it began is never run, and one that was left while it ran is not run
// again once Rewind has said that it took no effect.
package batch
