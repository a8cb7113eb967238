package core

import "iter"

// MaxSteps is what a search of Nearest and Meant may cost; it ends with the candidate that goes over it.
const MaxSteps = maxSteps

// NearestSteps is Nearest, which also tells what it has cost.
func NearestSteps(given string, candidates iter.Seq[string]) (best string, steps int) {
	s := newSearch(given)
	s.run(candidates)
	return s.best, maxSteps - s.steps
}
