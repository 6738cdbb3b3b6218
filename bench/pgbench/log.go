package pgbench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// read returns the durations of the transactions in a pgbench log, and removes the log.
func read(path string) (took []time.Duration, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		d, err := parse(lines.Text())
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, lines.Err()
}

// parse returns the duration in a log line, whose fields are client, number, µs, ...
func parse(line string) (time.Duration, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, fmt.Errorf("unexpected line %q in a pgbench log", line)
	}
	us, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unexpected line %q in a pgbench log: %w", line, err)
	}
	return time.Duration(us) * time.Microsecond, nil
}
