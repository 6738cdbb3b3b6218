package sim_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/test/sim"
)

const (
	page            = "../../docs/simulation.md"
	seedsPerVariant = 100
)

// A summary counts the outcomes of all runs of a variant.
type summary struct {
	sim.Variant
	mu    sync.Mutex
	held  int
	runs  map[sim.Kind]int // runs with such a violation
	first map[sim.Kind]uint64
	wrong []sim.Violation
}

func (c *summary) count(o sim.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held += o.Held
	c.wrong = append(c.wrong, o.Failures()...)
	for _, k := range []sim.Kind{sim.TwoHolders, sim.LostUpdate, sim.HolderRefused} {
		if !o.Has(k) {
			continue
		}
		if first, ok := c.first[k]; !ok || o.Plan.Seed < first {
			c.first[k] = o.Plan.Seed
		}
		c.runs[k]++
	}
}

// TestThePageIsTrue plays the same seeds with all variants: each recipe fails as docs/simulation.md says, Paddock
// does not, and the page shows what was played.
func TestThePageIsTrue(t *testing.T) {
	t.Parallel()
	var all []*summary
	for _, v := range sim.Variants() {
		all = append(all, &summary{Variant: v, runs: map[sim.Kind]int{}, first: map[sim.Kind]uint64{}})
	}
	t.Run("play", func(t *testing.T) {
		each(t, seedsPerVariant, func(t *testing.T, seed uint64) {
			for _, c := range all {
				c.count(play(t, seed, c.Variant))
			}
		})
	})
	blocks := map[string]string{"table": table(all)}
	for _, c := range all {
		if c.Failure == "" {
			if len(c.wrong) > 0 {
				t.Errorf("%s: %v", c.Name, c.wrong)
			}
			continue
		}
		if c.runs[c.Failure] == 0 {
			t.Fatalf("%s: no %s in %d seeds", c.Name, c.Failure, seedsPerVariant)
		}
		t.Logf("%s: %d of %d seeds have a %s, seed %d first", c.Name, c.runs[c.Failure], seedsPerVariant, c.Failure, c.first[c.Failure])
		o := play(t, c.first[c.Failure], c.Variant)
		v, _ := o.First(c.Failure)
		blocks[c.Name] = fmt.Sprintf("```\nseed %d, leases of %v\n%s```\n", o.Plan.Seed, o.Plan.TTL, o.Excerpt(v))
		if c.Failure == sim.LostUpdate {
			blocks["Paddock"] = "```\n" + lastLine(play(t, o.Plan.Seed, sim.Paddock()).Excerpt(v)) + "```\n"
		}
	}
	expectOnPage(t, blocks)
}

func lastLine(text string) string {
	return text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]
}

func table(all []*summary) string {
	var text strings.Builder
	text.WriteString("| way to lock | seeds | times held | runs with two holders | runs with lost updates | runs with refused holders |\n")
	text.WriteString("| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range all {
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %d |\n", c.Name, seedsPerVariant, c.held,
			c.runs[sim.TwoHolders], c.runs[sim.LostUpdate], c.runs[sim.HolderRefused])
	}
	return text.String()
}

// expectOnPage compares the blocks with those on the page, or writes them there.
func expectOnPage(t *testing.T, blocks map[string]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	missing := len(blocks)
	block := regexp.MustCompile(`(?s)(<!-- run: ([^\n]*?) -->\n)(.*?)(<!-- end -->)`)
	now := block.ReplaceAllStringFunc(string(text), func(was string) string {
		part := block.FindStringSubmatch(was)
		if missing--; part[3] != blocks[part[2]] && !*update {
			t.Errorf("the page has for %q\n%s\nand the run gives\n%s\nIf that is intended, run go test -C test ./sim -run TestThePageIsTrue -sim.update", part[2], part[3], blocks[part[2]])
		}
		return part[1] + blocks[part[2]] + part[4]
	})
	if missing != 0 {
		t.Errorf("the page needs exactly one block for each of %d things", len(blocks))
	}
	if *update {
		if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
