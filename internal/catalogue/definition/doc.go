// Package definition owns what the configuration of catalogues says (CONTRACT section 3): it reads a folder as Arranger has
// it, merges its files, names every fault and every key that it does not know, and never lets one catalogue's fault touch
// another. It opens no index. It imports internal/core and internal/sqon alone.
//
// What is read is bounded: 1,000 folders, of each 20,000 names, 1,000 JSON files, 32 MiB and 500,000 values, of a file 16 MiB
// and 110 levels, and of all together 256 MiB and 2,000,000 values. What is over a bound is a fault of its catalogue, which is
// listed all the same. A folder that is read keeps nothing but its Definition.
package definition
