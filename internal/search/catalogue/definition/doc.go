// Package definition reads the configuration of catalogues (CONTRACT section 3): it reads a folder in Arranger's layout, merges
// its files, reports every error and every unknown key, and isolates the errors of one catalogue from the others. It does not
// access an index. It imports only internal/core and internal/filter/sqon.
//
// Reading is limited: 1,000 folders; per folder 20,000 names, 1,000 JSON files, 32 MiB and 500,000 values; per file 16 MiB and
// 110 levels; in total 256 MiB and 2,000,000 values. Exceeding a limit is an error of its catalogue, which is still listed. After
// reading, only the Definition of a folder is kept.
package definition
