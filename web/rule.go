package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// rulesRoot is the path of the list of rules.
const rulesRoot = "/ui/rules"

// A rulesPage lists the rules, or shows an error.
type rulesPage struct {
	frame
	Rules   []rule
	Problem string
}

// A rule is a rule as the page shows it. An empty bound is none.
type rule struct{ lock.Rule }

// Bounds returns the bounds that the rule has.
func (r rule) Bounds() (all []bound) {
	for _, b := range []struct {
		text string
		time.Duration
	}{{"TTL at most", r.MaxTTL}, {"held at most", r.MaxHold}, {"grace at least", r.MinGrace}} {
		if b.Duration != 0 {
			all = append(all, bound{b.text, lengthOf(b.Duration)})
		}
	}
	if r.Capacity != 0 {
		all = append(all, bound{"capacity", strconv.Itoa(r.Capacity)})
	}
	if r.MaxLeases != 0 {
		all = append(all, bound{"leases of a key at most", strconv.Itoa(r.MaxLeases)})
	}
	return all
}

// lengthOf returns the duration as the command line takes it, such as 24h.
func lengthOf(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// A bound is a bound of a rule in words.
type bound struct{ Text, Value string }

func (u *ui) rules(w http.ResponseWriter, r *http.Request) {
	p := rulesPage{frame: u.frameOf(r, "Rules")}
	status := http.StatusOK
	all, err := u.locks.Rules(r.Context())
	for _, one := range all {
		p.Rules = append(p.Rules, rule{one})
	}
	if err != nil {
		status, p.Problem = u.problem(r, err)
	}
	u.show(w, r, status, "rules", p)
}
