// Package dataset has what tests store in repositories: the analyses of a Song and the records of a Lyric, parsed, read from exports, or
// generated from a seed.
package dataset
