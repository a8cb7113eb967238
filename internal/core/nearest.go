package core

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// maxCompared is how much of a name is compared, in bytes: hardly a valid one is longer.
const maxCompared = 200

// Nearest gives the candidate with the smallest edit distance from given, whatever the case; the first of equals, "" without
// candidates.
func Nearest(given string, candidates iter.Seq[string]) string {
	best, _ := nearest(given, candidates)
	return best
}

// Meant gives the nearest candidate where it is likely meant: half of it is the same, or one begins with the other. Else "".
func Meant(given string, candidates iter.Seq[string]) string {
	best, distance := nearest(given, candidates)
	a, b := compared(given), compared(best)
	switch {
	case a == "" || b == "":
		return ""
	case strings.HasPrefix(a, b), strings.HasPrefix(b, a), 2*distance <= max(utf8.RuneCountInString(a), utf8.RuneCountInString(b)):
		return best
	default:
		return ""
	}
}

// compared gives what is compared of a name.
func compared(name string) string {
	end := min(len(name), maxCompared)
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return strings.ToLower(name[:end])
}

func nearest(given string, candidates iter.Seq[string]) (best string, least int) {
	from := []rune(compared(given))
	least = -1
	var row []int
	for c := range candidates {
		to := []rune(compared(c))
		// Every rune more or less is one edit, so most names need no comparison.
		if least >= 0 && max(len(to)-len(from), len(from)-len(to)) >= least {
			continue
		}
		row = row[:0]
		for j := range len(to) + 1 {
			row = append(row, j)
		}
		if d := distance(from, to, row); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best, least
}

// distance is Levenshtein's: how many runes must be inserted, removed or changed. row counts from 0 to the length of to.
func distance(from, to []rune, row []int) int {
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
