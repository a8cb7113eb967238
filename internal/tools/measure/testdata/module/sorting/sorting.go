// Package sorting is a fixture.
package sorting

// Mark marks a letter.
func Mark(s *string) { *s += "!" }

// Stamper stamps letters.
type Stamper interface{ Stamp(text string) }

// Franker is like Stamper.
type Franker interface{ Stamp(s string) }

// Sealer is not.
type Sealer interface{ Stamp(text string) error }
