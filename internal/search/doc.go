// Package search holds everything that reads an index for a caller. catalogue is a catalogue's definition and its fields, view a catalogue as one
// caller may see it, behind an access filter; graphql, download, savedsets and federation answer from a view, and sets are stored lists of ids.
// What a caller must not see is filtered in view, never after it.
package search
