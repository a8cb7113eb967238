package searchtest

import (
	"encoding/json"
	"math/rand/v2"

	"tutti/internal/index/mapping"
)

// draw makes reproducible random choices.
type draw struct {
	*rand.Rand
	// omitted are the values of documents that are not drawn.
	omitted map[mapping.Type][]string
	// low is Dialect.Signed, plain Dialect.PlainWildcards.
	low, plain bool
}

// newDraw returns the choices of a seed.
func newDraw(seed uint64) draw { return draw{Rand: rand.New(rand.NewPCG(seed, 0))} }

// percent returns true with a probability in percent.
func (d draw) percent(hundred int) bool { return d.IntN(100) < hundred }

// between returns a random integer from low to high.
func (d draw) between(low, high int) int { return low + d.IntN(high-low+1) }

// pick returns a random item of from.
func pick[T any](d draw, from []T) T { return from[d.IntN(len(from))] }

// quoted returns a text as a JSON string.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(raw)
}
