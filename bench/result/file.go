package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// A File contains runs that were measured together, and the machine.
type File struct {
	Machine Machine `json:"machine"`
	Runs    []Run   `json:"runs"`
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
	machine, err := json.Marshal(f.Machine)
	if err != nil {
		return err
	}
	text := append([]byte(`{"machine":`), machine...)
	text = append(text, `,"runs":[`...)
	for i, r := range f.Runs {
		run, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, '\n'), run...)
	}
	text = append(text, "\n]}\n"...)
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Failed returns an error that lists the failed runs, nil if there are none.
func (f File) Failed() error {
	var err error
	for _, r := range f.Runs {
		if r.Error != "" && !r.Unsupported {
			err = errors.Join(err, fmt.Errorf("%s, %s, round %d: %s", r.System, r.Workload, r.Round, r.Error))
		}
	}
	return err
}
