// Package batch gathers calls that arrive at about the same time and runs them
// together.
//
// There is no timer. Whatever arrives while one batch runs becomes the next, so
// an idle [Group] adds no delay, and under load batches grow just as long as the
// queue does. Calls keep their order. A Group has a goroutine only while it has
// something to run.
//
// A [Call] is the piece of work of one caller. Its runner may answer it at any
// time and from any goroutine, also by adding it to another Group. What its
// caller may conclude on leaving early rests on Begin: a call that was left
// before it began is never run, and one that was left while it ran is not run
// again once Rewind has said that it took no effect.
package batch
