package spelling

import "iter"

// MaxSteps is the cost limit of Nearest and Suggest; the search ends with the candidate that exceeds it.
const MaxSteps = maxSteps

// NearestSteps is Nearest, and also returns its cost.
func NearestSteps(given string, candidates iter.Seq[string]) (best string, steps int) {
	s := newSearch(given)
	s.run(candidates)
	return s.best, maxSteps - s.steps
}
