package sim

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A tokenSource issues the token of a new grant on the server that serves the request. All that a token source
// remembers is in w.tokenMint, whose mutex the caller holds.
type tokenSource func(w *world, server int) lock.Token

// shardBits is how far a server's number is shifted above its counter in a sharded token.
const shardBits = 48

// sharded issues tokens from one counter per server, below the server's number, so that servers need not share a
// sequence. A server never loses its counter. Tokens of one server grow; tokens of two servers compare by the servers'
// numbers, whichever grant came first.
func sharded(w *world, server int) lock.Token {
	w.counters[server]++
	return lock.Token(server+1)<<shardBits | lock.Token(w.counters[server])
}

// blockSize is how many tokens a server takes from the common sequence at a time.
const blockSize = 100

// blocks issues tokens from blocks: each server takes a hundred numbers from a common sequence and issues them by
// itself until they are used up. Tokens are unique, and a crash only wastes the rest of a block. A server whose block
// is older issues smaller tokens than the others.
func blocks(w *world, server int) lock.Token {
	if w.counters[server]%blockSize == 0 {
		w.counters[server] = w.issuedBlocks * blockSize
		w.issuedBlocks++
	}
	w.counters[server]++
	return lock.Token(w.counters[server])
}

// clockBased issues the microsecond of the grant on the server's clock. Clocks of two servers differ, and a clock that
// is corrected goes back.
func clockBased(w *world, server int) lock.Token { return lock.Token(w.clock(server).UnixMicro()) }

// termBits is how far a leader's term is shifted above its counter in a token that a leader issues.
const termBits = 32

// A leadership is what a server believes about the leader. The zero leadership names none.
type leadership struct {
	server int
	term   int
	until  time.Time // on the believer's clock, when it asks again who the leader is
}

// leaderDriven issues tokens from the memory of one leader, below its term. Servers elect the leader with a lease of
// one TTL that the leader renews each third of it. The election is safe: terms grow, and no two leaders have one. But
// a leader does not ask a majority before it issues a token: until its next renewal it trusts its own clock, and
// servers trust theirs when they judge that a leader's lease is over. A clock that steps makes two leaders at a time.
func leaderDriven(w *world, server int) lock.Token {
	leader := w.leaderFor(server)
	w.terms[leader.term]++
	return lock.Token(leader.term)<<termBits | lock.Token(w.terms[leader.term])
}

// leaderFor returns the leader that issues a token for the server now: the one that the server learned of last, while
// both still believe in it, else the elected one, else the server itself after an election.
func (w *world) leaderFor(server int) leadership {
	known := w.believed[server]
	if known.term > 0 && w.clock(server).Before(known.until) && w.leads(known) {
		return known
	}
	if leaderless := w.elected.term == 0; leaderless || w.clock(server).Sub(w.clock(w.elected.server)) > w.plan.TTL {
		w.lastTerm++
		w.elected = leadership{server: server, term: w.lastTerm}
	}
	w.learnLeader(w.elected.server)
	return w.learnLeader(server)
}

// leads reports whether the leader believes that it leads. When a third of its lease is over it renews the lease, and
// finds out whether another leader was elected.
func (w *world) leads(l leadership) bool {
	own := w.believed[l.server]
	if own.term == l.term && !w.clock(l.server).Before(own.until) {
		own = w.learnLeader(l.server)
	}
	return own.term == l.term
}

// learnLeader tells the server the elected leader, which it believes for a third of the lease.
func (w *world) learnLeader(server int) leadership {
	w.believed[server] = leadership{w.elected.server, w.elected.term, w.clock(server).Add(w.plan.TTL / 3)}
	return w.believed[server]
}

// forget clears what a server that dies forgets. If it is the leader, its term is over.
func (m *tokenMint) forget(server int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.believed[server] = leadership{}
	if m.elected.server == server {
		m.elected = leadership{}
	}
}

// A tokenMint issues tokens other than Paddock's, and remembers the token of each lease.
type tokenMint struct {
	mu       sync.Mutex
	byLease  map[lock.Token]lock.Token // by the token that Paddock gave to the lease
	counters [servers]int

	issuedBlocks int        // of the common sequence
	elected      leadership // by all servers; without a term while there is no leader
	lastTerm     int
	believed     [servers]leadership // by each server
	terms        map[int]int         // the counter of each term's leader
}

// A mintingService is the service of one server that issues tokens by itself. All else is Paddock's: the holder, and
// the end of the lease.
type mintingService struct {
	paddock.Service
	world  *world
	server int
}

// Acquire grants what the service grants, with another token.
func (m mintingService) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	g, err := m.Service.Acquire(ctx, a)
	return m.world.issueToken(m.server, g), err
}

// Renew renews as the service does. The token stays the same.
func (m mintingService) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	g, err := m.Service.Renew(ctx, r)
	return m.world.issueToken(m.server, g), err
}

// issueToken returns the grant with its lease's token. The server issues one if the lease has none yet.
func (w *world) issueToken(server int, g lock.Grant) lock.Grant {
	w.tokenMint.mu.Lock()
	defer w.tokenMint.mu.Unlock()
	if g.Token != 0 && w.byLease[g.Token] == 0 {
		w.byLease[g.Token] = w.variant.tokens(w, server)
	}
	if g.Token = w.byLease[g.Token]; len(g.Leases) == 1 { // those of several locks keep theirs
		g.Leases = []lock.Lease{g.Lease}
	}
	return g
}
