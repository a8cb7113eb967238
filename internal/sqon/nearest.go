package sqon

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxCompared is how much of a name is compared, in bytes: few valid ones are longer.
const maxCompared = 200

// near gives the candidate that was likely meant, "" when none is near enough.
func near(given string, candidates []string) string {
	return nearest(given, slices.Values(candidates))
}

// nearest gives the candidate with the smallest edit distance from given, whatever the case, the first of equals; "" when
// more than half of it is different.
func nearest(given string, candidates iter.Seq[string]) string {
	if len(given) > maxCompared {
		return ""
	}
	from := []rune(strings.ToLower(given))
	best, least := "", len(from)+maxCompared
	var row []int
	for c := range candidates {
		// Every character more or less is one edit, so most names need no comparison.
		length := utf8.RuneCountInString(c)
		if len(c) > maxCompared || max(length-len(from), len(from)-length) >= least {
			continue
		}
		to := []rune(strings.ToLower(c))
		row = slices.Grow(row[:0], len(to)+1)[:len(to)+1]
		if d := distance(from, to, row); d < least && 2*d <= max(len(from), len(to)) {
			best, least = c, d
		}
	}
	return best
}

// distance is Levenshtein's: how many characters must be inserted, removed or changed. row has room for one more than to.
func distance(from, to []rune, row []int) int {
	for j := range row {
		row[j] = j
	}
	for i, a := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, b := range to {
			cost := diagonal
			if a != b {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
