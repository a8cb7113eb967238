// Package definition owns what the configuration of catalogues says (CONTRACT section 3): it reads a folder as Arranger has
// it, merges its files, names every fault and every key that it does not know, and never lets one catalogue's fault touch
// another. It opens no index. It imports internal/core and internal/sqon alone.
package definition
