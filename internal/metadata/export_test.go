package metadata

import "github.com/tidwall/gjson"

// ParseObject returns parseObject to the tests.
func ParseObject(body []byte) (string, error) { return parseObject(body) }

// Merged returns appendMerged to the tests.
func Merged(target, patch string) string {
	return string(appendMerged(nil, gjson.Parse(target), gjson.Parse(patch)))
}

// MaxHistoryBytes gives the bound of an analysis' history to the tests.
const MaxHistoryBytes = maxHistoryBytes

// RememberedPlaces counts the places of pages that are remembered.
func (r *Repository) RememberedPlaces() int {
	r.places.mu.Lock()
	defer r.places.mu.Unlock()
	return len(r.places.kept)
}

// Turns counts the analyses that somebody rewrites or waits to rewrite.
func (r *Repository) Turns() int {
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	return len(r.turns.ids)
}
