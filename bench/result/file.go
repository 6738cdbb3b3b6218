package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// A File contains the results of parts, which need not have been measured on the same day.
type File struct {
	Parts []Part `json:"parts"`
}

// A Part contains runs that were measured together, and the machine.
type Part struct {
	Title   string  `json:"part"`
	Machine Machine `json:"machine"`
	Runs    []Run   `json:"runs"`
}

// Put replaces the part with the same title, or appends the part.
func (f *File) Put(p Part) {
	i := slices.IndexFunc(f.Parts, func(old Part) bool { return old.Title == p.Title })
	if i < 0 {
		f.Parts = append(f.Parts, p)
		return
	}
	f.Parts[i] = p
}

// Read reads a File.
func Read(path string) (File, error) {
	var f File
	text, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Write writes the File atomically, with one line for each run.
func (f File) Write(path string) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	text = append(bytes.ReplaceAll(text, []byte(`{"system":`), []byte("\n{\"system\":")), '\n')
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Failed returns an error that lists the failed runs, nil if there are none.
func (p Part) Failed() error {
	var err error
	for _, r := range p.Runs {
		if r.Error != "" && !r.Unsupported {
			err = errors.Join(err, fmt.Errorf("%s, %s, round %d: %s", r.System, r.Workload, r.Round, r.Error))
		}
	}
	return err
}
