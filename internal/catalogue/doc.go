// Package catalogue owns the catalogues of a process (CONTRACT sections 2 and 3): it reads the mapping of each one's index,
// makes the fields that clients see of it, and keeps that true: what failed is tried again, what changed is read again, what
// stops answering is said to have failed. It declares the port to the index that it needs, and never fails a start.
package catalogue
