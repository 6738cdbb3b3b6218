package result

import (
	"slices"
	"time"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/system"
)

// A Run is the result of one system under one workload.
type Run struct {
	System        string `json:"system"`
	Title         string `json:"title"`
	Workload      string `json:"workload"`
	WorkloadTitle string `json:"workload_title"`
	Unit          string `json:"unit"` // what an operation is, plural
	Clients       int    `json:"clients"`
	Round         int    `json:"round"`           // runs of the same round are compared
	Paced         bool   `json:"paced,omitempty"` // at a fixed pace instead of as fast as possible

	Error       string `json:"error,omitempty"`       // why there are no figures
	Unsupported bool   `json:"unsupported,omitempty"` // the system does not support the workload

	Seconds    float64             `json:"seconds"`
	Operations int                 `json:"operations"`
	PerSecond  float64             `json:"per_second"`
	Latency    map[string]Quantile `json:"latency,omitempty"` // by kind of call

	CPU      CPU      `json:"cpu"`
	WALBytes *float64 `json:"wal_bytes,omitempty"` // per operation
	Fsyncs   *float64 `json:"fsyncs,omitempty"`    // of the WAL, per operation

	Deleted *float64 `json:"deleted,omitempty"` // rows, per operation
	Memory  *Memory  `json:"memory,omitempty"`

	// Inversions counts grants whose token was not greater than the previous one, warm-up included,
	// for systems that do not promise increasing tokens.
	Inversions int `json:"inversions,omitempty"`

	// For contended workloads: Jain's fairness index of the operations per client, and the longest
	// wait as a multiple of the mean.
	Fairness    *float64 `json:"fairness,omitempty"`
	LongestWait *float64 `json:"longest_wait,omitempty"`
}

// Memory is the private memory of the servers, in bytes.
type Memory struct {
	Before int64 `json:"before"` // before the clients connect
	During int64 `json:"during"` // at the end of the measurement
	After  int64 `json:"after"`  // some time after the clients have left
}

// CPU is the CPU time in µs per operation.
type CPU struct {
	Client   float64 `json:"client"`
	Server   float64 `json:"server"`
	Database float64 `json:"database"`
}

// Quantile describes the durations of a kind of call, in µs.
type Quantile struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Quantiles sorts the samples and returns their quantiles.
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

// Spent sets the costs per operation between two marks.
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
	r.Fsyncs = share(from.WAL.Fsyncs, to.WAL.Fsyncs)
	r.Deleted = share(from.WAL.Deleted, to.WAL.Deleted)
}
