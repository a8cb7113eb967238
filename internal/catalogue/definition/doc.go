// Package definition owns what the configuration of catalogues says (CONTRACT section 3): it reads a folder as Arranger has
// it, merges its files, names every fault and every key that it does not know, and never lets one catalogue's fault touch
// another. It opens no index. It imports internal/core and internal/sqon alone.
//
// What is read is bounded: 1,000 folders, 1,000 files of each, and of a file 16 MiB, a million values and 110 levels. What is over a bound is a
// fault of its catalogue, which is listed all the same.
package definition
