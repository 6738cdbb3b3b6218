package row

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

//go:embed sql/*.sql
var files embed.FS

// A variant selects the optional clauses of a statement.
type variant struct {
	Lock      bool // look: lock the rows
	Endings   bool // swap: some leases must not have ended
	Parts     bool // swap: parts change
	Events    bool // swap: there are events
	Single    bool // swap: there is one change
	AllOrNone bool // swap: either all changes are written or none
	Queue     bool // read: with waiters

	Sessions bool // swap: some sessions must not have ended
	Losses   bool // swap: some sessions lose leases
	Ends     bool // lock_sessions: for an end of a session, which waits for grants in it
}

// The columns as Go reads and writes them. Nothing else lists them.
var (
	recordColumns = new(storedRecord).columns(nil)
	partColumns   = new(part).columns(nil)
	leaseColumns  = new(storedLease).columns(nil)
	writeColumns  = new(write).columns(nil)
	saveColumns   = new(part).columns(ofChange(0))
	dropColumns   = saveColumns[:1+partKeyLength]
	endingColumns = endingOf(0, 0)
	entryColumns  = entryOf(0, nil)
	refColumns    = refOf(0, 0, 0)
	openColumns   = openOf(0)
	lossColumns   = lossOf(0, 0)

	sessionColumns = new(storedSession).columns()
)

// swapParameters is the number of parameters of swap.sql before the arrays.
const swapParameters = 9

// statement returns the statement of the file as it is for the variant. It is rendered when it is first used: every
// paddock command would spend several milliseconds at its start if all were rendered there.
func statement(name string, v variant) *schema.Statement {
	return schema.NewStatement(sync.OnceValue(func() string { return render(name, v) }))
}

// render returns the statement of the file as it is for the variant.
func render(name string, v variant) string {
	t, err := template.New(name).Parse(database.Text(files, name))
	if err != nil {
		panic(fmt.Sprintf("row: %v", err)) // the files are part of the binary
	}
	values := map[string]any{
		"Lock": v.Lock, "Single": v.Single, "AllOrNone": v.AllOrNone, "Events": v.Events, "Parts": v.Parts, "Queue": v.Queue, "Ends": v.Ends,
		"Record":            names("", recordColumns),
		"RecordAssignments": v.withTokens("now.batch", "n.token", assignments(recordColumns[1:], "n")),
		"Part":              names("", partColumns),
		"Lease":             names("", leaseColumns),
		"SavedPart":         v.withTokens("done.batch", "s.token", names("s.", partColumns)),
		"PartOfRecord":      names("p.", partColumns),
		"PartAssignments":   assignments(partColumns[partKeyLength:], "excluded"),

		"Session":            names("", sessionColumns),
		"SessionValues":      placeholders(len(sessionColumns)),
		"SessionPlain":       plain(0, sessionColumns),
		"SessionAssignments": assignments(sessionColumns[1:], "n"),
		"Expired":            int(lock.Expired),
	}
	after := swapParameters
	for i, set := range inSwap {
		switch {
		case !v.has(i):
			continue
		case v.plain(i):
			values[set.name] = plain(after, set.columns)
		default:
			values[set.name] = unnested(after, set.columns)
		}
		after += len(set.columns)
	}
	var b strings.Builder
	if err := t.Execute(&b, values); err != nil {
		panic(fmt.Sprintf("row: %v", err))
	}
	return b.String()
}

// The sets of rows that swap.sql gets, in the order of its parameters.
const (
	endings = iota
	writes
	drops
	saves
	entries
	refs
	sessions
	losses
	swapSets
)

// inSwap are the names of the sets in swap.sql, and their columns.
var inSwap = [swapSets]struct {
	name    string
	columns []column
}{
	{"Endings", endingColumns}, {"Writes", writeColumns}, {"Drops", dropColumns}, {"Saves", saveColumns},
	{"Entries", entryColumns}, {"Refs", refColumns}, {"Sessions", openColumns}, {"Losses", lossColumns},
}

// has reports whether the variant of swap.sql gets the set.
func (v variant) has(set int) bool {
	switch set {
	case endings:
		return v.Endings
	case drops, saves:
		return v.Parts
	case entries, refs:
		return v.Events
	case sessions:
		return v.Sessions
	case losses:
		return v.Losses
	}
	return true
}

// plain reports whether the set has one row, whose columns are parameters of their own. PostgreSQL takes a fifth of
// its CPU less for them than for arrays of one element, and pgx less, too.
func (v variant) plain(set int) bool { return v.Single && (set == writes || set == entries) }

// withTokens returns the columns with the tokens that the statement grants in place of stored ones, see [stored].
// Without events it grants none.
func (v variant) withTokens(batch, token, columns string) string {
	if !v.Events {
		return columns
	}
	granted := fmt.Sprintf("%[2]s + case when %[2]s < 0 then (%[1]s + 1) * %[3]d else 0 end", batch, token, TokensPerBatch)
	return strings.Replace(columns, token, granted, 1)
}

func names(prefix string, columns []column) string {
	return list(columns, func(_ int, c column) string { return prefix + c.name })
}

func assignments(columns []column, from string) string {
	return list(columns, func(_ int, c column) string { return c.name + " = " + from + "." + c.name })
}

// unnested returns the columns of rows that come as an array a column, after so many other parameters. In the list of
// a select the arrays are read side by side; unnest with several arguments would copy each into a store of its own
// first, which is a quarter of the statement's CPU.
func unnested(after int, columns []column) string {
	return list(columns, func(i int, c column) string { return fmt.Sprintf("unnest($%d::%s[]) as %s", after+i+1, c.kind, c.name) })
}

// plain returns the columns of one row that come as parameters, after so many others.
func plain(after int, columns []column) string {
	return list(columns, func(i int, c column) string { return fmt.Sprintf("$%d::%s as %s", after+i+1, c.kind, c.name) })
}

// placeholders returns the parameters from $1 to $n.
func placeholders(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(all, ", ")
}

func list(columns []column, format func(int, column) string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = format(i, c)
	}
	return strings.Join(all, ", ")
}

var (
	sqlLook      = statement("look", variant{})
	sqlLookLock  = statement("look", variant{Lock: true})
	sqlParts     = statement("parts", variant{})
	sqlEndings   = statement("endings", variant{})
	sqlSwaps     = swaps()
	sqlLockedNow = statement("locked", variant{})
	sqlExisting  = statement("existing", variant{})
	sqlRead      = statement("read", variant{})
	sqlReadQueue = statement("read", variant{Queue: true})
	sqlFence     = statement("fence", variant{})
	sqlSlot      = statement("slot", variant{})

	sqlSessions       = statement("sessions", variant{})
	sqlExpireSessions = statement("expire_sessions", variant{})
	sqlLockedSessions = statement("locked_sessions", variant{})
	sqlSessionsOf     = statement("sessions_of", variant{})
	sqlLockSessions   = statement("lock_sessions", variant{})
	sqlEndSessions    = statement("lock_sessions", variant{Ends: true})
	sqlOpenSession    = statement("open_session", variant{})
	sqlSaveSession    = statement("save_session", variant{})

	sqlCountOfSessions = statement("count_of_sessions", variant{})
	sqlLocksOfSession  = statement("locks_of_session", variant{})
	sqlLeftOfSessions  = statement("left_of_sessions", variant{})
)

// swaps returns the variants of swap.sql. Where sessions lose leases, there are events.
func swaps() map[variant]*schema.Statement {
	all := make(map[variant]*schema.Statement)
	for i := range 32 {
		v := variant{Endings: i&1 > 0, Parts: i&2 > 0, Events: i&4 > 0, Sessions: i&8 > 0, Losses: i&16 > 0}
		if v.Losses && !v.Events {
			continue
		}
		for _, v.Single = range []bool{false, true} {
			all[v] = statement("swap", v)
		}
		v.Single, v.AllOrNone = false, true
		all[v] = statement("swap", v)
	}
	return all
}
