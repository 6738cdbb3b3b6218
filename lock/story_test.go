package lock_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A story is what happens to one lock, step by step, and what each step must lead to. It is written
//
//	acquire 1; wait 2; wait 3 shared
//	release 1 -> released granted@2#2 wakes=2 [2 | 3]
//
// with a step a line, or several before semicolons. The steps are methods of a player; clients are called by the number
// of their lease_id. What follows the arrow is all that must hold after the step, in any order:
//
//   - Kinds of events: these are all events of the decision, in order. "granted@2#3" has the place 2 and the token 3,
//     "dequeued(wait ended)" the reason. Without any kind, events are not compared. "quiet" means that there are none,
//     and "nothing" that nothing changed at all.
//   - "!code(reason)": the step is refused. Without it, the step must succeed.
//   - "[1 | 2]": the leases and the queue, see model.expect.
//   - "name=value": a fact, see player.facts.
type story = map[string]string

// tell plays each story, by its sentence.
func tell(t *testing.T, all story) {
	t.Helper()
	for sentence, text := range all {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := &player{model: newModel(t), calls: map[byte][]lock.Acquire{}}
			for _, step := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ';' }) {
				if step = strings.TrimSpace(step); step != "" {
					p.play(step)
				}
			}
		})
	}
}

// A player plays one story.
type player struct {
	*model
	calls map[byte][]lock.Acquire // the waiting calls of each client
	step  string
}

var wantedFacts = regexp.MustCompile(`\[[^\]]*\]|[^\s(]+(\([^)]*\))?`)

func (p *player) play(step string) {
	p.step = step
	what, want, _ := strings.Cut(step, "->")
	verb, args, _ := strings.Cut(strings.TrimSpace(what), " ")
	wanted := wantedFacts.FindAllString(want, -1)
	cmd := p.command(verb, strings.Fields(args))
	if cmd == nil {
		p.expectAll(lock.Decision{}, wanted)
		return
	}
	d := p.do(cmd)
	refused := slices.ContainsFunc(wanted, func(w string) bool { return w[0] == '!' })
	if refused != (d.Err != nil) {
		p.t.Fatalf("%s: decided with the error %v", step, d.Err)
	}
	if !refused && (verb == "wait") != d.Queued && (verb == "wait" || verb == "call") {
		p.t.Fatalf("%s: queued: %t", step, d.Queued)
	}
	p.expectAll(d, wanted)
}

// command returns the command of a step, or nil if it is about the clock or a replica.
func (p *player) command(verb string, args []string) lock.Command {
	first, opts := "", map[string]string{}
	for i, arg := range args {
		if key, value, _ := strings.Cut(arg, "="); i > 0 {
			opts[key] = value
		} else {
			first = arg
		}
	}
	switch verb {
	case "after":
		p.advance(p.duration(first))
	case "on":
		p.on(lock.Replica(p.number(first)))
	case "dead":
		p.silence(lock.Replica(p.number(first)))
	case "alive":
		p.unsilence(lock.Replica(p.number(first)))
	case "pause":
		p.pausedUntil = p.now.Add(p.duration(first))
	case "sweep":
		return sweep
	case "open", "heartbeat", "close", "ban":
		p.changeSession(verb, lock.SessionID{15: p.number(first)})
	case "end":
		s := p.sessions[lock.SessionID{15: p.number(first)}.Ref()]
		return lock.EndSession{Name: name, Ref: s.ID.Ref(), How: s.Ended, Reason: s.Reason}
	case "acquire":
		return p.acquire(first, opts)
	case "wait", "call":
		a := p.call(p.acquire(first, opts))
		p.calls[a.LeaseID[15]] = append(p.calls[a.LeaseID[15]], a)
		return a
	case "renew":
		return lock.Renew{Locks: []string{name}, LeaseID: id(p.number(first)), TTL: p.duration(opts["ttl"])}
	case "release":
		return p.release(first, opts)
	case "freeze":
		p.freeze(lock.Scope(first), p.duration(opts["for"]))
	case "rule":
		p.policy.Rules = nil
		if first != "none" {
			r := lock.Rule{Scope: lock.Scope(first), MaxTTL: p.duration(opts["ttl"]), MaxHold: p.duration(opts["hold"]), MinGrace: p.duration(opts["grace"])}
			if text, ok := opts["capacity"]; ok {
				r.Capacity = int(p.number(text))
			}
			p.policy.Rules = map[lock.Scope]lock.Rule{r.Scope: r}
		}
	case "thaw":
		p.policy.Freezes = nil
	case "revoke":
		return p.revoke(first, opts)
	case "claim":
		c := claim(p.lastCall(first))
		c.SessionID, c.Once = p.lastCall(first).SessionID, p.lastCall(first).Once
		return c
	case "leave", "cut", "drop":
		return p.leave(verb, first, opts)
	default:
		p.t.Fatalf("%s: there is no such step", p.step)
	}
	return nil
}

// acquire is a call that does not wait: of the options, max is the limit of waiters of the lock, and permit=5/2 is two
// permits of five.
func (p *player) acquire(client string, opts map[string]string) lock.Acquire {
	a := acquire(p.number(client))
	bounds := lock.Bounds{}
	for key, value := range opts {
		switch key {
		case "exclusive", "shared":
			a.Locks[0].Mode = lock.ModeOf(key)
		case "permit":
			capacity, permits, _ := strings.Cut(value, "/")
			a.Locks[0].Mode, a.Locks[0].Capacity = lock.Permit, int(p.number(capacity))
			if permits != "" {
				a.Locks[0].Permits = int(p.number(permits))
			}
		case "holder":
			a.Holder = value
		case "ttl":
			a.TTL = p.duration(value)
		case "grace":
			a.Grace = p.duration(value)
		case "hold":
			a.MaxHold = p.duration(value)
		case "for":
			a.Wait = p.duration(value)
		case "once":
			a.Once = true
		case "keep":
			a.KeepPlace = true
		case "in":
			a.SessionID, a.TTL = lock.SessionID{15: p.number(value)}, 0
		case "task":
			a.Task = lock.TaskID(value)
		case "full":
			a.SessionFull = true
		case "max":
			bounds.MaxWaiters = int(p.number(value))
		default:
			p.t.Fatalf("%s: there is no option %s", p.step, key)
		}
	}
	return within(bounds, a)
}

// changeSession opens a session of 10 s with a grace of 2 s, renews, closes, or revokes it.
func (p *player) changeSession(verb string, id lock.SessionID) {
	change := map[string]lock.SessionChange{
		"open":      lock.OpenSession{ID: id, Holder: "worker", TTL: 10 * time.Second, Grace: 2 * time.Second},
		"heartbeat": lock.RenewSession{ID: id}, "close": lock.CloseSession{ID: id}, "ban": lock.RevokeSession{Ref: id.Ref(), Reason: "maintenance"},
	}[verb]
	if _, err := p.change(change); err != nil {
		p.t.Fatalf("%s: %v", p.step, err)
	}
}

// release closes the lock for a duration since the grant, or until the end of a period in a time zone.
func (p *player) release(client string, opts map[string]string) lock.Release {
	r := release(p.number(client))
	r.Closed = lock.Closing{For: p.duration(opts["closed"]), Period: lock.Period(opts["per"]), Zone: opts["in"]}
	r, err := r.Resolve()
	if err != nil {
		p.t.Fatalf("%s: %v", p.step, err)
	}
	return r
}

// revoke revokes the token. The option since is when the lease of the slot began, after the beginning of the story.
func (p *player) revoke(token string, opts map[string]string) lock.Revoke {
	r := revoke(lock.Token(p.number(token)), nil)
	_, r.SkipGrace = opts["skip"]
	if text, ok := opts["slot"]; ok {
		r.Slot = slot(int(p.number(text)))
	}
	if since, ok := opts["since"]; ok {
		r.AcquiredAt = t0.Add(p.duration(since))
	}
	return r
}

// leave is the end of a waiting call: of its wait (leave), of its connection (cut), or of the connection of a call whose
// lease_id was generated, so that no client can return with it (drop).
func (p *player) leave(verb, call string, opts map[string]string) lock.Leave {
	l := map[string]func(lock.Acquire) lock.Leave{"leave": endWait, "cut": disconnect, "drop": disconnectNameless}[verb](p.lastCall(call))
	l.WaitLeft, l.SessionID, l.Once = p.duration(opts["left"]), p.lastCall(call).SessionID, p.lastCall(call).Once
	if _, keeps := opts["keep"]; keeps {
		l.KeepPlace = true
	}
	return l
}

// lastCall returns the last waiting call of the client "2", or the first one of "2/1".
func (p *player) lastCall(text string) lock.Acquire {
	client, nth, chosen := strings.Cut(text, "/")
	calls := p.calls[p.number(client)]
	if chosen {
		calls = calls[:p.number(nth)]
	}
	return calls[len(calls)-1]
}

func (p *player) number(text string) byte {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		p.t.Fatalf("%s: %v", p.step, err)
	}
	return byte(n)
}

// duration returns a sum such as "retention-1ns", zero if it is empty.
func (p *player) duration(text string) (sum time.Duration) {
	for _, part := range strings.Split(strings.ReplaceAll(text, "-", "+-"), "+") {
		d, known := map[string]time.Duration{
			"": 0, "retention": lock.PlaceRetention, "claim": lock.ClaimTimeout, "heartbeat": lock.ReplicaTTL, "maxwait": lock.MaxWait,
		}[part]
		if !known {
			var err error
			if d, err = time.ParseDuration(part); err != nil {
				p.t.Fatalf("%s: %v", p.step, err)
			}
		}
		sum += d
	}
	return sum
}

func (p *player) expectAll(d lock.Decision, wanted []string) {
	facts, events := p.facts(d), []string(nil)
	for _, want := range wanted {
		key, value, isFact := strings.Cut(want, "=")
		switch {
		case want[0] == '[':
			p.expect(strings.TrimSpace(want[1 : len(want)-1]))
		case want[0] == '!':
			p.expectRefusal(d.Err, want[1:])
		case want == "nothing", want == "quiet":
			if len(d.Events) > 0 || d.Changed && want == "nothing" {
				p.t.Errorf("%s: it changed %+v", p.step, d)
			}
		case isFact:
			got, known := facts[key]
			at, isTime := got.(time.Duration)
			if !known || isTime && at != p.duration(value) || !isTime && fmt.Sprint(got) != value {
				p.t.Errorf("%s: %s is %v, want %s", p.step, key, got, value)
			}
		default:
			events = append(events, want)
		}
	}
	if len(events) > 0 {
		p.expectEvents(d.Events, events)
	}
}

func (p *player) expectRefusal(err error, want string) {
	code, reason, _ := strings.Cut(strings.TrimSuffix(want, ")"), "(")
	e := new(lock.Error)
	if !errors.As(err, &e) || string(e.Code) != code || e.Reason != reason || e.Detail == "" {
		p.t.Errorf("%s: refused with %+v", p.step, err)
	}
}

// eventParts are the kind of an event, its place, token and reason.
var eventParts = regexp.MustCompile(`^(\w+)(?:@(\d+))?(?:#(\d+))?(?:\((.*)\))?$`)

func (p *player) expectEvents(got []lock.Event, want []string) {
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		e, parts := got[i], eventParts.FindStringSubmatch(want[i])
		if parts == nil || lock.KindOf(parts[1]) == 0 {
			p.t.Fatalf("%s: %s is no event", p.step, want[i])
		}
		same = e.Kind.String() == parts[1] && (parts[2] == "" || fmt.Sprint(e.Place) == parts[2]) &&
			(parts[3] == "" || fmt.Sprint(e.Token) == parts[3]) && (parts[4] == "" || e.Reason == parts[4])
	}
	if !same {
		p.t.Errorf("%s: the events are %+v", p.step, got)
	}
}

// facts returns what the answer of a step says, and the first lease and the first waiter of the lock after it. Instants
// are counted from now.
func (p *player) facts(d lock.Decision) map[string]any {
	shown := p.record.Lock(p.now)
	facts := map[string]any{
		"state": shown.State, "last": p.record.LastEnd, "capacity": p.record.Capacity, "due": p.until(d.Due), "changes": p.until(shown.NextChangeAt()),
		"token": leaseOf(d).Token, "slot": leaseOf(d).Slot, "slots": strings.ReplaceAll(string(leaseOf(d).Slots), " ", ","), "ttl": leaseOf(d).TTL, "begun": p.until(leaseOf(d).AcquiredAt),
		"expires": p.until(leaseOf(d).ExpiresAt), "replayed": d.Replayed, "decided": p.until(d.Now), "wakes": p.woken(d.Promoted), "ousts": p.woken(d.Ousted),
		"losses": p.lossesOf(d.SessionLosses), "closed": "never",
	}
	if shown.Closed != nil {
		facts["closed"], facts["by"] = p.until(shown.Closed.Until), shown.Closed.Holder
	}
	if e := new(lock.Error); errors.As(d.Err, &e) {
		facts["holder"], facts["retry"], facts["ahead"], facts["kept"], facts["capacity"] = e.Holder, e.RetryAfter, e.Ahead, e.KeptFor, e.Capacity
		facts["done"] = p.until(e.DoneAt)
		facts["token"], facts["newest"], facts["ended"], facts["at"] = e.Token, e.Newest, e.Ended, p.until(e.EndedAt)
	}
	if len(p.record.Leases) > 0 {
		facts["held"], facts["ends"] = p.record.Leases[0].Token, p.until(p.record.Leases[0].ExpiresAt)
	}
	if len(p.record.Queue) > 0 {
		facts["joined"] = p.until(p.record.Queue[0].JoinedAt)
	}
	return facts
}

func (p *player) until(at time.Time) any {
	if at.IsZero() {
		return "never"
	}
	return at.Sub(p.now)
}

// lossesOf returns the sessions that have lost leases.
func (p *player) lossesOf(all []lock.SessionLoss) string {
	var sessions []string
	for _, l := range all {
		if l.Name != name {
			p.t.Errorf("%s: a session has lost a lease of %s", p.step, l.Name)
		}
		sessions = append(sessions, fmt.Sprint(p.sessions[l.Session].ID[15]))
	}
	return strings.Join(sessions, ",")
}

// woken returns the clients whose last calls are to be notified.
func (p *player) woken(promoted []lock.Waiter) string {
	var clients []string
	for _, w := range promoted {
		client := w.Lease.ID[15]
		if p.lastCall(fmt.Sprint(client)).Attachment != w.Attachment {
			p.t.Errorf("%s: it wakes an earlier call of %d", p.step, client)
		}
		clients = append(clients, fmt.Sprint(client))
	}
	return strings.Join(clients, ",")
}
