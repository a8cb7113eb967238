// Package catalogue manages the catalogues of a process (CONTRACT sections 2 and 3): it reads the mapping of each index, derives
// the fields for clients, and keeps them up to date. It retries failures, polls for changes, and marks catalogues as failed when
// their index stops responding. It declares the index port that it needs, and never fails a start.
package catalogue
