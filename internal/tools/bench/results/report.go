package results

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Report is the result of a benchmark.
type Report struct {
	Name string `json:"name"`
	// What describes the measurement in one or two sentences.
	What    string   `json:"what"`
	Figures []Figure `json:"figures"`
	// Notes are remarks, the machine's noise first.
	Notes []string `json:"notes,omitempty"`
	// Seconds is the duration of the benchmark.
	Seconds float64 `json:"seconds"`
}

// Add appends a figure.
func (r *Report) Add(f Figure) { r.Figures = append(r.Figures, f) }

// Note appends a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Figure returns the figure with a name, nil when there is none.
func (r *Report) Figure(name string) *Figure {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			return &r.Figures[i]
		}
	}
	return nil
}

// String returns the report as text, a line for each figure.
func (r *Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", r.Name, r.What)
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	for _, f := range r.Figures {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", f.Name, f.values(), f.verdict())
	}
	_ = table.Flush() // a strings.Builder never fails
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "  %s\n", n)
	}
	fmt.Fprintf(&out, "  took %.0f s\n", r.Seconds)
	return out.String()
}
