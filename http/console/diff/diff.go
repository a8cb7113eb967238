// Package diff compares texts line by line.
package diff

import (
	"slices"
	"strings"
)

// Kind is what happened to a line.
type Kind string

// Kinds of a Line.
const (
	Same    Kind = "same"
	Added   Kind = "added"
	Removed Kind = "removed"
)

// maxCells bounds the table of a comparison: texts that differ more are shown as removed and added as a whole.
const maxCells = 16 << 20

// Line is one line of a comparison. Old and New are its numbers in the two texts, 0 where it is not.
type Line struct {
	Kind     Kind
	Text     string
	Old, New int
}

// Lines returns the lines of two texts in order, with the fewest changes from before to after.
func Lines(before, after string) []Line {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out []Line
	add := func(kind Kind, text string, i, j int) { out = append(out, Line{kind, text, i, j}) }
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		add(Same, a[start], start+1, start+1)
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	x, y := a[start:len(a)-end], b[start:len(b)-end]
	common := table(x, y)
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j] && common != nil:
			add(Same, x[i], start+i+1, start+j+1)
			i++
			j++
		case i < len(x) && (j == len(y) || common == nil || common[i+1][j] >= common[i][j+1]):
			add(Removed, x[i], start+i+1, 0)
			i++
		default:
			add(Added, y[j], 0, start+j+1)
			j++
		}
	}
	for k := end; k > 0; k-- {
		add(Same, a[len(a)-k], len(a)-k+1, len(b)-k+1)
	}
	return out
}

// table returns the length of the longest common subsequence of x[i:] and y[j:] for each i and j, nil if it were too large.
func table(x, y []string) [][]int32 {
	if (len(x)+1)*(len(y)+1) > maxCells {
		return nil
	}
	t := make([][]int32, len(x)+1)
	for i := range t {
		t[i] = make([]int32, len(y)+1)
	}
	for i, line := range slices.Backward(x) {
		for j, other := range slices.Backward(y) {
			if line == other {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}

// Changed reports whether a comparison has changes.
func Changed(lines []Line) bool {
	for _, l := range lines {
		if l.Kind != Same {
			return true
		}
	}
	return false
}
