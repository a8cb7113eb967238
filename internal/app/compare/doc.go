// Package compare compares a configuration with what the index has: the mapping of a repository. It imports config and the engines, never
// app; it changes nothing, except for Adopt.
package compare
