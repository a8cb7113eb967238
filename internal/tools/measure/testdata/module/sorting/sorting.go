// Package sorting is a fixture.
package sorting

// Mark marks a letter.
func Mark(s *string) { *s += "!" }
