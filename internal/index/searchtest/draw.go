package searchtest

import (
	"encoding/json"
	"math/rand/v2"
)

// draw makes choices that a seed repeats.
type draw struct {
	*rand.Rand
}

// drawOf returns the choices of one set of documents.
func drawOf(seed uint64, set int) draw {
	return draw{rand.New(rand.NewPCG(seed, uint64(set)))}
}

// in tells true that many times of a hundred.
func (d draw) in(hundred int) bool { return d.IntN(100) < hundred }

// between returns one of the integers from low to high.
func (d draw) between(low, high int) int { return low + d.IntN(high-low+1) }

// pick returns one of some.
func pick[T any](d draw, from []T) T { return from[d.IntN(len(from))] }

// quoted returns a text as a string of JSON.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""` // every text has a form in JSON
	}
	return string(raw)
}
