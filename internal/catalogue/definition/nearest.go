package definition

import "strings"

// maxCompared is how much of a name is compared, in bytes: no known key is longer.
const maxCompared = 200

// nearest gives the candidate that was likely meant: half of it is the same, or one begins with the other, whatever the case.
// "" when there is none.
func nearest(given string, candidates []string) string {
	given = strings.ToLower(given[:min(len(given), maxCompared)])
	best, least := "", -1
	for _, c := range candidates {
		if d := distance(given, strings.ToLower(c)); least < 0 || d < least {
			best, least = c, d
		}
	}
	found := strings.ToLower(best)
	if given == "" || found == "" {
		return ""
	}
	if strings.HasPrefix(given, found) || strings.HasPrefix(found, given) || 2*least <= max(len(given), len(found)) {
		return best
	}
	return ""
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
