package soak

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/paddock-lock/paddock/bench/result"
)

// A File contains a soak and the machine that it ran on.
type File struct {
	Machine   result.Machine `json:"machine"`
	Intervals []Interval     `json:"stretches"`
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

// Write writes the File.
func (f File) Write(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
