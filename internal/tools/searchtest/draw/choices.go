package draw

import (
	"encoding/json"
	"math/rand/v2"

	"tutti/internal/index/mapping"
)

// Choices makes reproducible random choices.
type Choices struct {
	*rand.Rand
	// Omitted are the values of documents that are not drawn.
	Omitted map[mapping.Type][]string
	// Low is Signed, Plain PlainWildcards of the Dialect of internal/tools/searchtest.
	Low, Plain bool
}

// New returns the choices of a seed.
func New(seed uint64) Choices { return Choices{Rand: rand.New(rand.NewPCG(seed, 0))} }

// Percent returns true with a probability in percent.
func (d Choices) Percent(hundred int) bool { return d.IntN(100) < hundred }

// Between returns a random integer from low to high.
func (d Choices) Between(low, high int) int { return low + d.IntN(high-low+1) }

// Pick returns a random item of from.
func Pick[T any](d Choices, from []T) T { return from[d.IntN(len(from))] }

// Quoted returns a text as a JSON string.
func Quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(raw)
}
