package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// freeReach is the reach that any type may have.
const freeReach = 35

// table has values by what they are of, such as "path page" or "reach consumers/run.pages".
type table map[string]int

// parse reads a table, a row a line.
func parse(text string) (table, error) {
	t := table{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndex(line, " ")
		n, err := strconv.Atoi(line[i+1:])
		if err != nil || i < 0 {
			return nil, fmt.Errorf("reading the row %q: it must end with a number", line)
		}
		t[line[:i]] = n
	}
	return t, nil
}

func (t table) String() string {
	var b strings.Builder
	b.WriteString("# What make lint holds the code to (go run ./internal/tools/measure). A ceiling may only fall.\n")
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "%s %d\n", name, t[name])
	}
	return b.String()
}

// hold returns an error for each value that its ceiling does not allow, and for each ceiling that can fall, so that it does.
func (t table) hold(values table) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		ceiling, ok := t[name]
		if !ok {
			ceiling = freeReach
		}
		if values[name] > ceiling {
			errs = append(errs, fmt.Errorf("%s: %d, above its ceiling of %d", name, values[name], ceiling))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if values[name] < t[name] {
			errs = append(errs, fmt.Errorf("%s: the ceiling of %d can fall: go run ./internal/tools/measure -lower", name, t[name]))
		}
	}
	return errors.Join(errs...)
}

// lowered returns t with the values that have fallen, and without the rows that need none any more.
func (t table) lowered(values table) table {
	low := table{}
	for name, ceiling := range t {
		if n, ok := values[name]; ok {
			low[name] = min(n, ceiling)
		}
	}
	return low
}
