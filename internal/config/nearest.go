package config

import "strings"

// maxCompared is how much of a name is compared, in bytes: no valid one is longer.
const maxCompared = 200

// nearest gives the candidate with the smallest edit distance from given, whatever the case; the first of equals, ""
// without candidates.
func nearest(given string, candidates []string) string {
	given = given[:min(len(given), maxCompared)]
	best, least := "", -1
	for _, c := range candidates {
		if d := distance(strings.ToLower(given), strings.ToLower(c)); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best
}

// near gives the nearest candidate where it is likely meant: half of it is the same, or one begins with the other. Else "".
func near(given string, candidates []string) string {
	best := nearest(given, candidates)
	a, b := strings.ToLower(given[:min(len(given), maxCompared)]), strings.ToLower(best)
	switch {
	case a == "" || b == "":
		return ""
	case strings.HasPrefix(a, b), strings.HasPrefix(b, a), 2*distance(a, b) <= max(len(a), len(b)):
		return best
	default:
		return ""
	}
}

// distance is Levenshtein's: how many runes must be inserted, removed or changed.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, ra := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, rb := range to {
			cost := diagonal
			if ra != rb {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
