// Package batch gathers calls that arrive at about the same time and runs them
// together.
//
// A [Group] never delays a call to fill a batch. Calls that arrive while a batch runs
// form the next one, so an idle Group adds no latency, and batches grow with the load.
// Calls keep their order. The only timer is the Group's StallTimeout: when no batch has
// ended for that long, the next one starts beside those that are running. A Group uses
// goroutines only while it has something to run.
//
// [Group.Offer] queues several calls at once, which can then be waited for one by one.
//
// Calls that can also be run on their own use [Group.TryInline]: when a slot is free, or
// when a call is the only one in the queue, its caller runs it directly and no batch is
// made.
//
// A [Call] is one request and its answer. The runner may answer it at any time and from
// any goroutine; it may also add it to another Group. What a caller that stops waiting
// knows about the outcome rests on Begin: a call that was canceled before it began is
// never run, and a call that was canceled while it ran is not run again after Rewind
// has recorded that it had no effect.
package batch
