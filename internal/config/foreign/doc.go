// Package foreign copies what the environments of other products set into the keys of tutti that nothing else sets: of a Maestro, an
// Arranger and a Song's authentication. The documentation of package config lists the variables. A variable that is new there is a row of
// maestroKeys, or a line of the function of its section, and a row of the tables of package config/migrate, which says what became of each
// variable.
package foreign

import "slices"

// Result is what is to be said of what was copied.
type Result struct {
	// Warnings are about variables that could not be copied as they are.
	Warnings []string
	// Notes list what was copied and which variables have no effect.
	Notes []string
}

// All returns the warnings, then the notes.
func (r Result) All() []string { return slices.Concat(r.Warnings, r.Notes) }
