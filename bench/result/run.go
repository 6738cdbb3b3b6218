package result

import (
	"slices"
	"time"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/system"
)

// A Run is one system under one workload for some seconds.
type Run struct {
	System        string `json:"system"`
	Title         string `json:"title"`
	Part          string `json:"part"` // of the campaign: what belongs together
	Workload      string `json:"workload"`
	WorkloadTitle string `json:"workload_title"`
	Unit          string `json:"unit"` // what an operation is, in the plural
	Clients       int    `json:"clients"`
	Round         int    `json:"round"`           // runs of one round are to be compared
	Paced         bool   `json:"paced,omitempty"` // at a fixed pace, not as fast as can be

	Error       string `json:"error,omitempty"`       // why there are no figures
	Unsupported bool   `json:"unsupported,omitempty"` // the system has no such thing

	Seconds    float64             `json:"seconds"`
	Operations int                 `json:"operations"`
	PerSecond  float64             `json:"per_second"`
	Latency    map[string]Quantile `json:"latency,omitempty"` // by what took so long

	CPU      CPU      `json:"cpu"`
	WALBytes *float64 `json:"wal_bytes,omitempty"` // an operation
	Images   *float64 `json:"images,omitempty"`    // full pages in the WAL, an operation
	Fsyncs   *float64 `json:"fsyncs,omitempty"`    // of the WAL, an operation

	Deleted *float64 `json:"deleted,omitempty"` // rows, an operation

	// Inversions are grants whose token was not greater than the one before, of systems that do
	// not promise it; warm-up included.
	Inversions int `json:"inversions,omitempty"`

	// Of workloads in which clients contend: Jain's index of how often each was served, and
	// the longest that anybody waited as a multiple of the mean.
	Fairness    *float64 `json:"fairness,omitempty"`
	LongestWait *float64 `json:"longest_wait,omitempty"`
}

// CPU is CPU time in µs an operation.
type CPU struct {
	Client   float64 `json:"client"`
	Server   float64 `json:"server"`
	Database float64 `json:"database"`
}

// Quantile is how long something took, in µs.
type Quantile struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Quantiles sorts the samples and tells about them.
func Quantiles(samples []time.Duration) Quantile {
	if len(samples) == 0 {
		return Quantile{}
	}
	slices.Sort(samples)
	var sum time.Duration
	for _, s := range samples {
		sum += s
	}
	at := func(q float64) float64 { return micros(samples[int(q*float64(len(samples)-1))]) }
	return Quantile{
		Count: len(samples), Mean: micros(sum) / float64(len(samples)),
		P50: at(0.5), P99: at(0.99), Max: at(1),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Spent fills in what the operations cost between two marks.
func (r *Run) Spent(from, to measure.Mark) {
	each := func(d time.Duration) float64 { return micros(d) / float64(max(r.Operations, 1)) }
	spent := func(role system.Role) float64 { return each(to.CPU[role] - from.CPU[role]) }
	r.CPU = CPU{Client: each(to.Client - from.Client), Server: spent(system.Server), Database: spent(system.Database)}
	if from.WAL == nil || to.WAL == nil {
		return
	}
	share := func(a, b int64) *float64 {
		x := float64(b-a) / float64(max(r.Operations, 1))
		return &x
	}
	r.WALBytes = share(from.WAL.Bytes, to.WAL.Bytes)
	r.Images = share(from.WAL.Images, to.WAL.Images)
	r.Fsyncs = share(from.WAL.Fsyncs, to.WAL.Fsyncs)
	r.Deleted = share(from.WAL.Deleted, to.WAL.Deleted)
}
