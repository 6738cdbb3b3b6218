package faults_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/verify"
)

// verify checks what was recorded, and tells of the round.
func (p *round) verify(t *testing.T) {
	t.Helper()
	h, err := p.history(t.Context())
	if err != nil {
		t.Errorf("the events: %v", err)
	}
	report := h.Check(verify.CheckOptions{AllowOvertaking: true})
	p.summary.add(h, report)
	p.summary.took, p.summary.lost = time.Since(p.began), p.lostCommits()
	var checks strings.Builder
	if err := errors.Join(report.WriteText(&checks), p.checkLogs(h), p.summary.check()); err != nil {
		t.Error(err)
	}
	t.Logf("%v\n%s", p.summary, checks.String())
	if !report.OK() {
		t.Error("the service has broken its rules")
	}
	if t.Failed() {
		dir, err := p.saveReport(h, report)
		if err != nil {
			t.Error(err)
		}
		t.Errorf("what was found, and what the replicas said, is in %s; the schedule comes again with -faults.seed=%d", dir, p.seed)
	}
}

// history returns all that was recorded, and the events.
func (p *round) history(ctx context.Context) (verify.History, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*stepTimeout)
	defer cancel()
	h := p.recorder.History()
	c, err := p.replicas[0].client()
	if err == nil {
		h.Events, err = verify.Collect(ctx, c, p.prefix())
	}
	return h, err
}

// saveReport writes what somebody needs who looks for the cause of a failure into a
// directory that stays, and returns its path.
func (p *round) saveReport(h verify.History, report verify.Report) (dir string, err error) {
	dir, err = os.MkdirTemp("", fmt.Sprintf("paddock-faults-%d-*", p.seed))
	if err != nil {
		return "", err
	}
	for name, write := range map[string]func(io.Writer) error{
		"violations.txt":  report.WriteText,
		"violations.html": report.WriteHTML,
		"summary.txt":     func(w io.Writer) error { _, err := io.WriteString(w, p.summary.String()); return err },
		"history.txt":     func(w io.Writer) error { return writeHistory(w, h) },
	} {
		err = errors.Join(err, writeFile(filepath.Join(dir, name), write))
	}
	for _, r := range p.replicas {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, r.String()+".log"), r.log.bytes(), 0o600))
	}
	return dir, err
}

// writeHistory writes all calls and all events, without secrets.
func writeHistory(w io.Writer, h verify.History) error {
	out := bufio.NewWriter(w)
	for _, c := range h.Calls {
		fmt.Fprintf(out, "%4.6f to %4.6f  client %d, %s: %s %+v\n\t%+v, %v\n", c.Sent.Seconds(), c.Answered.Seconds(), c.Client, c.Via, c.Verb, c.Request, c.Response, c.Err)
	}
	for _, e := range h.Events {
		fmt.Fprintf(out, "%+v\n", e)
	}
	for _, s := range h.Subscriptions {
		writeSubscription(out, s)
	}
	return out.Flush()
}

// writeSubscription writes what a subscriber asked for, and which events it was told.
func writeSubscription(out io.Writer, s verify.Subscription) {
	for _, r := range s.Requests {
		fmt.Fprintf(out, "%s %d, %s: sent %.6f, opened %.6f, over %.6f after %d, failed %v\n",
			s.Kind, s.Number, r.Via, r.Sent.Seconds(), r.Opened.Seconds(), r.Ended.Seconds(), r.Cursor, r.Failed)
		for _, d := range r.Deliveries {
			fmt.Fprintf(out, "\t%.6f: next %d, gap %v, events", d.At.Seconds(), d.Next, d.Gap)
			for _, e := range d.Events {
				fmt.Fprintf(out, " %d", e.ID)
			}
			fmt.Fprintln(out)
		}
	}
}

// writeFile makes a file of what is written.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
