// Package draw makes what the search suites choose at random: a mapping, its documents, and filters on its fields. A seed repeats it.
package draw
