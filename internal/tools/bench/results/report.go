package results

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is the result of a benchmark.
type Report struct {
	Name string `json:"name"`
	// What describes the measurement in one or two sentences.
	What    string   `json:"what"`
	Figures []Figure `json:"figures"`
	// Notes are remarks.
	Notes []string `json:"notes,omitempty"`
	// Seconds is the duration of the benchmark.
	Seconds float64 `json:"seconds"`
}

// Add appends figures.
func (r *Report) Add(f ...Figure) { r.Figures = append(r.Figures, f...) }

// Note appends a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// String returns the report as text, a line for each figure.
func (r *Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", r.Name, r.What)
	table(&out, *r)
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "  %s\n", n)
	}
	fmt.Fprintf(&out, "  took %.0f s\n", r.Seconds)
	return out.String()
}

// table writes a line for each figure of reports, below a line for each of them when there are several.
func table(out *strings.Builder, reports ...Report) {
	var lines strings.Builder
	t := tabwriter.NewWriter(&lines, 0, 0, 3, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	line("  figure", "median", "min to max", "target", "result", "A/A spread", "difference")
	for _, r := range reports {
		if len(reports) > 1 {
			line(r.Name, "", "", "", "", "", "")
		}
		for _, f := range r.Figures {
			line(f.cells()...)
		}
	}
	_ = t.Flush() // a strings.Builder never fails
	for line := range strings.Lines(lines.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// cells returns the columns of the figure's line in a table.
func (f Figure) cells() []string {
	cells := []string{"  " + f.Name, "none", "", "", string(f.Result()), "", ""}
	if len(f.Values) > 0 {
		cells[1] = Number(f.Median())
	}
	if len(f.Values) > 1 {
		cells[2] = Number(f.Min()) + " to " + Number(f.Max())
	}
	if f.Target != nil {
		sign := "≤ "
		if f.Target.AtLeast {
			sign = "≥ "
		}
		cells[3] = sign + Number(f.Target.Limit)
	}
	if f.Arms != nil {
		cells[5] = "no A/A arm"
		if len(f.Arms.Again) > 0 {
			cells[5] = fmt.Sprintf("%.1f %%", 100*f.Spread())
		}
	}
	if d := f.difference(); d != nil {
		cells[6] = fmt.Sprintf("%+.1f %%", d.Percent)
		if !d.Resolved {
			cells[6] += ", not resolved"
		}
	}
	return cells
}

// All is everything that one call of the benchmarks measured.
type All struct {
	Machine Machine `json:"machine"`
	// DefaultSizes is set when the benchmarks had the sizes that the targets are for.
	DefaultSizes bool     `json:"defaultSizes"`
	Reports      []Report `json:"reports"`
	// Failed are the errors of the benchmarks that did not complete, by name.
	Failed map[string]string `json:"failed,omitempty"`
}

// count returns the number of figures with a result.
func (a All) count(result Result) (n int) {
	for _, r := range a.Reports {
		for _, f := range r.Figures {
			if f.Result() == result {
				n++
			}
		}
	}
	return n
}

// String returns all figures as one table, and how to read it.
func (a All) String() string {
	var out strings.Builder
	fmt.Fprintln(&out, "All figures, each judged by its median:")
	table(&out, a.Reports...)
	for _, name := range slices.Sorted(maps.Keys(a.Failed)) {
		fmt.Fprintf(&out, "%s failed: %s\n", name, a.Failed[name])
	}
	fmt.Fprintf(&out, "targets: %d met, %d not met, %d not resolved\n", a.count(Met), a.count(NotMet), a.count(NotResolved))
	if !a.DefaultSizes {
		fmt.Fprintln(&out, "The targets are for the default sizes; these were others.")
	}
	fmt.Fprint(&out, "A ratio compares two arms whose runs alternate: base, other, base, …. Its A/A spread is the largest difference between a base and\n"+
		"the next one, which is noise only. A difference of the arms, or a distance to the target, below twice that spread is not resolved: run\n"+
		"on an idle machine, or with more --pairs. A figure of which some runs meet the target and some do not is not resolved either.\n")
	return out.String()
}

// WriteJSON writes all figures with their results as one JSON document.
func (a All) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		All
		Targets map[Result]int `json:"targets"`
	}{a, map[Result]int{Met: a.count(Met), NotMet: a.count(NotMet), NotResolved: a.count(NotResolved)}})
}
